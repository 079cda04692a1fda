//! F5: jobs that end their process: each is started as often as it may lose its lease, then it is dead; others go on.

use std::process::Command;
use std::time::{Duration, Instant};

use tenure_core::{JobId, State};
use tenure_store::record::Sight;

use super::harm::enqueue_raw;
use crate::Act;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F5",
    fault: "a poison job: its process dies",
    injected: "handlers that abort, or take memory until there is none (RLIMIT_AS of 2 GiB by `prlimit`, no cgroup); 4 workers, each started again",
    run: |size| Box::pin(run(size)),
};

const WORKERS: usize = 4;
const SLOTS: usize = 8;
const LEASE: Duration = Duration::from_secs(1);
/// Address space of a worker: room for its threads, not for one that takes everything.
const MEMORY: &str = "--as=2147483648";
/// A healthy job takes so long, asleep: processes are what is measured, not this machine.
const HEALTHY_MS: u64 = 50;
/// The last few wait for leases to run out and are no measure of throughput.
const MOST: usize = 95;

async fn run(size: Size) -> Report {
    let (poisons, limit, healthy) = size.pick((2, 2, 3_000), (4, 3, 12_000));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let mut troupe = Troupe::new(&stage);
    let alone = drain(&mut stage, &mut troupe, healthy, Vec::new(), limit).await;
    let payloads: Vec<&str> = (0..poisons).map(|n| [r#"{"do":"abort"}"#, r#"{"do":"hog"}"#][n % 2]).collect();
    let beside = drain(&mut stage, &mut troupe, healthy, payloads, limit).await;
    let ratio = alone.took.as_secs_f64() / beside.took.as_secs_f64();
    let (line, record) = PassLine::measure(&mut stage).await;
    let starts = stage.noted("start");
    let started = |job: &JobId| starts.iter().filter(|entry| entry.job == *job).count();
    let each: Vec<usize> = beside.poisons.iter().map(started).collect();
    let mut report = Report::default();
    report.number(format!(
        "{poisons} poison jobs, at most {limit} losses: started {each:?} times, then dead; {} of {} processes died of memory; healthy \
         throughput beside them {:.0} % of that without; attempts {:?}",
        troupe.out_of_memory,
        troupe.deaths,
        100.0 * ratio,
        record.tally()
    ));
    report.must(
        each.iter().all(|starts| *starts == usize::from(limit)),
        "each is started as often as it may lose its lease",
    );
    report.must(ratio >= 0.8, format!("others go on, at {:.0} %", 100.0 * ratio));
    report.must(record.succeeded().len() == 2 * healthy, "every healthy job succeeds");
    report.must(troupe.out_of_memory == poisons / 2 * usize::from(limit), "those that take everything die of that");
    report.line(line);
    report.bite(troupe.deaths, poisons * usize::from(limit), "processes that died");
    report
}

struct Drained {
    took: Duration,
    poisons: Vec<JobId>,
}

/// Runs healthy jobs, and one poison job after the other beside them; answers how long most of the healthy ones took.
async fn drain(stage: &mut Stage, troupe: &mut Troupe, healthy: usize, payloads: Vec<&str>, limit: u16) -> Drained {
    let before = stage.count("end");
    let since = Instant::now();
    stage.enqueue((0..healthy).map(|_| Act::Wait { ms: HEALTHY_MS }).collect()).await;
    let (mut waiting, mut poisons, mut took) = (payloads.into_iter(), Vec::<JobId>::new(), None);
    let mut next = true;
    watch_long("the healthy ones are done and the others dead", async || {
        troupe.revive(stage);
        if next && let Some(payload) = waiting.next() {
            // First in line, so that the measure is not over before the poison.
            let urgent = |job: &mut tenure_core::NewJob| {
                job.rules.max_losses = limit;
                job.priority = tenure_core::Priority::ALL[0];
            };
            poisons.push(enqueue_raw(stage, "act", payload, urgent).await);
        }
        next = match poisons.last() {
            Some(job) => stage.store.show_job(&Sight::All, *job).await.unwrap().summary.state == State::Dead,
            None => true,
        };
        if took.is_none() && stage.count("end") - before >= healthy * MOST / 100 {
            took = Some(since.elapsed());
        }
        (took.is_some() && next && waiting.len() == 0).then_some(())
    })
    .await;
    Drained { took: took.unwrap(), poisons }
}

/// Poison takes its time: each loss waits longer than the one before.
async fn watch_long(what: &str, mut look: impl AsyncFnMut() -> Option<()>) {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(300) {
        if look().await.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited for 300 s: {what}");
}

/// Workers, each with another in its place when it dies.
struct Troupe {
    workers: Vec<Process>,
    deaths: usize,
    out_of_memory: usize,
}

impl Troupe {
    fn new(stage: &Stage) -> Self {
        let workers = (0..WORKERS).map(|n| start(stage, n)).collect();
        Self { workers, deaths: 0, out_of_memory: 0 }
    }

    fn revive(&mut self, stage: &Stage) {
        for worker in &mut self.workers {
            if worker.ended().is_none() {
                continue;
            }
            self.deaths += 1;
            self.out_of_memory += usize::from(worker.log().contains("memory allocation"));
            *worker = start(stage, WORKERS + self.deaths);
        }
    }
}

fn start(stage: &Stage, n: usize) -> Process {
    let name = format!("w{n}");
    let slots = format!("default={SLOTS}");
    let inner = stage.worker_command(&stage.place, &name, &["--queue", &slots]);
    let mut command = Command::new("prlimit");
    command.arg(MEMORY).arg(inner.get_program()).args(inner.get_args());
    Process::start(&name, command)
}
