//! Duels over one key: its holder has ended, and a requeue, an enqueue and a prune reach for it at the same moment.
//!
//! Nobody claims from the queue of duels, so whoever won stands there until the next round.

use std::sync::Arc;

use tenure_core::unique::{Policy, Unique};
use tenure_core::{NewJob, QueueName};
use tenure_postgres::{PgStore, tx};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{CancelJob, PruneJobs, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, StoreError};
use tokio_postgres::Client;

use crate::field::Field;
use crate::producer::{some_job, word};
use crate::rng::Rng;

/// Fights until the field is stopped.
pub(crate) async fn duel(field: Arc<Field>, n: u64, mut rng: Rng) {
    let (store, user) = (field.store().await, field.client().await);
    let queue = QueueName::new(format!("duel-{n}")).expect("a name");
    while !field.is_stopped() {
        let key = Unique::new(format!("duel {n}"), Policy::WhileActive);
        let fighter = |rng: &mut Rng| {
            let plain = NewJob {
                queue: queue.clone(),
                unique: Some(key.clone()),
                idempotency_key: None,
                ..some_job(&field, rng)
            };
            NewJob { tenant: tenure_core::TenantName::default(), ..plain }
        };
        let (first, second) = (fighter(&mut rng), fighter(&mut rng));
        field.ledger.ask(&[first.clone(), second.clone()]);
        if let Err(error) = round(&field, &store, &user, first, second, &mut rng).await {
            field.refused("duel", &error);
            user.batch_execute("rollback").await.expect("roll back");
        }
    }
}

async fn round(
    field: &Field,
    store: &PgStore,
    user: &Client,
    first: NewJob,
    second: NewJob,
    rng: &mut Rng,
) -> Result<(), StoreError> {
    let (one, two) = (first.id, second.id);
    let answers = store.enqueue_jobs(vec![first.clone()]).await?;
    field.ledger.answer(&[first], &answers);
    let cancel = |job| CancelJob { sight: Sight::All, job, force: true, word: word() };
    store.cancel_job(cancel(one)).await?;
    let level = rng.pick(&["read committed", "repeatable read", "serializable"]);
    let begun = user.batch_execute(&format!("begin isolation level {level}; select 1")).await;
    begun.expect("begin");
    let prune = rng.percent(15);
    let (revived, enqueued, _) = tokio::join!(
        store.requeue_job(RequeueJob { sight: Sight::All, job: one, word: word() }),
        enqueue(field, user, second, rng),
        async {
            if prune {
                let asked = PruneJobs { older_than: std::time::Duration::ZERO, dead_too: true, limit: 40 };
                store
                    .prune_jobs(asked)
                    .await
                    .map_or_else(|error| field.refused("prune", &error), |n| field.ledger.add("pruned", n));
            }
        },
    );
    field.ledger.count("duels");
    match (revived, enqueued) {
        (Ok(()), Ok(Some(Enqueued::Created(_)))) => field.ledger.fault(format!("{one} and {two} have one key")),
        (Ok(()), _) => field.ledger.count("duels won by a requeue"),
        (Err(_), Ok(Some(Enqueued::Created(_)))) => field.ledger.count("duels won by an enqueue"),
        (Err(_), _) => field.ledger.count("duels won by nobody"),
    }
    for job in [one, two] {
        match store.cancel_job(cancel(job)).await {
            Ok(_) | Err(StoreError::NotFound(_) | StoreError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// In the user's transaction; none when it was rolled back.
async fn enqueue(field: &Field, user: &Client, job: NewJob, rng: &mut Rng) -> Result<Option<Enqueued>, StoreError> {
    field.pause(rng.millis(0, 2)).await;
    let answers = tx::enqueue_within(user, std::slice::from_ref(&job)).await;
    if answers.is_err() || user.batch_execute("commit").await.is_err() {
        field.ledger.count("serialization failures");
        user.batch_execute("rollback").await.expect("roll back");
        return answers.map(|_| None);
    }
    let answers = answers?;
    field.ledger.answer(&[job], &answers);
    Ok(answers.first().copied())
}
