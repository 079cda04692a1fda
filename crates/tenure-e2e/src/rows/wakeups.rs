//! F30: notifications are lost, or there are none: looking finds the work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tenure_cluster::pgbouncer;
use tenure_core::JobId;

use crate::ledger::wall_clock;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

/// The row.
pub(super) const ROW: Row = Row {
    id: "F30",
    fault: "notifications are lost, the listener dies, or there is a pooler between",
    injected: "listening sessions ended every second; then the same through PgBouncer in transaction mode, where nobody can listen",
    run: |size| Box::pin(run(size)),
};

const POLL: Duration = Duration::from_millis(1_000);
const FLAGS: [&str; 4] = ["--queue", "default=8", "--poll-ms", "1000"];
/// Not in step with anything.
const BETWEEN: Duration = Duration::from_millis(137);
const LISTENERS: &str = "from pg_stat_activity where datname = current_database() and query = 'listen tenure'";

async fn run(size: Size) -> Report {
    let time = Duration::from_secs(size.pick(3, 25));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(5)).await;
    let mut worker = stage.worker("direct", &FLAGS);
    let (calm, _) = latencies(&mut stage, time, false).await;
    let (deaf, killed) = latencies(&mut stage, time, true).await;
    worker.terminate();
    worker.wait().await;
    let pooler = pgbouncer::shared_url().rsplit_once('/').unwrap().0.to_owned();
    let through = Place::Postgres(format!("{pooler}/{}", stage.place.text().rsplit_once('/').unwrap().1));
    let flags = [&FLAGS[..], &["--pooled"]].concat();
    let _pooled = stage.worker_at(&through, "pooled", &flags);
    let (pooled, _) = latencies(&mut stage, time, false).await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    let say = |all: &[i64]| format!("p50 {} ms, p99 {} ms", all[all.len() / 2], all[all.len() * 99 / 100]);
    report.number(format!(
        "from enqueue to start: with a listener {}, with listeners ended {}, through PgBouncer {}; a look every {POLL:?}; missed {}",
        say(&calm),
        say(&deaf),
        say(&pooled),
        stage.history.count() - record.succeeded().len()
    ));
    let most = i64::try_from(POLL.as_millis()).unwrap() * i64::from(size.slack());
    for (what, all) in [("with listeners ended", &deaf), ("through PgBouncer", &pooled)] {
        let added = all[all.len() * 99 / 100] - calm[calm.len() / 2];
        // A rest is the interval give or take a tenth.
        report.must(added <= most + most / 10, format!("{what} {added} ms are added"));
    }
    report.must(record.succeeded().len() == stage.history.count(), "nothing is missed");
    report.line(line);
    report.bite(killed, size.pick(2, 20), "listeners ended");
    report
}

/// Enqueues one job after the other for so long; answers how long each waited for its handler, sorted, and how many
/// listeners were ended meanwhile.
async fn latencies(stage: &mut Stage, time: Duration, end_listeners: bool) -> (Vec<i64>, usize) {
    let since = Instant::now();
    let (mut asked, mut ended, mut last): (HashMap<JobId, i64>, _, _) = (HashMap::new(), 0, Instant::now());
    while since.elapsed() < time {
        let at = wall_clock();
        asked.insert(stage.history.enqueue(&stage.client, Act::Wait { ms: 0 }).await, at);
        if end_listeners && last.elapsed() >= Duration::from_secs(1) {
            ended +=
                stage.sql(&format!("select count(pg_terminate_backend(pid)) {LISTENERS}")).parse::<usize>().unwrap();
            last = Instant::now();
        }
        // The worker is to rest between two.
        tokio::time::sleep(BETWEEN).await;
    }
    let waits = watch("each has started", async || {
        let starts = stage.noted("start");
        let mut waits: Vec<i64> =
            starts.iter().filter_map(|entry| asked.get(&entry.job).map(|at| (entry.at - at) / 1_000)).collect();
        waits.sort_unstable();
        (waits.len() == asked.len()).then_some(waits)
    })
    .await;
    (waits, ended)
}
