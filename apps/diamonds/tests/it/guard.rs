//! Messages that come twice, too early or too late, and workers that come back from the dead.

use std::time::Duration;

use diamonds::deliver::{self, Delivered};
use diamonds::work_item::WorkItem;
use diamonds::world::{Act, Ask, Fault};
use kit::Valve;
use kit::testing::Place;
use tenure::store::clock::{Clock, ManualClock};
use tenure::{Client, How, JobId, JobState, RunId, RunState};

use crate::bed::{Bed, listed};
use crate::log;

kit::on_each_store! { diamonds::TABLES;
    a_message_that_comes_again_or_out_of_order_changes_nothing,
    a_message_is_known_by_its_id_for_ten_minutes,
    how_long_a_message_is_known_can_be_set,
    a_message_for_a_page_that_failed_lets_it_go_on,
    a_message_for_a_run_that_was_canceled_changes_nothing,
    the_job_of_a_page_whose_turn_is_over_is_skipped,
    the_job_of_a_page_whose_turn_has_not_come_is_refused,
    a_page_that_is_not_the_next_any_more_when_it_came_is_refused,
    the_job_of_a_page_of_a_completed_partition_is_skipped,
    of_two_workers_with_one_page_only_one_moves_the_partition,
    a_page_whose_successor_cannot_be_stored_is_tried_again_whole,
}

/// The message of a page of the only partition.
async fn message(bed: &Bed, run: RunId, offset: u64) -> Vec<u8> {
    let page = &bed.pages().await[0];
    let first: WorkItem = serde_json::from_str(page.payload.as_str()).unwrap();
    assert_eq!(first.run_id, run);
    WorkItem { offset, ..first }.to_json().to_string().into_bytes()
}

/// Sends the message of a page, and answers what came of it.
async fn deliver(bed: &Bed, run: RunId, offset: u64) -> Delivered {
    let sent = deliver::send(&bed.client, &bed.settings, &message(bed, run, offset).await).await.unwrap();
    bed.control().await;
    serde_json::from_value(bed.result(sent.job()).await).unwrap()
}

/// Shows: S2.18 S2.19 S2.20 S2.51 S2.58
async fn a_message_that_comes_again_or_out_of_order_changes_nothing(place: Place) {
    log::keep();
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let held = bed.work_until_held(60).await;
    let (calls, raw, partition) = (bed.calls(), bed.raw().await, bed.partition(run).await);
    assert_eq!((calls, raw.len(), partition.next_offset), (3, 60, 60));
    for (offset, delivered) in [
        (0, Delivered::OffsetMismatch { expected: 60, got: 0 }),
        (30, Delivered::OffsetMismatch { expected: 60, got: 30 }),
        (90, Delivered::OffsetMismatch { expected: 60, got: 90 }),
        (60, Delivered::OnItsWay),
    ] {
        assert_eq!(deliver(&bed, run, offset).await, delivered);
    }
    assert_eq!((bed.calls(), bed.pages().await.len()), (calls, 3), "nobody was called, and there is no other page");
    assert_eq!((bed.raw().await, bed.partition(run).await.next_offset), (raw, 60));
    let id = |offset: u64| WorkItem::by_hand(&partition, offset).unwrap().message_id();
    assert_eq!(log::lines_with(&["offset_mismatch", &id(30), "expected=60", "got=30"]).len(), 1);
    assert!(log::lines_with(&["offset_mismatch", &id(60)]).is_empty(), "what is on its way is no mismatch");

    held.go_on().await;
    assert_eq!((bed.raw().await, bed.calls()), (listed(&bed.world), 4));
    bed.advance(600);
    for offset in [0, 90, 95, 120] {
        assert_eq!(deliver(&bed, run, offset).await, Delivered::Completed);
    }
    assert_eq!((bed.calls(), bed.partition(run).await.next_offset, bed.work_done().await.len()), (4, 95, 1));
}

/// Shows: S2.32 S2.49
async fn a_message_is_known_by_its_id_for_ten_minutes(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let (zero, thirty) = (message(&bed, run, 0).await, message(&bed, run, 30).await);
    let send = async |message: &[u8]| deliver::send(&bed.client, &bed.settings, message).await.unwrap();
    let first = send(&zero).await;
    assert!(first.created().is_some());
    bed.control().await;
    bed.advance(599);
    let again = send(&zero).await;
    assert_eq!((again.created(), again.job()), (None, first.job()), "found, though it was done long ago");
    assert!(send(&thirty).await.created().is_some(), "another page is another message");
    bed.advance(1);
    assert!(send(&zero).await.created().is_some(), "ten minutes later it is new");
}

/// Shows: S2.60
async fn how_long_a_message_is_known_can_be_set(place: Place) {
    let bed = Bed::with(place, 95, &[("DIAMONDS_WINDOW_SECONDS", "60")]).await;
    let run = bed.schedule().await;
    let message = message(&bed, run, 0).await;
    let is_new = async || deliver::send(&bed.client, &bed.settings, &message).await.unwrap().created().is_some();
    assert!(is_new().await);
    bed.advance(59);
    assert!(!is_new().await);
    bed.advance(1);
    assert!(is_new().await);
}

/// Shows: S2.57
async fn a_message_for_a_page_that_failed_lets_it_go_on(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(Ask::Page { min: None, offset: Some(30) }, Act::Status(404)).times(1));
    bed.work().await;
    assert_eq!(bed.partition(run).await.state, RunState::Failed);
    assert_eq!(deliver(&bed, run, 0).await, Delivered::OffsetMismatch { expected: 30, got: 0 });
    assert_eq!(deliver(&bed, run, 30).await, Delivered::Resumed);
    bed.work().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
    let unknown = message(&bed, run, 0).await;
    let unknown = String::from_utf8(unknown).unwrap().replace(&run.to_string(), "019aa0c4-7b5a-7000-8000-000000000001");
    let sent = deliver::send(&bed.client, &bed.settings, unknown.as_bytes()).await.unwrap().job();
    bed.control().await;
    let record = bed.show(sent).await;
    assert_eq!(record.summary.state, JobState::Failed);
    assert!(record.summary.error.unwrap().as_str().contains("there is no partition"));
}

async fn a_message_for_a_run_that_was_canceled_changes_nothing(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    bed.world.fault(Fault::on(Ask::Page { min: None, offset: Some(30) }, Act::Status(404)).times(1));
    bed.work().await;
    assert_eq!(bed.partition(run).await.state, RunState::Failed);
    assert!(bed.client.cancel_run(run).await.unwrap());
    assert_eq!(deliver(&bed, run, 30).await, Delivered::Canceled);
    bed.work().await;
    assert_eq!((bed.calls(), bed.run(run).await.run.state), (2, RunState::Canceled));
}

/// Shows: S2.19 S2.57 S2.58
async fn the_job_of_a_page_whose_turn_is_over_is_skipped(place: Place) {
    log::keep();
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let partition = bed.partition(run).await;
    // The partition is reset to 60 with another job, and the job of its first page is delivered all the same.
    bed.reset(&partition, 60).await;
    bed.client.requeue(partition.job).await.unwrap();
    let held = bed.work_until_held(60).await;
    held.go_on().await;

    let old = bed.show(partition.job).await;
    let result = bed.result(partition.job).await;
    assert_eq!((old.summary.state, result["skipped"].as_str()), (JobState::Succeeded, Some("offset_mismatch")));
    assert_eq!(result["got"], 0);
    assert!(result["expected"].as_u64().unwrap() >= 60, "{result}");
    let id = format!("{run}:{}:0", partition.name);
    assert_eq!(log::lines_with(&["offset_mismatch", &id, "got=0"]).len(), 1);
    // Two pages: 30 stones from 60 on, and five.
    assert_eq!((bed.calls(), bed.raw().await.len()), (2, 35));
    assert_eq!(bed.partition(run).await.next_offset, 95);
}

/// Shows: S2.20 S2.58
async fn the_job_of_a_page_whose_turn_has_not_come_is_refused(place: Place) {
    log::keep();
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let partition = bed.partition(run).await;
    // The partition begins at 60 and then at 0 after all, and the job of the page at 60 is delivered all the same.
    let sixty = bed.reset(&partition, 60).await;
    bed.advance(1);
    bed.reset(&partition, 0).await;
    bed.client.requeue(sixty).await.unwrap();
    let held = bed.work_until_held(0).await;
    bed.worker("worker-2").run_until_idle().await.unwrap();
    refused_at_sixty(&bed, run, sixty).await;
    let id = format!("{run}:{}:60", partition.name);
    assert_eq!(log::lines_with(&["offset_mismatch", &id, "expected=0", "got=60"]).len(), 1);
    assert_eq!((bed.calls(), bed.raw().await.len()), (1, 0), "nobody but the page at 0 has called");
    held.go_on().await;
    assert_eq!((bed.raw().await, bed.calls()), (listed(&bed.world), 4));
}

/// Shows: S2.20
async fn a_page_that_is_not_the_next_any_more_when_it_came_is_refused(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let mut held = bed.work_until_held(60).await;
    let (partition, raw) = (bed.partition(run).await, bed.raw().await);
    // It is reset while the page at 60 is at the supplier's; the first page is kept there then.
    let zero = bed.hold(0);
    bed.reset(&partition, 0).await;
    std::mem::replace(&mut held.valve, zero).open();
    bed.wait_for_page(0).await;
    assert_eq!((bed.raw().await, bed.partition(run).await.rows), (raw, 0), "nothing of it is stored");
    refused_at_sixty(&bed, run, partition.job).await;
    held.go_on().await;
    assert_eq!((bed.raw().await, bed.partition(run).await.next_offset), (listed(&bed.world), 95));
}

async fn refused_at_sixty(bed: &Bed, run: RunId, job: JobId) {
    let (result, partition) = (bed.result(job).await, bed.partition(run).await);
    let expected = serde_json::json!({ "skipped": "offset_mismatch", "expected": 0, "got": 60 });
    assert_eq!((result, partition.next_offset), (expected, 0));
}

/// Shows: S2.18
async fn the_job_of_a_page_of_a_completed_partition_is_skipped(place: Place) {
    let bed = Bed::with(place, 600, &[("DIAMONDS_PARTITION_SIZE", "200")]).await;
    let run = bed.schedule().await;
    let partitions = bed.partitions(run).await;
    let (done, other) = (&partitions[0], partitions.iter().skip(1).find(|it| it.expected > Some(30)).unwrap());
    // Its first job is canceled by a reset; another one reads it to its end, while its run is kept open by a second partition.
    bed.reset(done, 0).await;
    let held = bed.work_until_held_of(other, 30).await;
    bed.worker("worker-2").run_until_idle().await.unwrap();
    let now = async || bed.partitions(run).await.into_iter().find(|it| it.name == done.name).unwrap();
    let (before, calls, pages) = (now().await, bed.calls(), bed.pages().await.len());
    assert_eq!((before.state, before.rows), (RunState::Succeeded, done.expected.unwrap()));

    bed.client.requeue(done.job).await.unwrap();
    bed.worker("worker-2").run_until_idle().await.unwrap();
    let record = bed.show(done.job).await;
    assert_eq!((record.summary.state, record.attempts.last().unwrap().how), (JobState::Canceled, How::Canceled));
    assert_eq!((now().await, bed.calls(), bed.pages().await.len()), (before, calls, pages));
    held.go_on().await;
    assert_eq!((bed.run(run).await.run.state, bed.raw().await), (RunState::Succeeded, listed(&bed.world)));
    assert_eq!(bed.work_done().await.len(), partitions.len());
}

/// Shows: S2.21 S2.50 S2.51
async fn of_two_workers_with_one_page_only_one_moves_the_partition(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    let held = bed.work_until_held_by(bed.worker("slow"), 30).await;
    bed.advance(bed.settings.lease.as_secs() + 1);
    assert_eq!(bed.client.store().reclaim_jobs(None, 10).await.unwrap().len(), 1);
    bed.worker("quick").run_until_idle().await.unwrap();
    assert_eq!((bed.raw().await, bed.run(run).await.run.state), (listed(&bed.world), RunState::Succeeded));
    held.go_on().await;

    let page = &bed.pages().await[1];
    let seen: Vec<(How, Option<&str>)> = page.attempts.iter().map(|it| (it.how, it.worker.as_deref())).collect();
    assert_eq!(seen, [(How::Lost, Some("slow")), (How::Succeeded, Some("quick"))]);
    // The slow one fetched the page a second time, and nothing came of it.
    assert_eq!((bed.calls(), bed.pages().await.len()), (5, 4));
    let partition = bed.partition(run).await;
    assert_eq!((partition.rows, partition.next_offset, bed.work_done().await.len()), (95, 95, 1));
    assert_eq!(bed.raw().await, listed(&bed.world));
}

/// Shows: S2.03 S2.27
async fn a_page_whose_successor_cannot_be_stored_is_tried_again_whole(place: Place) {
    let bed = Bed::open(place, 95).await;
    let run = bed.schedule().await;
    // Ids of jobs carry the time, and one that is days off is refused: a worker whose clock is wrong stores no next page.
    let wrong = ManualClock::new(bed.place.clock.now().plus(Duration::from_secs(3 * 86_400)));
    let client = Client::new(&bed.place.database).with_clock(Clock::Manual(wrong.clone()));
    let builder = bed.place.worker().name("worker-1").client(client);
    let worker = diamonds::worker::worker(builder, bed.diamonds.clone()).build().unwrap();
    let (about, valve) = (Ask::Page { min: None, offset: Some(0) }, Valve::shut());
    bed.world.fault(Fault::on(about, Act::Hold(valve.clone())).times(1));
    bed.world.fault(Fault::on(about, Act::Hold(Valve::opened())).times(1));
    let working = tokio::spawn(async move { worker.run_until_idle().await.unwrap() });
    bed.world.traffic().wait_for("page", |count| count.calls == 2).await;

    let partition = bed.partition(run).await;
    assert_eq!((partition.next_offset, partition.rows, bed.raw().await.len()), (0, 0, 0), "all of it, or nothing");
    assert_eq!(bed.pages().await.len(), 1);
    wrong.set(bed.place.clock.now());
    valve.open();
    working.await.unwrap();
    let pages = bed.pages().await;
    assert_eq!(pages[0].attempts.iter().map(|it| it.how).collect::<Vec<_>>(), [How::Retry, How::Succeeded]);
    assert_eq!((pages.len(), bed.raw().await), (4, listed(&bed.world)));
}
