//! F26: somebody holds an old snapshot, and nothing that is deleted can be cleaned up: work goes on at a good part of its
//! speed.

use std::time::{Duration, Instant};

use super::session::Session;
use crate::Act;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F26",
    fault: "a long snapshot is held",
    injected: "`begin isolation level repeatable read; select …` held while a worker drains as fast as it can",
    run: |size| Box::pin(run(size)),
};

/// Kept waiting at any time, so that the worker never rests.
const BACKLOG: usize = 4_000;
const FLOOR: f64 = 0.5;

async fn run(size: Size) -> Report {
    let (window, held_for) = size.pick((2, 5), (10, 60));
    let (window, held_for) = (Duration::from_secs(window), Duration::from_secs(held_for));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(10)).await;
    let _worker = stage.worker("w", &["--queue", "default=64"]);
    drain_for(&mut stage, window / 2).await;
    let before = drain_for(&mut stage, window).await;
    let holder =
        Session::open(&stage.place.text(), "begin isolation level repeatable read; select from tenure.ready limit 1")
            .await;
    let since = Instant::now();
    drain_for(&mut stage, held_for - window).await;
    let held = drain_for(&mut stage, window).await;
    let age: usize = stage
        .sql("select max(age(backend_xmin)) from pg_stat_activity where datname = current_database()")
        .parse()
        .unwrap();
    let held_for = since.elapsed();
    let dead = stage.sql("select sum(n_dead_tup) from pg_stat_user_tables where relname in ('ready', 'lease')");
    holder.run("rollback").await;
    let after = drain_for(&mut stage, window).await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let ratio = held / before;
    let mut report = Report::default();
    report.number(format!(
        "{before:.0} jobs/s before, {held:.0} after {} s of it ({:.0} %), {after:.0} when it is gone; the snapshot is {age} transactions old, \
         {dead} dead rows; {} jobs. An alarm for old snapshots: there is none yet",
        held_for.as_secs(),
        100.0 * ratio,
        record.succeeded().len()
    ));
    report.must(ratio >= FLOOR, format!("work goes on at {:.0} % of its speed", 100.0 * ratio));
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds");
    report.line(line);
    report.bite(age, size.pick(500, 5_000), "transactions that the snapshot was held for");
    report
}

/// Keeps the worker busy for so long; answers its jobs a second.
async fn drain_for(stage: &mut Stage, time: Duration) -> f64 {
    let (since, before) = (Instant::now(), stage.count("end"));
    while since.elapsed() < time {
        let waiting = stage.history.count() - stage.count("end");
        if waiting < BACKLOG {
            stage.enqueue((0..1_000).map(|_| Act::Wait { ms: 0 }).collect()).await;
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    (stage.count("end") - before) as f64 / since.elapsed().as_secs_f64()
}
