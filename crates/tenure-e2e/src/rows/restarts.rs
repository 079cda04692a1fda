//! F17, F18: Postgres goes away in the middle of everything, again and again, and for a while: no acknowledged job is
//! lost, no process ends, nobody floods the log or the server, and all go on by themselves.

use std::time::{Duration, Instant};

use tenure_cluster::postgres_server::{Options, Postgres};

use crate::history::Load;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

/// Row F17.
pub(super) const RESTARTS: Row = Row {
    id: "F17",
    fault: "Postgres restarts at once, without a last checkpoint",
    injected: "`pg_ctl stop -m immediate` and start, again and again under load, fsync on",
    run: |size| Box::pin(restarts(size)),
};

/// Row F18.
pub(super) const OUTAGE: Row = Row {
    id: "F18",
    fault: "Postgres is away for a minute",
    injected: "stop, wait, start, with every slot in the middle of something",
    run: |size| Box::pin(outage(size)),
};

const PRODUCERS: usize = 2;
const SLOTS: usize = 32;
const FLAGS: [&str; 2] = ["--queue", "default=32"];
/// Shorter than the long outage, so that leases run out in it.
const LEASE: Duration = Duration::from_secs(5);
/// Done between two faults: proof that everybody goes on.
const PROGRESS: usize = 50;
const RESUME: Duration = Duration::from_secs(5);
const LINES_PER_SECOND: f64 = 2.0;
const GROWTH_MIB: u64 = 50;

async fn restarts(size: Size) -> Report {
    let rounds = size.pick(10, 20);
    let mut cluster = Postgres::start(&Options { fsync: true, ..Options::default() }).unwrap();
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let mut workers: Vec<Process> = (0..2).map(|n| stage.worker(&format!("w{n}"), &FLAGS)).collect();
    let load = Load::start(&stage.history, &stage.client, PRODUCERS, &Act::Wait { ms: 20 });
    let (mut resumed, mut deadlocks) = (Vec::new(), 0);
    progress(&mut stage).await;
    for _ in 0..rounds {
        stage.charge(20, 50).await;
        // The server forgets its counts in a crash.
        deadlocks += stage.deadlocks();
        cluster.stop().unwrap();
        cluster.start_again().unwrap();
        let since = Instant::now();
        progress(&mut stage).await;
        resumed.push(since.elapsed());
    }
    load.stop().await;
    let (mut line, record) = PassLine::measure(&mut stage).await;
    line.deadlocks += deadlocks;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let succeeded = record.succeeded();
    let slowest = resumed.iter().max().copied().unwrap_or_default();
    let unanswered = stage.history.unknowns();
    let mut report = Report::default();
    report.number(format!(
        "{rounds} restarts: {} acknowledged, {unanswered} enqueues failed and were repeated, {} of them had been stored; \
         {alive} of 2 processes alive; {PROGRESS} more stored and done {:.1} s after the server was ready at the latest; \
         attempts {:?}, {} refused",
        stage.history.count(),
        stage.history.repeated(),
        slowest.as_secs_f64(),
        record.tally(),
        record.refused.len()
    ));
    report.must(alive == 2, "no process ends");
    report.must(succeeded.len() == stage.history.count(), "every job ends, and none is stored that nobody asked for");
    report.must(slowest <= RESUME * size.slack(), format!("all go on within {RESUME:?}, not {slowest:.1?}"));
    report.must(unanswered >= rounds, "producers met the faults");
    report.line(line);
    report.bite(resumed.len(), rounds, "restarts under load");
    report
}

async fn outage(size: Size) -> Report {
    // Long enough that every lease ends and every part of a process has something to complain about.
    let away = Duration::from_secs(size.pick(20, 60));
    let mut cluster = Postgres::start(&Options { fsync: true, ..Options::default() }).unwrap();
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let through = Place::Postgres(through);
    let mut workers: Vec<Process> = (0..2).map(|n| stage.worker_at(&through, &format!("w{n}"), &FLAGS)).collect();
    let load = Load::start(&stage.history, &stage.client, PRODUCERS, &Act::Wait { ms: 20 });
    progress(&mut stage).await;
    // Every slot is in the middle of something when the outage begins.
    for _ in 0..2 * SLOTS {
        stage.history.enqueue(&stage.client, Act::Wait { ms: 3_000 }).await;
    }
    watch("every slot is taken", async || (stage.count("start") - stage.count("end") >= 2 * SLOTS - 4).then_some(()))
        .await;
    let steady = backends(&stage);
    let memory: Vec<u64> = workers.iter().map(Process::resident_mib).collect();
    cluster.stop().unwrap();
    let down = Instant::now();
    watch("the outage is over", async || (down.elapsed() >= away).then_some(())).await;
    let lines = |worker: &Process| worker.log_lines().iter().filter(|line| line.at >= down).count();
    let rates: Vec<f64> = workers.iter().map(|worker| lines(worker) as f64 / down.elapsed().as_secs_f64()).collect();
    let grown: Vec<u64> =
        workers.iter().zip(&memory).map(|(worker, before)| worker.resident_mib().saturating_sub(*before)).collect();
    cluster.start_again().unwrap();
    let up = Instant::now();
    progress(&mut stage).await;
    let resumed = up.elapsed();
    watch("the first second is over", async || (up.elapsed() >= Duration::from_secs(1)).then_some(())).await;
    let connects = proxy.accepted_between(up, up + Duration::from_secs(1));
    load.stop().await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let mut report = Report::default();
    report.number(format!(
        "{away:?} away: {alive} of 2 processes alive; log lines/s {rates:.2?}; memory grew by {grown:?} MiB; {connects} connections \
         in the first second, {steady} are usual; {PROGRESS} more stored and done after {:.1} s; attempts {:?}, {} refused",
        resumed.as_secs_f64(),
        record.tally(),
        record.refused.len()
    ));
    report.must(alive == 2, "no process ends");
    report.must(record.succeeded().len() == stage.history.count(), "every job ends");
    report.must(rates.iter().all(|rate| *rate <= LINES_PER_SECOND), "nobody floods the log");
    report.must(rates.iter().all(|rate| *rate > 0.0), "and everybody says what is wrong");
    report.must(grown.iter().all(|mib| *mib < GROWTH_MIB), "memory is bounded");
    report.must(connects <= 3 * steady, "no herd when it is back");
    report.line(line);
    report.bite(stage.history.unknowns(), 10, "enqueues that failed meanwhile");
    report
}

/// Connections to the database besides the one that asks.
fn backends(stage: &Stage) -> usize {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    stage.sql(sql).parse().unwrap()
}

/// Waits until more is acknowledged and more is done than now.
async fn progress(stage: &mut Stage) {
    let (acknowledged, done) = (stage.history.count(), stage.count("end"));
    watch("producers and workers go on", async || {
        (stage.history.count() >= acknowledged + PROGRESS && stage.count("end") >= done + PROGRESS).then_some(())
    })
    .await;
}
