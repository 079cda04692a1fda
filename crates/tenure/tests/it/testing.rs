//! `tenure::testing`, as a user's own tests use it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::TestBed;
use tenure::{Attempt, Client, Completed, Ctx, Fail, Job, JobState, SqliteStore, State};

const DAY: Duration = Duration::from_secs(86_400);

#[derive(Serialize, Deserialize, Job, Debug, PartialEq)]
#[job(kind = "invoice.send", queue = "mail", max_attempts = 3, backoff = "fixed 5m")]
struct SendInvoice {
    order: u64,
}

#[derive(Serialize, Deserialize, Job, Debug, PartialEq)]
#[job(kind = "invoice.remind")]
struct Remind {
    order: u64,
}

/// A mail server that is away for as many sends as are in it.
#[derive(Clone, Default)]
struct MailServer(Arc<Mutex<u32>>);

/// Sends, and enqueues a reminder.
async fn send(job: SendInvoice, State(server): State<MailServer>, ctx: Ctx) -> Result<(), Fail> {
    let away = {
        let mut away = server.0.lock().unwrap();
        *away = away.saturating_sub(1);
        *away > 0
    };
    if away {
        return Err(Fail::transient("the mail server is away"));
    }
    ctx.client().enqueue(Remind { order: job.order }).delay(14 * DAY).await?;
    Ok(())
}

async fn remind(_job: Remind) {}

fn bed(away: u32) -> TestBed {
    let server = MailServer(Arc::new(Mutex::new(away + 1)));
    TestBed::new().worker(|worker| worker.state(server).handle(send).handle(remind))
}

#[tokio::test]
async fn a_retry_runs_when_it_is_due_and_not_before() {
    let bed = bed(1);
    let job = bed.perform(SendInvoice { order: 42 }).await;
    assert_eq!((job.summary.state, job.attempts.len()), (JobState::Retryable, 1));
    assert_eq!(bed.run_until_idle().await.claimed, 0);
    bed.advance(Duration::from_secs(5 * 60 - 1));
    assert_eq!(bed.run_until_idle().await.claimed, 0);
    bed.advance(Duration::from_secs(1));
    assert_eq!(bed.run_until_idle().await.succeeded, 1);
    assert_eq!(bed.state_of(job.summary.id), JobState::Succeeded);
}

#[tokio::test]
async fn a_handler_may_enqueue_long_after_the_bed_was_made() {
    let bed = bed(0);
    bed.advance(100 * DAY);
    bed.perform(SendInvoice { order: 42 }).await;
    let reminder = bed.assert_enqueued(&Remind { order: 42 });
    assert_eq!(reminder.summary.run_at, bed.clock().now().plus(14 * DAY));
    assert_eq!(bed.advance_to_next_due(), Some(14 * DAY));
    assert_eq!(bed.run_until_idle().await.succeeded, 1);
    assert_eq!(bed.state_of(reminder.summary.id), JobState::Succeeded);
    assert_eq!(bed.advance_to_next_due(), None);
}

#[tokio::test]
async fn attempts_end_and_the_job_is_dead() {
    let bed = bed(10);
    let job = bed.perform(SendInvoice { order: 42 }).await.summary.id;
    while bed.advance_to_next_due().is_some() {
        bed.run_until_idle().await;
    }
    let record = bed.show(job);
    assert_eq!((record.summary.state, record.attempts.len()), (JobState::Dead, 3));
    bed.assert_not_enqueued_where(|_: &Remind| true);
}

#[tokio::test]
async fn an_inline_client_runs_what_it_enqueues_and_what_that_enqueues() {
    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "count.down")]
    struct CountDown(u32);
    async fn count_down(CountDown(left): CountDown, ctx: Ctx) -> Result<(), Fail> {
        if left > 0 {
            ctx.client().enqueue(CountDown(left - 1)).await?;
        }
        Ok(())
    }
    let bed = TestBed::new().worker(|worker| worker.handle(count_down));
    let first = bed.inline_client().enqueue(CountDown(3)).await.unwrap().job();
    assert_eq!(bed.state_of(first), JobState::Succeeded);
    let left: Vec<u32> = bed.enqueued::<CountDown>().into_iter().map(|CountDown(left)| left).collect();
    assert_eq!(left, [3, 2, 1, 0]);
    // Its jobs are due at once; only the ordinary client lets them wait.
    let waits = bed.client().enqueue(CountDown(0)).await.unwrap().job();
    assert_eq!(bed.state_of(waits), JobState::Queued);
}

#[tokio::test]
async fn a_handler_completes_in_the_transaction_of_the_beds_store() {
    async fn send(job: SendInvoice, State(store): State<SqliteStore>, attempt: Attempt) -> Result<Completed, Fail> {
        let insert = move |tx: &tenure::SqliteTransaction<'_, '_>| {
            tx.connection().execute("insert into sent (invoice) values (?1)", [i64::try_from(job.order)?])?;
            attempt.complete_in(tx)
        };
        store.transaction(insert).await
    }
    let bed = TestBed::new();
    let store = bed.store().clone();
    let create = |tx: &tenure::SqliteTransaction<'_, '_>| -> Result<(), Fail> {
        Ok(tx.connection().execute_batch("create table sent (invoice integer unique)")?)
    };
    store.transaction(create).await.unwrap();
    let bed = bed.worker(|worker| worker.state(store).handle(send));
    assert_eq!(bed.perform(SendInvoice { order: 42 }).await.summary.state, JobState::Succeeded);
    // The row of the second one is refused by the table, and so is its completion.
    let again = bed.perform(SendInvoice { order: 42 }).await;
    assert_eq!(again.summary.state, JobState::Retryable);
    assert!(again.summary.error.unwrap().as_str().contains("UNIQUE"));
}

#[tokio::test]
async fn assertions_hold_for_what_is_there_and_name_it_otherwise() {
    let bed = bed(0);
    let client: Client = bed.client();
    client.enqueue(SendInvoice { order: 41 }).delay(Duration::from_secs(60)).await.unwrap();
    client.enqueue(Remind { order: 1 }).await.unwrap();

    bed.assert_enqueued(&SendInvoice { order: 41 });
    bed.assert_enqueued_where(|job: &SendInvoice| job.order > 40);
    bed.assert_not_enqueued(&SendInvoice { order: 42 });
    bed.assert_not_enqueued_where(|job: &SendInvoice| job.order > 41);

    let there = "jobs of kind invoice.send: 1\n  {\"order\":41} queued in queue mail, due in 1m\n\
                 jobs of other kinds: 1 (invoice.remind)";
    let fails = |assertion: &dyn Fn()| {
        let panic = catch_unwind(AssertUnwindSafe(assertion)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(
        fails(&|| drop(bed.assert_enqueued(&SendInvoice { order: 42 }))),
        format!("no SendInvoice {{\"order\":42}} was enqueued\n{there}")
    );
    assert_eq!(
        fails(&|| drop(bed.assert_enqueued_where(|job: &SendInvoice| job.order == 42))),
        format!("no SendInvoice as wanted was enqueued\n{there}")
    );
    assert_eq!(
        fails(&|| bed.assert_not_enqueued(&SendInvoice { order: 41 })),
        format!("a SendInvoice {{\"order\":41}} was enqueued\n{there}")
    );
    assert_eq!(
        fails(&|| bed.assert_not_enqueued_where(|_: &SendInvoice| true)),
        format!("a SendInvoice {{\"order\":41}} was enqueued\n{there}")
    );
    let none = TestBed::new();
    assert_eq!(
        fails(&|| drop(none.assert_enqueued(&Remind { order: 1 }))),
        "no Remind {\"order\":1} was enqueued\nthere is no job of kind invoice.remind"
    );
}

#[tokio::test]
async fn thousands_of_jobs_are_looked_through() {
    // More than a page, and more looks than tokio lets a task take in one go.
    let bed = TestBed::new();
    bed.client().enqueue_many((0..2_500).map(|order| SendInvoice { order })).await.unwrap();
    bed.assert_enqueued(&SendInvoice { order: 2_499 });
    let mut orders: Vec<u64> = bed.enqueued::<SendInvoice>().into_iter().map(|job| job.order).collect();
    orders.sort_unstable();
    assert_eq!(orders, (0..2_500).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_that_nobody_handles_is_said_to_be_so() {
    let bed = TestBed::new().worker(|worker| worker.handle(remind));
    let panic = tokio::spawn(async move { bed.perform(SendInvoice { order: 42 }).await }).await.unwrap_err();
    let text = panic.into_panic().downcast::<String>().unwrap();
    assert!(text.contains("nobody in this bed handles invoice.send"), "{text}");
}
