//! The database is frozen, not gone: connections stay open and nobody answers. What was on its way arrives much later.

use std::collections::HashSet;
use std::time::Duration;

use tenure_core::How;
use tenure_e2e::{Act, Place};

use crate::proxy::Proxy;
use crate::record::{Grant, Record};
use crate::stage::Stage;
use crate::watch::watch;

const LEASE: Duration = Duration::from_secs(2);
const HELD: usize = 8;
const MORE: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_database_is_survived() {
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
    proxy.freeze_all();
    let mut other = stage.worker("other", &["--queue", "default=16"]);
    watch("the jobs are taken over", async || {
        let taken = stage.noted("start").iter().filter(|entry| entry.worker == "other").count();
        (taken == HELD).then_some(())
    })
    .await;
    // Claims are given up after ten seconds, too. What was asked is still on its way, and nobody will hear the answer.
    watch("everybody has given up", async || cut_off.log().contains("still not available").then_some(())).await;
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
    let record = Record::prove(&*stage.store).await;
    let accepted = stale.iter().filter(|grant| record.ended[*grant] != How::Lost).count();
    let told = stage.count("told lease_lost");
    println!(
        "{HELD} jobs held by the one that was cut off: {told} handlers told, {accepted} stale accepted, {} late reports \
         refused; the proxy held back {} times; attempts {:?}",
        record.refused.len(),
        proxy.held_back(),
        record.tally()
    );
    assert_eq!((told.min(HELD), accepted), (HELD, 0));
    assert!(cut_off.ended().is_none(), "the process lives\n{}", cut_off.log());
}
