//! F19: the database is frozen, not gone: connections stay open and nobody answers. What was on its way arrives much later.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tenure_core::How;

use crate::pass_line::PassLine;
use crate::proxy::Proxy;
use crate::record::{Grant, Record};
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

const LEASE: Duration = Duration::from_secs(2);
const HELD: usize = 8;
const MORE: usize = 200;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F19",
    fault: "the database is frozen, not dead",
    injected: "the proxy of one of two workers carries nothing in either direction, connections stay open",
    run: |size| Box::pin(run(size)),
};

async fn run(size: Size) -> Report {
    let freeze_for = size.pick(Duration::from_secs(1), Duration::from_secs(30));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", LEASE).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    let mut cut_off = stage.worker_at(&Place::Postgres(through), "cut_off", &["--queue", "default=16"]);
    stage.enqueue((0..HELD).map(|_| Act::Hold { gate: "go".into() }).collect()).await;
    let stale: HashSet<Grant> = watch("the jobs are held", async || {
        let starts: HashSet<Grant> = stage.noted("start").iter().map(|entry| (entry.job, entry.fence)).collect();
        (starts.len() == HELD).then_some(starts)
    })
    .await;
    let frozen_at = Instant::now();
    proxy.freeze_all();
    let mut other = stage.worker("other", &["--queue", "default=16"]);
    watch("the jobs are taken over", async || {
        let taken = stage.noted("start").iter().filter(|entry| entry.worker == "other").count();
        (taken == HELD).then_some(())
    })
    .await;
    // Claims are given up after ten seconds, too. What was asked is still on its way, and nobody will hear the answer.
    watch("everybody has given up", async || {
        (frozen_at.elapsed() >= freeze_for && cut_off.log().contains("still not available")).then_some(())
    })
    .await;
    let given_up = cut_off.log_lines().iter().filter(|line| line.text.contains("not available")).count();
    let frozen_for = frozen_at.elapsed();
    stage.enqueue((0..MORE).map(|_| Act::Wait { ms: 2 }).collect()).await;
    stage.gates.open("go").unwrap();
    proxy.thaw_all();
    watch("everything ends", async || {
        let record = Record::read(&*stage.store).await;
        (record.succeeded().len() == HELD + MORE).then_some(())
    })
    .await;
    // Work that only the one that was cut off can do, since the other is gone.
    other.kill();
    stage.enqueue((0..MORE).map(|_| Act::Wait { ms: 2 }).collect()).await;
    watch("the one that was cut off works again", async || {
        (Record::read(&*stage.store).await.succeeded().len() == HELD + 2 * MORE).then_some(())
    })
    .await;
    let (line, record) = PassLine::measure(&mut stage).await;
    let accepted = stale.iter().filter(|grant| record.ended[*grant] != How::Lost).count();
    let told = stage.count("told lease_lost");
    let mut report = Report::default();
    report.number(format!(
        "{frozen_for:.0?} frozen; {HELD} jobs held by the one that was cut off: {told} handlers told, {accepted} stale accepted, \
         {} late reports refused; the proxy held back {} times; attempts {:?}",
        record.refused.len(),
        proxy.held_back(),
        record.tally()
    ));
    report.must(told.min(HELD) == HELD, "every handler that was cut off is told");
    report.must(accepted == 0, "nothing stale is accepted");
    report.must(cut_off.ended().is_none(), format!("the process lives\n{}", cut_off.log()));
    report.line(line);
    report.bite(given_up, 1, "lines about calls given up");
    report
}
