//! An import that is canceled waits no more, and what nobody waits for is put aside.

use kit::testing::Place;
use links::import::Import;
use tenure::{JobFilter, JobState, KindName, RunState, row};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    an_import_is_canceled_and_its_run_with_it,
    a_link_that_nobody_waits_for_is_put_aside_unfetched,
    a_link_that_another_import_waits_for_goes_on,
    a_link_that_was_put_aside_is_due_when_somebody_imports_it,
    an_import_that_is_canceled_before_it_begins_never_runs,
    a_run_that_outlived_its_import_is_ended_by_its_next_look,
    a_run_that_outlived_its_import_is_ended_by_a_second_word,
    a_begin_that_is_repeated_after_the_end_changes_nothing,
    a_link_that_was_doomed_and_put_aside_is_due_when_somebody_imports_it,
    what_has_ended_cannot_be_canceled,
}

async fn cancel(bed: &Bed, user: &str, id: &str) -> Option<bool> {
    Import::cancel(&bed.client, bed.database(), user, id).await.unwrap()
}

/// Shows: S1.08
async fn an_import_is_canceled_and_its_run_with_it(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/", "http://broken.example/"]).await;
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("running", 2, 1, 0));
    assert_eq!(cancel(&bed, "ada", &id).await, Some(true));
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("canceled", 2, 1, 0));
    assert!(bed.find("ada", &id).await.finished_at.is_some());
    assert_eq!(bed.client.show_run(id.parse().unwrap()).await.unwrap().run.state, RunState::Canceled);
    assert_eq!(cancel(&bed, "ada", &id).await, Some(false), "it was before");
    // What ends later is not counted any more.
    bed.advance(300);
    bed.run_and_settle().await;
    assert_eq!(bed.counts("ada", &id).await, ("canceled", 2, 1, 0));
}

async fn a_link_that_nobody_waits_for_is_put_aside_unfetched(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    let id = bed.import("ada", &[url]).await;
    cancel(&bed, "ada", &id).await;
    bed.run_and_settle().await;
    let job = bed.show(url).await.summary;
    assert_eq!((bed.calls(url), job.state, job.attempt), (0, JobState::Queued, 0), "there, and no attempt is charged");
}

async fn a_link_that_another_import_waits_for_goes_on(place: Place) {
    let bed = Bed::open(place).await;
    let (shared, own) = ("http://a.example/shared", "http://a.example/own");
    let ada = bed.import("ada", &[shared, own]).await;
    let bob = bed.import("bob", &[shared]).await;
    cancel(&bed, "ada", &ada).await;
    bed.run_and_settle().await;
    assert_eq!((bed.calls(shared), bed.calls(own)), (1, 0));
    assert_eq!(bed.counts("bob", &bob).await, ("succeeded", 1, 1, 0));
    assert_eq!(bed.counts("ada", &ada).await, ("canceled", 2, 0, 0));
}

/// Shows: S1.20
async fn a_link_that_was_put_aside_is_due_when_somebody_imports_it(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    let id = bed.import("ada", &[url]).await;
    cancel(&bed, "ada", &id).await;
    bed.run().await;
    let job = bed.job(url).await;
    let id = bed.import("bob", &[url]).await;
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), bed.job(url).await), (1, job), "long before its day is over, by its own job");
    assert_eq!(bed.counts("bob", &id).await, ("succeeded", 1, 1, 0));
}

async fn an_import_that_is_canceled_before_it_begins_never_runs(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/"]).await;
    assert_eq!(cancel(&bed, "ada", &id).await, Some(true));
    assert_eq!(bed.find("ada", &id).await.status, "canceled");
    bed.run_and_settle().await;
    assert_eq!(bed.client.show_run(id.parse().unwrap()).await.unwrap().run.state, RunState::Canceled);
    assert_eq!(bed.counts("ada", &id).await, ("canceled", 1, 0, 0));
}

/// As if somebody had canceled it while its run was made, or had died before they could end it.
async fn forget_the_run(bed: &Bed, id: &str) {
    let update = "update link_import set canceled_at = created_at where id = $1";
    bed.database().execute(update, row![id]).await.unwrap();
    assert_eq!(run_state(bed, id).await, RunState::Running, "nobody has told it");
}

async fn run_state(bed: &Bed, id: &str) -> RunState {
    bed.client.show_run(id.parse().unwrap()).await.unwrap().run.state
}

async fn a_run_that_outlived_its_import_is_ended_by_its_next_look(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://broken.example/";
    let id = bed.import("ada", &[url]).await;
    bed.run_and_settle().await;
    forget_the_run(&bed, &id).await;
    bed.run_and_settle().await;
    assert_eq!(run_state(&bed, &id).await, RunState::Canceled);
    bed.advance(300);
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), bed.show(url).await.summary.state), (1, JobState::Queued), "nobody hastens it");
    let kind = Some(KindName::new("link.settle").unwrap());
    let looks = bed.client.store().list_jobs(&JobFilter { kind, ..JobFilter::default() }).await.unwrap();
    assert!(looks.iter().all(|look| look.state == JobState::Canceled), "{looks:?}");
}

async fn a_run_that_outlived_its_import_is_ended_by_a_second_word(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://broken.example/"]).await;
    bed.run_and_settle().await;
    forget_the_run(&bed, &id).await;
    assert_eq!(bed.find("ada", &id).await.status, "canceled");
    assert_eq!(cancel(&bed, "ada", &id).await, Some(true));
    assert_eq!(run_state(&bed, &id).await, RunState::Canceled);
    assert_eq!(cancel(&bed, "ada", &id).await, Some(false));
}

async fn a_begin_that_is_repeated_after_the_end_changes_nothing(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/"]).await;
    bed.run_and_settle().await;
    // Canceled in the moment in which it ended.
    bed.database().execute("update link_import set canceled_at = created_at", row![]).await.unwrap();
    let begin = bed.client.enqueue(links::begin::Begin { import: id.clone() }).await.unwrap().job();
    bed.run().await;
    assert_eq!(bed.client.show(begin).await.unwrap().summary.state, JobState::Succeeded);
    assert_eq!(bed.find("ada", &id).await.status, "succeeded");
}

async fn a_link_that_was_doomed_and_put_aside_is_due_when_somebody_imports_it(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    let id = bed.import("ada", &[url]).await;
    cancel(&bed, "ada", &id).await;
    // Its last attempt was written down and not reported.
    bed.database().execute("update link_canonical set state = 'doomed'", row![]).await.unwrap();
    bed.run().await;
    assert_eq!((bed.calls(url), bed.state(url).await.as_str()), (0, "open"));
    let id = bed.import("bob", &[url]).await;
    bed.run_and_settle().await;
    assert_eq!((bed.calls(url), bed.counts("bob", &id).await), (1, ("succeeded", 1, 1, 0)));
}

async fn what_has_ended_cannot_be_canceled(place: Place) {
    let bed = Bed::open(place).await;
    let id = bed.import("ada", &["http://a.example/"]).await;
    bed.run_and_settle().await;
    assert_eq!(cancel(&bed, "ada", &id).await, Some(false));
    assert_eq!(bed.find("ada", &id).await.status, "succeeded");
}
