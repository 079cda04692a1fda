//! [`worker`]: the task runner put together, for the program, the tests and the story alike.

use kit::BoxError;
use tenure::preset::TASKS;
use tenure::store::operate::SetQueue;
use tenure::{Builder, Client, Database, QueueName, StoreError, Worker};

use crate::app::App;
use crate::digest::digest;
use crate::fetch::fetch;
use crate::report::report;
use crate::settings::Settings;
use crate::task::QUEUE;

/// A worker that runs tasks. Its lease time is the queue's: see [`set_lease`].
pub fn worker(database: &Database, settings: &Settings) -> Result<Builder<App>, BoxError> {
    let worker = Worker::builder(database)
        .preset(&TASKS)
        .poll_every(settings.poll)
        .reclaim_every(settings.recovery)
        .error_wait(settings.error_wait)
        .renew_every(settings.renew)
        .grace(settings.grace)
        // One task a lease: what is lost with a worker is lost alone.
        .lease_jobs(TASKS.claim_max.into())
        .queue(QUEUE, settings.slots)
        .state(App::new(database, settings)?)
        .handle(fetch)
        .handle(digest)
        .handle(report);
    Ok(match &settings.name {
        Some(name) => worker.name(name.as_str()),
        None => worker,
    })
}

/// Sets how long a lease of a task lasts without renewal: for whoever claims from the queue, so the last word stands.
pub async fn set_lease(database: &Database, settings: &Settings) -> Result<(), StoreError> {
    let request = SetQueue::new(QueueName::new(QUEUE)?, settings.lease);
    Client::new(database).store().set_queue(request).await
}
