//! F10: SIGTERM under load: the process is gone in time, what it held is given back at once, and nobody is charged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use tenure_core::{How, JobId, State};
use tenure_store::record::JobFilter;

use crate::ledger::wall_clock;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::record::{Grant, Record};
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Entry};

const GRACE: Duration = Duration::from_millis(1_500);
/// The requirement itself: gone so long after the grace period at the latest.
const AFTER_GRACE: Duration = Duration::from_secs(1);
const WORKERS: usize = 4;
/// What is not given back shows soon.
const LEASE: Duration = Duration::from_secs(5);
/// Longer than the grace period, so that a job is cut off; shorter than the time between two turns of a worker.
const LONG_MS: u64 = 3_000;
/// What comes with every turn.
const LOAD: [(&str, usize); 4] = [("short", 150), ("blocking", 3), ("long", 4), ("held", 4)];
/// What outlasts the grace period, if it has begun a moment ago.
const CUT_OFF: [&str; 3] = ["blocking", "long", "held"];
const NEW_US: i64 = 500_000;
const FLAGS: [&str; 6] = ["--queue", "default=8", "--threads", "4", "--grace-ms", "1500"];

/// The row.
pub(super) const ROW: Row = Row {
    id: "F10",
    fault: "SIGTERM with short, long and uncancellable jobs",
    injected: "rolling SIGTERM of 4 workers under load, each while it has just begun something that outlasts the grace period",
    run: |size| Box::pin(run(size)),
};

async fn run(size: Size) -> Report {
    // Each worker is told to stop so often, itself or the one in its place.
    let rounds = size.pick(2, 13) * WORKERS;
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let mut jobs: HashMap<JobId, &'static str> = HashMap::new();
    let mut workers: Vec<Process> = (0..WORKERS).map(|n| stage.worker(&format!("w{n}"), &FLAGS)).collect();
    let mut exits = Vec::new();
    for turn in 0..rounds {
        if let Some(before) = turn.checked_sub(2) {
            stage.gates.open(&gate(before)).unwrap();
        }
        add_load(&stage, &mut jobs, turn, &LOAD).await;
        let (worker, mut looks) = (&mut workers[turn % WORKERS], 0);
        let wanted = CUT_OFF[turn % CUT_OFF.len()];
        watch(&format!("the worker has just begun something {wanted}"), async || {
            // The others may have taken all of it, or all slots here hold on: then there is more, and those end.
            looks += 1;
            if looks % 50 == 0 {
                (0..turn).for_each(|before| stage.gates.open(&gate(before)).unwrap());
                add_load(&stage, &mut jobs, turn, &[(wanted, 2)]).await;
            }
            let new = |entry: &&Entry| wall_clock() - entry.at < NEW_US && jobs.get(&entry.job) == Some(&wanted);
            open(&mut stage, &worker.name).iter().find(new).map(drop)
        })
        .await;
        exits.push(terminate(worker).await);
        *worker = stage.worker(&format!("w{}", turn + WORKERS), &FLAGS);
    }
    (0..rounds).for_each(|turn| stage.gates.open(&gate(turn)).unwrap());
    let (line, record) = PassLine::measure(&mut stage).await;
    for worker in &mut workers {
        terminate(worker).await;
    }
    let mut given_back: BTreeMap<&str, usize> = BTreeMap::new();
    let released = record.ended.iter().filter(|(_, how)| matches!(how, How::Released | How::Snoozed));
    released.for_each(|((job, _), _)| *given_back.entry(jobs[job]).or_default() += 1);
    let charged = attempts_charged(&stage).await;
    let released = given_back.values().sum();
    let mut report = Report::default();
    report.number(format!(
        "{} jobs, {} SIGTERMs, gone after {:.1?} at the latest of {:?}; given back {given_back:?}; attempts {:?}; {} refused",
        jobs.len(),
        exits.len(),
        exits.iter().max().unwrap(),
        GRACE + AFTER_GRACE,
        record.tally(),
        record.refused.len()
    ));
    report.must(record.succeeded().len() == jobs.len(), "every job succeeds");
    report.must(record.count(How::Lost) == 0, "nothing is left to run out");
    report.must(charged == BTreeMap::from([(1, jobs.len())]), format!("nobody is charged: {charged:?}"));
    for what in CUT_OFF {
        report.must(given_back.contains_key(what), format!("some {what} jobs were given back"));
    }
    report.number(blocked_runtime().await);
    report.line(line);
    report.bite(released, size.pick(8, 100), "jobs given back");
    report
}

/// Handlers that block every thread of the runtime cannot keep the process, nor what it holds.
async fn blocked_runtime() -> String {
    let mut stage = Stage::postgres().await;
    let flags = ["--queue", "default=3", "--threads", "2", "--grace-ms", "1500"];
    let mut worker = stage.worker("blocked", &flags);
    stage.enqueue(vec![Act::Block { ms: 8_000 }, Act::Block { ms: 8_000 }]).await;
    watch("both threads are blocked", async || (stage.count("start") == 2).then_some(())).await;
    let took = terminate(&mut worker).await;
    let record = Record::prove(&*stage.store).await;
    assert_eq!(record.count(How::Released), 2, "both jobs are given back before the process is gone");
    format!("with both threads blocked: gone after {took:.1?}, both jobs given back")
}

/// SIGTERM; the process must be gone in time, and say that all is well.
pub(super) async fn terminate(worker: &mut Process) -> Duration {
    worker.terminate();
    let (status, took) = worker.wait().await;
    assert_eq!(status.code(), Some(0), "{}: {status}\n{}", worker.name, worker.log());
    assert!(took <= GRACE + AFTER_GRACE, "{} was gone after {took:.2?}\n{}", worker.name, worker.log());
    took
}

/// What those of a turn hold for. It is opened some turns later: they would fill the slots of everybody.
fn gate(turn: usize) -> String {
    format!("turn-{turn}")
}

async fn add_load(stage: &Stage, jobs: &mut HashMap<JobId, &'static str>, turn: usize, load: &[(&'static str, usize)]) {
    for (what, count) in load {
        let act = match *what {
            "held" => Act::Hold { gate: gate(turn) },
            "long" => Act::Wait { ms: LONG_MS },
            "blocking" => Act::Block { ms: LONG_MS },
            _ => Act::Wait { ms: 5 },
        };
        let stored = stage.client.enqueue_many((0..*count).map(|_| act.clone())).await.unwrap();
        stage.history.acknowledge(&stored);
        jobs.extend(stored.iter().map(|stored| (stored.job(), *what)));
    }
}

/// Handlers of this process that have started and not ended.
fn open(stage: &mut Stage, worker: &str) -> Vec<Entry> {
    let mine: Vec<&Entry> = stage.entries().iter().filter(|entry| entry.worker == worker).collect();
    let over: HashSet<Grant> = mine.iter().filter(|e| e.what != "start").map(|e| (e.job, e.fence)).collect();
    mine.into_iter().filter(|entry| !over.contains(&(entry.job, entry.fence))).cloned().collect()
}

/// How many jobs have been charged so many attempts.
async fn attempts_charged(stage: &Stage) -> BTreeMap<u16, usize> {
    let mut charged = BTreeMap::new();
    let mut filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    loop {
        let page = stage.store.list_jobs(&filter).await.unwrap();
        let Some(last) = page.last() else { return charged };
        filter.before = Some(last.id);
        for job in &page {
            assert_eq!(job.state, State::Succeeded, "{}", job.id);
            *charged.entry(job.attempt).or_default() += 1;
        }
    }
}
