//! How far a partition is, and how people see it.

use diamonds::monitor::{self, STUCK_AFTER};
use diamonds::settings::Settings;
use diamonds::work_item::WorkItem;
use diamonds::world::{Act, Ask, Fault};
use kit::Env;
use kit::testing::Place;
use tenure::core::Part;
use tenure::{JobState, PartitionRecord, RunState, row};

use crate::bed::{Bed, listed, prices};

kit::on_each_store! { diamonds::TABLES;
    offsets_are_thirty_sixty_and_ninety_and_a_short_page_is_the_last,
    an_empty_page_completes_the_partition_where_it_was_asked_for,
    every_page_is_the_same_work_item_but_for_its_offset,
    a_total_that_was_counted_wrongly_changes_nothing,
    a_page_is_locked_for_two_minutes,
    one_name_in_two_runs_is_two_partitions,
    a_partition_has_one_page_on_its_way,
    a_partition_without_progress_in_ten_minutes_is_stuck,
    open_runs_tell_completed_expected_and_failed_partitions,
}

/// Shows: S2.07 S2.09 S2.10 S2.24 S2.25 S2.34 S2.52
async fn offsets_are_thirty_sixty_and_ninety_and_a_short_page_is_the_last(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let new = bed.partition(run).await;
    assert_eq!((new.next_offset, new.rows, new.state, new.started_at), (0, 0, RunState::Queued, None));
    assert_eq!((new.created_at, new.moved_at), (bed.place.clock.now(), bed.place.clock.now()));
    bed.advance(1);
    let mut held = bed.work_until_held(30).await;
    let started = bed.place.clock.now();
    for offset in [30, 60, 90] {
        let PartitionRecord { next_offset, rows, state, started_at, moved_at, .. } = bed.partition(run).await;
        assert_eq!((next_offset, rows, state), (offset, offset, RunState::Running));
        assert_eq!(
            (started_at, moved_at),
            (Some(started), bed.place.clock.now()),
            "begun by its first page, moved by each"
        );
        bed.advance(1);
        if offset < 90 {
            let next = bed.hold(offset + 30);
            held.valve.open();
            bed.wait_for_page(offset + 30).await;
            held.valve = next;
        }
    }
    held.go_on().await;
    let ended = bed.partition(run).await;
    assert_eq!((ended.next_offset, ended.rows, ended.state), (95, 95, RunState::Succeeded));
    assert_eq!((ended.created_at, ended.moved_at, bed.calls()), (new.created_at, bed.place.clock.now(), 4));
}

/// Shows: S2.23 S2.25
async fn an_empty_page_completes_the_partition_where_it_was_asked_for(place: Place) {
    let bed = Bed::open(place, 90).await;
    let run = bed.schedule().await;
    bed.work().await;
    let ended = bed.partition(run).await;
    assert_eq!((ended.next_offset, ended.rows, ended.state), (90, 90, RunState::Succeeded));
    assert_eq!((bed.calls(), bed.pages().await.len()), (4, 4), "the last of them was empty");
    assert_eq!(bed.work_done().await[0]["recordsProcessed"], 90);

    let bed = Bed::open(bed.place, 0).await;
    let run = bed.schedule().await;
    bed.work().await;
    let ended = bed.partition(run).await;
    assert_eq!((ended.next_offset, ended.state, bed.calls()), (0, RunState::Succeeded, 1));
}

/// Shows: S2.16
async fn a_total_that_was_counted_wrongly_changes_nothing(place: Place) {
    let bed = Bed::open(place, 95).await;
    for wrong in [12, 4_000] {
        bed.world.fault(Fault::on(Ask::Count, Act::Say(format!("{{\"count\": {wrong}}}"))).times(1));
        let run = bed.schedule().await;
        let first: WorkItem = serde_json::from_str(bed.pages().await.last().unwrap().payload.as_str()).unwrap();
        assert_eq!((first.total_records, bed.partition(run).await.expected), (Some(wrong), Some(wrong)));
        bed.work().await;
        let ended = bed.partition(run).await;
        assert_eq!((ended.next_offset, ended.state), (95, RunState::Succeeded), "pages go on by what comes");
    }
    assert_eq!((bed.raw().await, bed.sold().await), (listed(&bed.world), 95));
}

/// The offset of a page stands beside its body, which is the first page's.
///
/// Shows: S2.14 S2.26 S2.31 S2.33
async fn every_page_is_the_same_work_item_but_for_its_offset(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    bed.work().await;
    let (partition, pages) = (bed.partition(run).await, bed.pages().await);
    let first: WorkItem = serde_json::from_str(pages[0].payload.as_str()).unwrap();
    assert_eq!((first.run_id, &first.partition_id, first.limit), (run, &partition.name, partition.limit));
    assert_eq!((first.trace_id.as_str(), first.limit, first.total_records), ("trace-7", 30, Some(95)));
    for (page, offset) in pages.iter().zip([0, 30, 60, 90]) {
        assert_eq!(serde_json::from_str::<WorkItem>(page.payload.as_str()).unwrap(), first);
        let part = Part::Page { run, partition: partition.name.clone(), offset };
        assert_eq!(page.part, Some(part.clone()));
        assert_eq!(part.to_string(), WorkItem { offset, ..first.clone() }.message_id());
    }
}

/// Shows: S2.47
async fn a_page_is_locked_for_two_minutes(place: Place) {
    let bed = Bed::open(place, 95).await;
    bed.schedule().await;
    let held = bed.work_until_held(0).await;
    let page = &bed.pages().await[0];
    assert_eq!(page.lease_expires_at.unwrap().since(bed.place.clock.now()).as_secs(), 120);
    held.go_on().await;
}

/// Shows: S2.11 S2.46
async fn one_name_in_two_runs_is_two_partitions(place: Place) {
    let bed = Bed::open(place, 95).await;
    let one = bed.schedule().await;
    bed.work().await;
    let other = bed.schedule().await;
    let (done, new) = (bed.partition(one).await, bed.partition(other).await);
    assert_eq!((done.name == new.name, done.next_offset, new.next_offset), (true, 95, 0));
    bed.work().await;
    assert_eq!((bed.partition(other).await.next_offset, bed.raw().await), (95, listed(&bed.world)));
    let select = "select cast(count(*) as bigint) as n from diamonds_raw where run_id = $1";
    let theirs = bed.place.database.query(select, row![other]).await.unwrap();
    assert_eq!(theirs[0].get::<i64>("n").unwrap(), 95, "a stone that is there is updated");
    assert_eq!(bed.place.count("select count(*) as n from diamonds_raw").await, 95);
}

/// Shows: S2.53
async fn a_partition_has_one_page_on_its_way(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "100")]).await;
    let run = bed.schedule().await;
    let partitions = bed.partitions(run).await.len();
    let depth = async || bed.pages().await.iter().filter(|page| page.summary.state != JobState::Succeeded).count();
    assert_eq!(depth().await, partitions);
    let held = bed.work_until_held_of(&bed.partitions(run).await[1], 30).await;
    assert!(depth().await <= partitions, "{} of {partitions}", depth().await);
    held.go_on().await;
    assert_eq!(depth().await, 0);
    assert!(Settings::read(&Env::of(&[])).unwrap().limits.partitions_max < 100);
}

/// Shows: S2.55
async fn a_partition_without_progress_in_ten_minutes_is_stuck(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    bed.advance(STUCK_AFTER.as_secs() - 1);
    assert!(monitor::stuck_partitions(&bed.client).await.unwrap().is_empty());
    bed.advance(2);
    let stuck = monitor::stuck_partitions(&bed.client).await.unwrap();
    assert_eq!((stuck.len(), stuck[0].run, STUCK_AFTER.as_secs()), (1, run, 600));
    bed.work().await;
    assert!(monitor::stuck_partitions(&bed.client).await.unwrap().is_empty(), "it has ended");
}

/// Shows: S2.56
async fn open_runs_tell_completed_expected_and_failed_partitions(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    // Another product has a run in the same database.
    let enqueue = || bed.client.enqueue(diamonds::tell::Tell {});
    bed.client.new_run().source("ledger").partition("p", enqueue(), 30).await.unwrap();
    let mut partitions = bed.partitions(run).await;
    assert_eq!(monitor::active_partitions(&bed.client).await.unwrap().len(), partitions.len());
    let [open] = monitor::open_runs(&bed.client).await.unwrap().try_into().unwrap();
    assert_eq!((open.id, open.run.done, open.run.total, open.run.failed), (run, 0, partitions.len() as u64, 0));
    partitions.sort_by_key(prices);
    let (total, last) = (partitions.len() as u64, &partitions[partitions.len() - 1]);
    // The cheapest partition fails, the dearest is held in its second page, and another worker does all the others.
    bed.world.fault(Fault::on(Ask::page_of(prices(&partitions[0]), 0), Act::Status(404)));
    let held = bed.work_until_held_of(last, 30).await;
    bed.worker("worker-2").run_until_idle().await.unwrap();
    let [open] = monitor::open_runs(&bed.client).await.unwrap().try_into().unwrap();
    assert_eq!((open.run.done, open.run.total, open.run.failed), (total - 2, total, 1));
    held.go_on().await;
    let ended = bed.run(run).await;
    assert_eq!((ended.run.done, ended.run.failed, ended.run.state), (total - 1, 1, RunState::Failed));
    assert!(monitor::open_runs(&bed.client).await.unwrap().is_empty(), "it has ended");
}
