//! Whole processes, really killed and really told to stop.

use std::collections::BTreeMap;

use diamonds::deliver;
use diamonds::monitor::active_partitions;
use diamonds::work_item::WorkItem;
use diamonds::world::{Act, Fault, HELD};
use kit::testing::Place;
use kit::{Valve, until};
use tenure::{How, JobState, PartitionRecord, RunId, RunState};

use crate::bed::{Bed, listed};

kit::on_each_store_for_processes! { diamonds::TABLES;
    a_worker_killed_in_the_middle_of_a_page_leaves_nothing_of_it_and_another_goes_on,
    a_worker_that_is_told_to_stop_ends_its_page_and_takes_no_other,
    what_cannot_end_in_time_is_given_back_uncharged,
    twenty_thousand_stones_survive_kills_changes_and_duplicates,
    active_partitions_are_listed_the_last_moved_first,
}

/// Locks that end soon, so that nobody waits two minutes for a worker that was killed.
const SHORT: (&str, &str) = ("DIAMONDS_LEASE_SECONDS", "2");

async fn succeeded(bed: &Bed, run: RunId) {
    until("a run that has succeeded", async || {
        Ok((bed.client.show_run(run).await?.run.state == RunState::Succeeded).then_some(()))
    })
    .await
    .unwrap();
}

/// Shows: S2.05 S2.50 S2.51 S2.59
async fn a_worker_killed_in_the_middle_of_a_page_leaves_nothing_of_it_and_another_goes_on(place: Place) {
    let bed = Bed::with(place, 95, &[SHORT]).await;
    let run = bed.schedule().await;
    let _never_opened = bed.hold(30);
    let mut first = bed.start("worker-1");
    bed.wait_for_page(30).await;
    first.kill();
    assert_eq!((bed.partition(run).await.next_offset, bed.raw().await.len()), (30, 30));
    let _second = bed.start("worker-2");
    succeeded(&bed, run).await;

    let pages = bed.pages().await;
    let by = |page: usize| -> Vec<(How, &str)> {
        pages[page].attempts.iter().map(|attempt| (attempt.how, attempt.worker.as_deref().unwrap())).collect()
    };
    assert_eq!(by(0), [(How::Succeeded, "worker-1")]);
    assert_eq!(by(1), [(How::Lost, "worker-1"), (How::Succeeded, "worker-2")]);
    assert_eq!(by(2), [(How::Succeeded, "worker-2")]);
    assert_eq!((bed.calls(), pages.len()), (5, 4), "it went on at 30, not at 0");
    assert_eq!((bed.raw().await, bed.partition(run).await.rows), (listed(&bed.world), 95));
}

/// Shows: S2.42 S2.43
async fn a_worker_that_is_told_to_stop_ends_its_page_and_takes_no_other(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200"), ("DIAMONDS_SLOTS", "1")]).await;
    let run = bed.schedule().await;
    let valve = Valve::shut();
    bed.world.fault(Fault::on_pages(Act::Hold(valve.clone())).times(1));
    let mut worker = bed.start("worker-1");
    bed.world.traffic().wait_for(HELD, |held| held.now == 1).await;
    worker.terminate();
    worker.until_logged(&["SIGTERM", "no more claims"]).await;
    valve.open();
    assert_eq!(worker.ended().await.code(), Some(0));

    assert_eq!((bed.calls(), bed.raw().await.len()), (1, 30), "its page is committed, and no other was begun");
    let mut offsets: Vec<u64> = bed.partitions(run).await.iter().map(|partition| partition.next_offset).collect();
    offsets.sort_unstable();
    assert_eq!((offsets.pop(), offsets.iter().sum::<u64>()), (Some(30), 0));
    let waiting = bed.pages().await.iter().filter(|page| page.summary.state == JobState::Queued).count();
    assert_eq!(waiting, bed.partitions(run).await.len());
}

/// Shows: S2.44
async fn what_cannot_end_in_time_is_given_back_uncharged(place: Place) {
    let bed = Bed::with(place, 95, &[("DIAMONDS_GRACE_SECONDS", "0")]).await;
    let run = bed.schedule().await;
    let _never_opened = bed.hold(30);
    let mut worker = bed.start("worker-1");
    bed.wait_for_page(30).await;
    assert_eq!(connections(&bed).await > 0, bed.place.database.is_postgres());
    worker.terminate();
    assert_eq!(worker.ended().await.code(), Some(0));
    until("closed connections", async || Ok((connections(&bed).await == 0).then_some(()))).await.unwrap();

    let page = &bed.pages().await[1];
    assert_eq!((page.summary.state, page.summary.attempt, page.losses), (JobState::Queued, 0, 0));
    assert_eq!(page.attempts.iter().map(|attempt| attempt.how).collect::<Vec<_>>(), [How::Released]);
    assert_eq!((bed.partition(run).await.next_offset, bed.raw().await.len()), (30, 30));
    // Two minutes of lock are not waited for: it was given back.
    let _next = bed.start("worker-2");
    succeeded(&bed, run).await;
    assert_eq!(bed.raw().await, listed(&bed.world));
}

/// Shows: S2.04 S2.28 S2.35 S2.51
async fn twenty_thousand_stones_survive_kills_changes_and_duplicates(place: Place) {
    let bed = Bed::with(place, 20_000, &[SHORT, ("DIAMONDS_PARTITION_SIZE", "500")]).await;
    let run = bed.schedule().await;
    let as_it_was = listed(&bed.world);
    let mut workers: Vec<_> = (0..2).map(|n| bed.start(&format!("worker-{n}"))).collect();
    let mut offsets = BTreeMap::new();
    for kill in 1..=4 {
        until("more stones", async || Ok((bed.run(run).await.rows >= 4_000 * kill).then_some(()))).await.unwrap();
        never_back(&bed, run, &mut offsets).await;
        workers.remove(0).kill();
        bed.world.advance();
        workers.push(bed.start(&format!("again-{kill}")));
        send_twice(&bed, run).await;
    }
    succeeded(&bed, run).await;
    never_back(&bed, run, &mut offsets).await;

    assert_eq!(bed.raw().await, as_it_was, "the revision that was split, every stone of it, once");
    assert_eq!(bed.place.count("select count(*) as n from diamonds_stone").await, 20_000);
    let (record, partitions) = (bed.run(run).await, bed.partitions(run).await);
    assert_eq!((record.rows, record.run.done, record.run.failed), (20_000, partitions.len() as u64, 0));
    assert!(partitions.iter().all(|partition| partition.rows == partition.next_offset));
    assert_eq!(bed.work_done().await.len(), partitions.len());
    assert_eq!(bed.show(record.consolidate.unwrap()).await.attempts.last().unwrap().how, How::Succeeded);
    assert!(bed.client.store().find_violations(10).await.unwrap().is_empty());
}

/// Every partition is where it was, or further.
async fn never_back(bed: &Bed, run: RunId, before: &mut BTreeMap<String, u64>) {
    for partition in bed.partitions(run).await {
        let was = before.insert(partition.name.to_string(), partition.next_offset).unwrap_or(0);
        assert!(partition.next_offset >= was, "{} went back from {was}", partition.name);
    }
}

/// Sends messages of pages that are over, and of some that are far ahead.
async fn send_twice(bed: &Bed, run: RunId) {
    for partition in bed.partitions(run).await {
        let PartitionRecord { next_offset, .. } = partition;
        for offset in [0, next_offset.saturating_sub(30), next_offset + 60] {
            let message = WorkItem::by_hand(&partition, offset).unwrap().to_json().to_string();
            deliver::send(&bed.client, &bed.settings, message.as_bytes()).await.unwrap();
        }
    }
}

/// Connections of the first worker. A file has none.
async fn connections(bed: &Bed) -> i64 {
    if !bed.place.database.is_postgres() {
        return 0;
    }
    let count = "select count(*) as n from pg_stat_activity where datname = current_database() and application_name = 'worker-1'";
    bed.place.count(count).await
}

/// Shows: S2.54
async fn active_partitions_are_listed_the_last_moved_first(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "100")]).await;
    let run = bed.schedule().await;
    let valve = Valve::shut();
    bed.world.fault(Fault::on(diamonds::world::Ask::Page { min: None, offset: Some(30) }, Act::Hold(valve.clone())));
    let worker = bed.worker("worker-1");
    let working = tokio::spawn(async move { worker.run_until_idle().await.unwrap() });
    bed.world.traffic().wait_for(HELD, |held| held.now == 1).await;
    let active = active_partitions(&bed.client).await.unwrap();
    assert_eq!(active.len(), bed.partitions(run).await.iter().filter(|it| it.state.is_open()).count());
    assert!(active.len() > 3 && active.windows(2).all(|two| two[0].moved_at >= two[1].moved_at), "{active:?}");
    let by_name: Vec<_> = bed.partitions(run).await.into_iter().map(|it| it.name).collect();
    let listed: Vec<_> = active.into_iter().map(|it| it.name).collect();
    assert_ne!(listed, by_name, "they have moved in another order");
    valve.open();
    working.await.unwrap();
    assert!(active_partitions(&bed.client).await.unwrap().is_empty());
}
