//! F8: the wall clocks of workers are an hour off, either way, and jump: nothing is claimed early or late, no lease is
//! lost, and what handlers enqueue under such a clock is accepted.

use std::time::{Duration, Instant};

use tenure_core::How;

use crate::Act;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::skew::Skew;
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F8",
    fault: "wall clocks of workers are wrong, and jump",
    injected: "three workers under a preloaded clock: an hour ahead, an hour behind, and jumping between both every 300 ms",
    run: |size| Box::pin(run(size)),
};

const HOUR_S: i64 = 3_600;
const JUMP_EVERY: Duration = Duration::from_millis(300);
/// Seen in the ledger, whose rows have the wall clock of the process.
const SEEN_US: i64 = 3_000_000_000;
const LATE_MS: i64 = 5_000;
const RETRY_MS: i64 = 300;

async fn run(size: Size) -> Report {
    let time = Duration::from_secs(size.pick(4, 30));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(3)).await;
    let clocks = ["ahead", "behind", "jumping"].map(|name| (name, Skew::build(stage.directory(), name)));
    clocks[0].1.set(HOUR_S);
    clocks[1].1.set(-HOUR_S);
    let mut workers: Vec<Process> = clocks.iter().map(|(name, skew)| start(&stage, name, skew)).collect();
    let (since, mut jumps) = (Instant::now(), 0);
    while since.elapsed() < time {
        clocks[2].1.set(if jumps % 2 == 0 { HOUR_S } else { -HOUR_S });
        jumps += 1;
        enqueue(&stage).await;
        // The rhythm is the fault itself.
        tokio::time::sleep((JUMP_EVERY * jumps).saturating_sub(since.elapsed())).await;
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let starts = stage.noted("start");
    let skewed = starts.iter().filter(|entry| {
        let claimed = record.claimed.get(&(entry.job, entry.fence));
        claimed.is_some_and(|at| (entry.at - at).abs() > SEEN_US)
    });
    let skewed = skewed.count();
    let early: usize = stage
        .sql("select count(*) from tenure.attempt a join tenure.job j on j.id = a.job where a.started_at < j.run_at")
        .parse()
        .unwrap();
    let late: i64 = stage
        .sql("select (extract(epoch from max(a.started_at - j.run_at)) * 1000)::bigint from tenure.attempt a join tenure.job j on j.id = a.job where a.attempt = 1")
        .parse()
        .unwrap();
    let retries = stage.sql(
        "select count(*), coalesce((extract(epoch from min(gap)) * 1000)::bigint, 0), coalesce((extract(epoch from max(gap)) * 1000)::bigint, 0) from (
           select how, lead(started_at) over (partition by job order by lease) - ended_at as gap from tenure.attempt) a where how = 2 and gap is not null",
    );
    let retries: Vec<i64> = retries.split('|').map(|number| number.parse().unwrap()).collect();
    let children: usize =
        stage.sql("select count(*) from tenure.job where payload = '{\"do\": \"wait\", \"ms\": 7}'").parse().unwrap();
    let parents: usize = stage.sql("select count(*) from tenure.job where payload ->> 'do' = 'spawn'").parse().unwrap();
    let mut report = Report::default();
    report.number(format!(
        "{} jobs, {jumps} jumps; claims before their time {early}, the latest {late} ms after it; {} retries {} to {} ms after a failure \
         with a backoff of {RETRY_MS} ms; {children} jobs stored by handlers; leases lost {}, reports refused {}; {alive} of 3 alive",
        starts.len(),
        retries[0],
        retries[1],
        retries[2],
        record.count(How::Lost),
        record.refused.len()
    ));
    report.must(early == 0, "nothing is claimed before its time");
    report.must(late <= LATE_MS, "nothing is claimed an hour late");
    report.must(
        retries[0] > 0 && retries[1] >= RETRY_MS && retries[2] <= RETRY_MS + LATE_MS,
        "retries come when they should",
    );
    report.must((record.count(How::Lost), record.refused.len()) == (0, 0), "no lease is lost");
    report.must(children == parents, format!("what {parents} handlers enqueue is stored: {children}"));
    report.must(alive == 3, "no process ends");
    report.line(line);
    report.bite(skewed, size.pick(50, 500), "handlers whose wall clock was an hour off");
    report
}

fn start(stage: &Stage, name: &str, skew: &Skew) -> Process {
    let mut command = stage.worker_command(&stage.place, name, &["--queue", "default=8"]);
    command.envs(skew.environment());
    Process::start(name, command)
}

/// Some are due now, some a little later, some fail once and are tried again, some enqueue another.
async fn enqueue(stage: &Stage) {
    let fixed = format!("fixed {RETRY_MS}ms").parse().unwrap();
    let retried = stage.client.enqueue(Act::Trouble).max_attempts(2).backoff(fixed).await.unwrap();
    let later = stage.client.enqueue(Act::Wait { ms: 5 }).delay(Duration::from_millis(700)).await.unwrap();
    stage.history.acknowledge(&[retried, later]);
    stage.enqueue((0..10).map(|_| Act::Wait { ms: 5 }).chain([Act::Spawn { ms: 7 }]).collect()).await;
}
