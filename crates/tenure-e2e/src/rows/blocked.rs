//! F6: handlers that block every thread of the runtime for three lease times keep their leases: the keeper has its own.

use std::time::Duration;

use tenure_core::How;

use crate::pass_line::PassLine;
use crate::record::Record;
use crate::report::{Report, Row};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Entry};

const LEASE: Duration = Duration::from_secs(1);
const BLOCKED: Duration = Duration::from_millis(3_200);

/// The row.
pub(super) const ROW: Row = Row {
    id: "F6",
    fault: "handlers block every thread of the runtime for three leases",
    injected: "four handlers that sleep or spin on both threads; a bait whose holder is killed shows that somebody reclaims",
    run: |_| Box::pin(run()),
};

async fn run() -> Report {
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    stage.set_lease("bait", LEASE).await;
    // Whether the worker that stands by does take back what expires is seen by a bait, whose holder is killed.
    let stored = stage.client.enqueue(Act::Hold { gate: "bait".into() }).queue("bait").await.unwrap();
    stage.history.acknowledge(&[stored]);
    let mut baited = stage.worker("baited", &["--queue", "bait=1"]);
    let bait = watch("the bait is taken", async || stage.noted("start").first().cloned()).await;
    // Two lots that block both threads: one asleep, one burning the processor.
    let ms = u64::try_from(BLOCKED.as_millis()).unwrap();
    let acts = vec![Act::Block { ms }, Act::Block { ms }, Act::Spin { ms }, Act::Spin { ms }];
    let jobs = acts.len();
    stage.enqueue(acts).await;
    let _blocked = stage.worker("blocked", &["--queue", "default=4", "--threads", "2"]);
    watch("all jobs are held", async || {
        let queues = stage.store.list_queues().await.unwrap();
        queues.iter().any(|queue| queue.name.as_str() == "default" && queue.running == jobs as u64).then_some(())
    })
    .await;
    let _standby = stage.worker("standby", &["--queue", "default=4", "--queue", "bait=4", "--reclaim-ms", "100"]);
    baited.kill();
    watch("the bait is taken back and runs again", async || {
        stage.noted("start").iter().any(|entry| entry.job == bait.job && entry.worker == "standby").then_some(())
    })
    .await;
    let blocked_meanwhile = jobs - by(&stage.noted("end"), "blocked").len();
    stage.gates.open("bait").unwrap();
    watch("everything ends", async || {
        let record = Record::read(&*stage.store).await;
        (record.succeeded().len() == jobs + 1).then_some(())
    })
    .await;
    check(&mut stage, &bait, blocked_meanwhile).await
}

async fn check(stage: &mut Stage, bait: &Entry, blocked_meanwhile: usize) -> Report {
    let (line, record) = PassLine::measure(stage).await;
    let (starts, ends) = (stage.noted("start"), by(&stage.noted("end"), "blocked"));
    let longest = |entry: &Entry| {
        let start = starts.iter().find(|start| start.job == entry.job && start.fence == entry.fence).unwrap();
        Duration::from_micros(u64::try_from(entry.at - start.at).unwrap())
    };
    let blocked: Vec<Duration> = ends.iter().map(longest).collect();
    let mut report = Report::default();
    report.number(format!(
        "{} handlers blocked both threads for {blocked:.1?} with leases of {LEASE:?}; {blocked_meanwhile} still did when \
         the bait was taken back; attempts {:?}",
        blocked.len(),
        record.tally()
    ));
    report.must(record.ended[&(bait.job, bait.fence)] == How::Lost, "the bait shows that somebody reclaims");
    report.must(record.count(How::Lost) == 1, "nothing else is taken back");
    // Only while the reclaimer was at work is a blocked thread a bite.
    let long = blocked.iter().filter(|time| **time >= 3 * LEASE).count();
    report.bite(if blocked_meanwhile > 0 { long } else { 0 }, 4, "handlers that blocked for three leases");
    for end in &ends {
        report.must(starts.iter().filter(|start| start.job == end.job).count() == 1, "one start each");
        report.must(record.ended[&(end.job, end.fence)] == How::Succeeded, "on its first lease");
    }
    report.line(line);
    report
}

fn by(entries: &[Entry], worker: &str) -> Vec<Entry> {
    entries.iter().filter(|entry| entry.worker == worker).cloned().collect()
}
