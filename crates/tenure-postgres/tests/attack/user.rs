//! Users: their own transactions at every isolation level, with rows of their own, savepoints, two phases and second
//! thoughts.
//!
//! A transaction that touches several jobs touches them in the order of their ids, and keys come last, in one call: a
//! user who does otherwise may meet another user, and that deadlock would be theirs, not ours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::{How, JobId, NewJob};
use tenure_postgres::tx;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio_postgres::Client;

use crate::field::{Field, Grant, Prepared, lock};
use crate::producer::some_job;
use crate::rng::Rng;

/// A commit later than this after its enqueue lies below the floors of busy workers.
const LATE: Duration = Duration::from_millis(700);
/// The server takes 20; the rest is for others.
const PREPARED_MAX: usize = 6;

/// What a transaction did, to be said when it has committed.
#[derive(Default)]
pub(crate) struct Work {
    completed: Vec<Grant>,
    canceled: u64,
    requeued: u64,
    jobs: Vec<NewJob>,
    answers: Vec<Enqueued>,
    enqueued_at: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Step {
    Complete(Grant),
    Cancel(JobId, bool),
}

impl Step {
    fn job(&self) -> JobId {
        match self {
            Self::Complete(grant) => grant.job,
            Self::Cancel(job, _) => *job,
        }
    }
}

/// Opens transactions until the field is stopped.
pub(crate) async fn transact(field: Arc<Field>, n: u64, mut rng: Rng) {
    let mut client = field.client().await;
    let mut turns = 0;
    while !field.is_stopped() {
        field.pause(rng.millis(1, 15)).await;
        if client.is_closed() {
            field.ledger.count("sessions ended by the idle timeout");
            client = field.client().await;
        }
        end_prepared(&field, &client, false, &mut rng).await;
        turns += 1;
        let name = format!("attack-{n}-{turns}");
        if let Err(error) = turn(&field, &client, &name, &mut rng).await {
            note(&field, &error);
            // Fails with the connection; then there is nothing to roll back.
            client.batch_execute("rollback").await.unwrap_or_default();
        }
    }
}

async fn turn(field: &Field, client: &Client, name: &str, rng: &mut Rng) -> Result<(), tokio_postgres::Error> {
    let level = rng.pick(&["read committed", "repeatable read", "serializable"]);
    client.batch_execute(&format!("begin isolation level {level}; set local lock_timeout = '3s'")).await?;
    let mut work = Work::default();
    if rng.percent(30) {
        // The snapshot is taken here, long before it is used.
        client.batch_execute("select 1").await?;
        field.pause(rng.millis(0, 8)).await;
    }
    for step in steps(field, rng) {
        match step {
            Step::Complete(grant) => complete(field, client, grant, &mut work, rng).await?,
            Step::Cancel(job, force) => {
                let row = client.query_one("select tenure.cancel($1, $2)", &[job.as_uuid(), &force]).await?;
                work.canceled += u64::from(force && row.get::<_, &str>(0) == "canceled");
            }
        }
        field.pause(rng.millis(0, 4)).await;
    }
    let revived = rng.percent(15) && requeue(client, &mut work, rng).await?;
    if rng.percent(60) && !enqueue(field, client, revived, &mut work, rng).await {
        client.batch_execute("rollback").await?;
        return Ok(());
    }
    field.pause(if rng.percent(2) { rng.millis(700, 1_200) } else { rng.millis(0, 5) }).await;
    end(field, client, name, work, rng).await
}

fn steps(field: &Field, rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    {
        let mut grants = lock(&field.grants);
        for _ in 0..rng.between(0, 3) {
            if !grants.is_empty() {
                let index = rng.index(grants.len());
                steps.push(Step::Complete(grants.swap_remove(index)));
            }
        }
        // Two users may try to complete the same job.
        if let Some(Step::Complete(grant)) = steps.first().filter(|_| rng.percent(15)) {
            grants.push(*grant);
        }
    }
    if rng.percent(50)
        && let Some(job) = field.some_job(rng)
    {
        steps.push(Step::Cancel(job, rng.percent(40)));
    }
    steps.sort_by_key(Step::job);
    steps
}

/// The user's row and the completion, together; now and then taken back to a savepoint.
async fn complete(
    field: &Field,
    client: &Client,
    grant: Grant,
    work: &mut Work,
    rng: &mut Rng,
) -> Result<(), tokio_postgres::Error> {
    let guarded = rng.percent(40);
    if guarded {
        client.batch_execute("savepoint s").await?;
    }
    let done = complete_once(client, grant).await;
    match done {
        Err(error) if guarded && is_stale(&error) => {
            note(field, &error);
            client.batch_execute("rollback to s").await
        }
        Err(error) => Err(error),
        Ok(()) if guarded && rng.percent(40) => {
            field.ledger.count("savepoints rolled back");
            client.batch_execute("rollback to s").await?;
            if rng.percent(50) {
                complete_once(client, grant).await?;
                work.completed.push(grant);
            }
            Ok(())
        }
        Ok(()) => {
            work.completed.push(grant);
            Ok(())
        }
    }
}

async fn complete_once(client: &Client, grant: Grant) -> Result<(), tokio_postgres::Error> {
    let Grant { worker, lease, job } = grant;
    client.execute("insert into effect (job, lease) values ($1, $2)", &[job.as_uuid(), &lease.0]).await?;
    let call = "select tenure.complete_in($1, $2, $3, '{\"by\": \"user\"}')";
    client.execute(call, &[&worker.0, &lease.0, job.as_uuid()]).await?;
    Ok(())
}

async fn requeue(client: &Client, work: &mut Work, rng: &mut Rng) -> Result<bool, tokio_postgres::Error> {
    let how = rng.pick(&[3_i16, 4, 5]);
    let ended = "select job from tenure.attempt where final and how = $1 order by job desc limit 20";
    let ended = client.query(ended, &[&how]).await?;
    if ended.is_empty() {
        return Ok(false);
    }
    let job: uuid::Uuid = ended[rng.index(ended.len())].get(0);
    client.execute("select tenure.requeue($1)", &[&job]).await?;
    work.requeued += 1;
    Ok(true)
}

/// False when it was refused, and the transaction with it.
async fn enqueue(field: &Field, client: &Client, unkeyed: bool, work: &mut Work, rng: &mut Rng) -> bool {
    let mut jobs: Vec<NewJob> = (0..rng.between(1, 4)).map(|_| some_job(field, rng)).collect();
    if unkeyed {
        for job in &mut jobs {
            (job.unique, job.idempotency_key) = (None, None);
        }
    }
    field.ledger.ask(&jobs);
    match tx::enqueue_within(client, &jobs).await {
        Ok(answers) => {
            (work.jobs, work.answers, work.enqueued_at) = (jobs, answers, Some(Instant::now()));
            true
        }
        Err(error @ StoreError::Corrupt(_)) => {
            field.ledger.fault(format!("enqueue within: {error}"));
            false
        }
        Err(error) => {
            field.refused("enqueue within", &error);
            false
        }
    }
}

async fn end(
    field: &Field,
    client: &Client,
    name: &str,
    work: Work,
    rng: &mut Rng,
) -> Result<(), tokio_postgres::Error> {
    let choice = rng.between(1, 100);
    if choice <= 20 {
        field.ledger.add("complete_in rollbacks", work.completed.len() as u64);
        return client.batch_execute("rollback").await;
    }
    if choice <= 32 && lock(&field.prepared).len() < PREPARED_MAX {
        client.batch_execute(&format!("prepare transaction '{name}'")).await?;
        field.ledger.count("prepared");
        let keyed =
            work.requeued > 0 || work.jobs.iter().any(|job| job.unique.is_some() || job.idempotency_key.is_some());
        // What everybody waits for is not held long.
        let due = Instant::now() + if keyed { rng.millis(0, 100) } else { rng.millis(0, 1_800) };
        lock(&field.prepared).push(Prepared { name: name.to_owned(), due, work });
        return Ok(());
    }
    expect_late(field, &work);
    client.batch_execute("commit").await?;
    committed(field, &work);
    Ok(())
}

/// Ends the prepared transactions that are due, or all of them.
pub(crate) async fn end_prepared(field: &Field, client: &Client, all: bool, rng: &mut Rng) {
    loop {
        let next = {
            let mut prepared = lock(&field.prepared);
            let due = prepared.iter().position(|one| all || one.due <= Instant::now());
            due.map(|index| prepared.swap_remove(index))
        };
        let Some(Prepared { name, work, .. }) = next else { return };
        if rng.percent(70) {
            expect_late(field, &work);
            client.batch_execute(&format!("commit prepared '{name}'")).await.expect("commit prepared");
            field.ledger.count("prepared and committed");
            committed(field, &work);
        } else {
            client.batch_execute(&format!("rollback prepared '{name}'")).await.expect("rollback prepared");
            field.ledger.count("prepared and rolled back");
        }
    }
}

fn expect_late(field: &Field, work: &Work) {
    if work.enqueued_at.is_some_and(|at| at.elapsed() > LATE) {
        let due_then = work.jobs.iter().filter(|job| job.due == tenure_core::new_job::Due::Now);
        field.ledger.pages().late.extend(due_then.map(|job| job.id));
    }
}

fn committed(field: &Field, work: &Work) {
    for grant in &work.completed {
        field.ledger.accept(grant.job, grant.lease, How::Succeeded);
        field.ledger.count("complete_in commits");
    }
    field.ledger.add("force cancels in a transaction", work.canceled);
    field.ledger.add("requeued in a transaction", work.requeued);
    field.ledger.answer(&work.jobs, &work.answers);
    field.remember(work.answers.iter().map(Enqueued::job));
}

fn is_stale(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| matches!(code.code(), "TN001" | "TN002"))
}

fn note(field: &Field, error: &tokio_postgres::Error) {
    match error.code().map_or("closed", |code| code.code()) {
        "TN001" => field.ledger.count("stale complete_in refused"),
        "TN002" => field.ledger.count("repeated complete_in refused"),
        "TN404" | "TN409" => field.ledger.count("refused"),
        "40001" => field.ledger.count("serialization failures"),
        // How many there may be is asserted at the end.
        "40P01" => field.ledger.count("deadlocks of a user"),
        "55P03" => field.ledger.count("lock timeouts"),
        "closed" | "25P03" | "57P01" => field.ledger.count("transactions ended by the idle timeout"),
        code => field.ledger.fault(format!("a user's transaction: {error:?} ({code})")),
    }
}
