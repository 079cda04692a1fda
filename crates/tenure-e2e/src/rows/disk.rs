//! F22: the database's disk is full: enqueues are refused as not available, nothing that was acknowledged is lost, and all
//! go on when there is room again.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tenure_cluster::postgres_server::{Options, Postgres};

use crate::Act;
use crate::history::Load;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F22",
    fault: "the disk is full",
    injected: "data and log of Postgres on a tmpfs of 256 MiB, filled to the last byte under load, and emptied",
    run: |size| Box::pin(run(size)),
};

const LEASE: Duration = Duration::from_secs(5);
const PROGRESS: usize = 50;
const RECOVERY: Duration = Duration::from_secs(10);

async fn run(size: Size) -> Report {
    let (rounds, full_for) = size.pick((1, Duration::from_secs(2)), (3, Duration::from_secs(10)));
    let settings = [("max_wal_size", "64MB"), ("min_wal_size", "32MB"), ("checkpoint_timeout", "30s")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = Options { disk_mib: Some(256), fsync: true, settings, ..Options::default() };
    let mut cluster = match Postgres::start(&options) {
        Ok(cluster) => cluster,
        Err(error) if error.to_string().contains("no small disk") => return Report::impossible(error.to_string()),
        Err(error) => panic!("{error}"),
    };
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let mut workers: Vec<Process> =
        (0..2).map(|n| stage.worker(&format!("w{n}"), &["--queue", "default=16"])).collect();
    let load = Load::start(&stage.history, &stage.client, 4, &Act::Wait { ms: 5 });
    let (mut recovered, mut refused, mut restarts) = (Vec::new(), 0, 0);
    progress(&mut stage).await;
    for _ in 0..rounds {
        let unanswered = stage.history.unknowns();
        let ballast = fill(&cluster.data_dir());
        watch("enqueues are refused", async || (stage.history.unknowns() > unanswered + 5).then_some(())).await;
        let since = Instant::now();
        watch("it is full for a while", async || (since.elapsed() >= full_for).then_some(())).await;
        refused += stage.history.unknowns() - unanswered;
        std::fs::remove_file(ballast).unwrap();
        let since = Instant::now();
        // A server that could not even write its log has given up; somebody starts it again.
        if !cluster.is_ready() {
            restarts += 1;
            cluster.start_again().unwrap();
        }
        progress(&mut stage).await;
        recovered.push(since.elapsed());
    }
    load.stop().await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let log = cluster.log();
    let (errors, panics) = (log.matches("No space left on device").count(), log.matches("PANIC:").count());
    let slowest = recovered.iter().max().copied().unwrap_or_default();
    let mut report = Report::default();
    report.number(format!(
        "{rounds} times full: {} acknowledged, {refused} enqueues refused meanwhile as not available and repeated; {panics} panics of the server, \
         {restarts} restarts by hand; {PROGRESS} more stored and done {:.1} s after there was room at the latest; {alive} of 2 processes alive; \
         attempts {:?}",
        stage.history.count(),
        slowest.as_secs_f64(),
        record.tally()
    ));
    report.must(slowest <= RECOVERY * size.slack(), format!("all go on within {RECOVERY:?}, not {slowest:.1?}"));
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds, once");
    report.must(alive == 2, "no process ends");
    report.line(line);
    report.bite(errors, rounds, "times the server found no space");
    report
}

/// Takes all the room there is; answers with what.
fn fill(data: &Path) -> std::path::PathBuf {
    let path = data.join("ballast");
    let mut file = File::create(&path).unwrap();
    for block in [1 << 20, 4 << 10, 1] {
        let zeros = vec![0; block];
        while file.write(&zeros).is_ok_and(|written| written == block) {}
    }
    path
}

/// Waits until more is acknowledged and more is done than now.
async fn progress(stage: &mut Stage) {
    let (acknowledged, done) = (stage.history.count(), stage.count("end"));
    watch("producers and workers go on", async || {
        (stage.history.count() >= acknowledged + PROGRESS && stage.count("end") >= done + PROGRESS).then_some(())
    })
    .await;
}
