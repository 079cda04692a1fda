//! F1: `kill -9` of workers in the middle of their jobs: each job succeeds once, and what was in flight runs again.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use tenure_core::How;

use crate::Act;
use crate::ledger::{Entry, wall_clock};
use crate::pass_line::PassLine;
use crate::place::Place;
use crate::process::Process;
use crate::record::{Grant, Record};
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub const ROW: Row = Row {
    id: "F1",
    fault: "a worker is killed in the middle of its handlers",
    injected: "`kill -9` of the worker whose turn it is as soon as a handler of it has begun, 4 workers with 32 slots, another in its place",
    run: |size| Box::pin(async move { attack(Stage::postgres().await, size).await }),
};

/// Short, so that what was lost runs again soon; long enough for a keeper on a busy machine.
const LEASE: Duration = Duration::from_secs(3);
/// Between two kills: a worker that is killed before it works shows nothing.
const BETWEEN: Duration = Duration::from_millis(500);
/// More jobs come when fewer than this are left and kills are still to come.
const LOW: usize = 2_000;

/// One kill: when, whom, and the handlers it cut off.
struct Kill {
    at: i64,
    cut: HashSet<Grant>,
}

/// The attack, on either store.
pub async fn attack(mut stage: Stage, size: Size) -> Report {
    let (jobs, kills, workers) = size.pick((20_000, 5, 2), (50_000, 200, 4));
    stage.set_lease("default", LEASE).await;
    // Long enough on the whole that the last kill still meets somebody at work.
    let long = size.pick((20, 100), (2, 250));
    enqueue(&stage, jobs, long).await;
    let since = Instant::now();
    let start = |stage: &Stage, n: usize| stage.worker(&format!("w{n}"), &["--queue", "default=32"]);
    let mut running: Vec<Process> = (0..workers).map(|n| start(&stage, n)).collect();
    let mut done: Vec<Kill> = Vec::new();
    let mut last = Instant::now();
    for n in 0.. {
        if done.len() == kills {
            break;
        }
        let victim = &mut running[n % workers];
        watch("a moment has passed, and the victim is in the middle of something", async || {
            if stage.history.count() < stage.count("end") + LOW {
                enqueue(&stage, LOW, long).await;
            }
            (last.elapsed() >= BETWEEN && !open(stage.entries(), &victim.name).is_empty()).then_some(())
        })
        .await;
        victim.kill();
        let (at, cut) = (wall_clock(), open(stage.entries(), &victim.name));
        done.extend((!cut.is_empty()).then_some(Kill { at, cut }));
        *victim = start(&stage, n + workers);
        last = Instant::now();
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    for worker in &mut running {
        worker.terminate();
        let (status, _) = worker.wait().await;
        assert!(status.success(), "{}: {status}\n{}", worker.name, worker.log());
    }
    let mut report = check(&mut stage, &record, &done, since.elapsed(), size);
    report.line(line);
    report.bite(done.len(), kills, "kills that cut off a handler");
    report
}

/// Most are over in no time; one in `every` takes `ms`, so that a kill always meets one. Some complete in their own
/// transaction.
async fn enqueue(stage: &Stage, jobs: usize, (every, ms): (usize, u64)) {
    let charges = if matches!(stage.place, Place::Postgres(_)) { jobs / 20 } else { 0 };
    let acts = (0..jobs - charges).map(|n| Act::Wait { ms: if n % every == 0 { ms } else { 1 } });
    stage.enqueue(acts.collect()).await;
    stage.charge(charges, 20).await;
}

fn check(stage: &mut Stage, record: &Record, kills: &[Kill], took: Duration, size: Size) -> Report {
    let jobs = stage.history.count();
    let starts: Vec<Grant> = stage.noted("start").iter().map(|entry| (entry.job, entry.fence)).collect();
    let once: HashSet<Grant> = starts.iter().copied().collect();
    let mut became: BTreeMap<&str, usize> = BTreeMap::new();
    for start in &starts {
        *became.entry(record.ended.get(start).map_or("never ended", |how| how.as_str())).or_default() += 1;
    }
    let cut: usize = kills.iter().map(|kill| kill.cut.len()).sum();
    let mut back: Vec<i64> = Vec::new();
    for kill in kills {
        let lost = kill.cut.iter().filter(|grant| record.ended.get(*grant) == Some(&How::Lost));
        back.extend(lost.map(|grant| (record.ended_at[grant] - kill.at) / 1_000));
    }
    back.sort_unstable();
    let most = i64::try_from((LEASE + stage.reclaim_every() + Duration::from_secs(1)).as_millis()).unwrap();
    let p99 = back.get(back.len() * 99 / 100).copied().unwrap_or(i64::MAX);
    let lost = became.get(How::Lost.as_str()).copied().unwrap_or(0);
    let succeeded = record.succeeded();
    let mut report = Report::default();
    report.number(format!(
        "{jobs} jobs in {} s; {cut} handlers cut off; {} starts became {became:?}",
        took.as_secs(),
        starts.len()
    ));
    report.number(format!("queued again after the kill: p99 {p99} ms, at most {most} ms are promised"));
    report.must(once.len() == starts.len(), "no handler starts twice under one fence");
    report.must(succeeded.len() == jobs, "each job succeeds, once");
    report.must(succeeded.into_iter().all(|grant| once.contains(&grant)), "what succeeded was started");
    report.must(starts.len() == jobs + lost, "only what was in flight at a kill starts again");
    report.must(lost >= cut, "what was cut off is lost, and runs again");
    report.must(p99 <= most * i64::from(size.slack()), "what was cut off is queued again in time");
    report
}

/// Handlers of this process that have started and not ended.
fn open(seen: &[Entry], worker: &str) -> HashSet<Grant> {
    let mine = || seen.iter().filter(|entry| entry.worker == worker);
    let mut open: HashSet<Grant> = mine().filter(|e| e.what == "start").map(|e| (e.job, e.fence)).collect();
    mine().filter(|e| e.what == "end").for_each(|e| {
        open.remove(&(e.job, e.fence));
    });
    open
}
