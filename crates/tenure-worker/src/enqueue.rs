//! What can be said about a job before it is stored.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use tenure_core::new_job::Due;
use tenure_core::unique::Policy;
use tenure_core::{Backoff, GateName, Invalid, JobId, NewJob, Priority, QueueName, TenantName, Timestamp, Unique};
use tenure_store::enqueue::Enqueued;
use tenure_store::{StoreError, UserTx};

use crate::client::Client;
use crate::trace;

/// A job on its way into the store: say what differs, then await it, or put it [`within`](Enqueue::within) a
/// transaction. What was said wrongly is refused then, naming the field, and nothing is stored.
#[must_use = "nothing is stored before this is awaited, or put `within` a transaction"]
pub struct Enqueue<'c> {
    client: &'c Client,
    job: Result<NewJob, Invalid>,
}

impl<'c> Enqueue<'c> {
    pub(crate) fn new(client: &'c Client, job: Result<NewJob, Invalid>) -> Self {
        let tenant = client.tenant();
        Self { client, job }.change(|job| job.tenant.clone_from(tenant))
    }

    /// Due after this, by the store's clock.
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|job| job.due = Due::After(delay))
    }

    /// Due at this moment; what lies in the past is due at once.
    pub fn at(self, at: Timestamp) -> Self {
        self.change(|job| job.due = Due::At(at))
    }

    /// How urgent it is among the due jobs of its queue.
    pub fn priority(self, priority: Priority) -> Self {
        self.change(|job| job.priority = priority)
    }

    /// Another queue than its type's.
    pub fn queue(self, queue: &str) -> Self {
        self.try_change(|job| QueueName::new(queue).map(|queue| job.queue = queue))
    }

    /// For another tenant than the client's.
    pub fn tenant(self, tenant: &str) -> Self {
        self.try_change(|job| TenantName::new(tenant).map(|tenant| job.tenant = tenant))
    }

    /// The shared resource it passes, such as `source:ebay` or `domain:example.org`: it is claimed when that lets it
    /// through, however many workers there are. What a gate allows is a rule (`tenure gates set`); without one, everything.
    pub fn gate(self, gate: &str) -> Self {
        self.try_change(|job| GateName::new(gate).map(|gate| job.gate = Some(gate)))
    }

    /// Attempts before a transient error is final.
    pub fn max_attempts(self, max: u16) -> Self {
        self.change(|job| {
            let spare = job.rules.max_losses.saturating_sub(job.rules.max_attempts);
            job.rules.max_attempts = max;
            job.rules.max_losses = max.saturating_add(spare);
        })
    }

    /// When to try again.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.change(|job| job.rules.backoff = backoff)
    }

    /// At most one job of this kind with this key is waiting or running: another enqueue finds it.
    pub fn unique(self, key: impl Into<String>) -> Self {
        self.unique_by(Unique::new(key, Policy::WhileActive))
    }

    /// At most one job holds this key, for as long as the policy says.
    pub fn unique_by(self, unique: Unique) -> Self {
        self.change(|job| job.unique = Some(unique))
    }

    /// A name for this very request: sent again, it is the same job; with another body it is refused.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.change(|job| job.idempotency_key = Some(key.into()))
    }

    /// Trace context for its handler to continue, such as a W3C `traceparent`.
    pub fn trace(self, trace: impl Into<String>) -> Self {
        self.change(|job| job.trace = Some(trace.into()))
    }

    /// Where to tell how it ended, by a webhook that the tenant's endpoint for callbacks signs.
    pub fn callback_url(self, url: impl Into<String>) -> Self {
        self.change(|job| job.callback_url = Some(url.into()))
    }

    /// An id of the caller's own making (a uuid v7 of today): an enqueue sent twice is one job.
    pub fn id(self, id: JobId) -> Self {
        self.change(|job| job.id = id)
    }

    /// Stores it in the caller's own transaction: it exists when that commits, and never when it does not.
    ///
    /// On Postgres this is a future; inside `SqliteStore::transaction` it is the answer itself.
    pub fn within<S, T: UserTx<S>>(self, tx: T) -> T::Reply<Result<Enqueued, StoreError>> {
        within(tx, self.job.map(|job| vec![job]), |stored| only(&stored?))
    }

    /// What it says, for somebody else to store.
    pub(crate) fn into_job(self) -> Result<NewJob, Invalid> {
        self.job
    }

    fn change(mut self, change: impl FnOnce(&mut NewJob)) -> Self {
        if let Ok(job) = &mut self.job {
            change(job);
        }
        self
    }

    fn try_change(mut self, change: impl FnOnce(&mut NewJob) -> Result<(), Invalid>) -> Self {
        if let Ok(job) = &mut self.job
            && let Err(invalid) = change(job)
        {
            self.job = Err(invalid);
        }
        self
    }
}

impl<'c> IntoFuture for Enqueue<'c> {
    type Output = Result<Enqueued, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { only(&self.client.store_jobs(vec![self.job?]).await?) })
    }
}

/// Jobs of one type on their way into the store, all or none. Answers in the order given.
#[must_use = "nothing is stored before this is awaited, or put `within` a transaction"]
pub struct EnqueueMany<'c> {
    client: &'c Client,
    jobs: Result<Vec<NewJob>, Invalid>,
}

impl<'c> EnqueueMany<'c> {
    pub(crate) fn new(client: &'c Client, jobs: Result<Vec<NewJob>, Invalid>) -> Self {
        let mut jobs = jobs;
        for job in jobs.iter_mut().flatten() {
            job.tenant.clone_from(client.tenant());
        }
        Self { client, jobs }
    }

    /// Says something about each of them, by its place: `many.each(|i, one| one.unique(format!("page:{i}")))`.
    pub fn each(self, mut say: impl FnMut(usize, Enqueue<'c>) -> Enqueue<'c>) -> Self {
        let Self { client, jobs } = self;
        let jobs = jobs.and_then(|jobs| {
            let said = jobs.into_iter().enumerate();
            said.map(|(i, job)| say(i, Enqueue { client, job: Ok(job) }).job).collect()
        });
        Self { client, jobs }
    }

    /// What they say, for somebody else to store.
    pub(crate) fn into_jobs(self) -> Result<Vec<NewJob>, Invalid> {
        self.jobs
    }

    /// Stores them in the caller's own transaction, as [`Enqueue::within`] does.
    pub fn within<S, T: UserTx<S>>(self, tx: T) -> T::Reply<Result<Vec<Enqueued>, StoreError>> {
        within(tx, self.jobs, |stored| stored)
    }
}

impl<'c> IntoFuture for EnqueueMany<'c> {
    type Output = Result<Vec<Enqueued>, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.jobs? {
                none if none.is_empty() => Ok(Vec::new()),
                jobs => self.client.store_jobs(jobs).await,
            }
        })
    }
}

/// A refusal travels the same way as an answer: an empty batch stores nothing, and `then` says why.
fn within<S, T: UserTx<S>, A: Send + 'static>(
    tx: T,
    jobs: Result<Vec<NewJob>, Invalid>,
    then: impl FnOnce(Result<Vec<Enqueued>, StoreError>) -> A + Send + 'static,
) -> T::Reply<A> {
    let (mut jobs, refused) = match jobs {
        Ok(jobs) => (jobs, None),
        Err(invalid) => (Vec::new(), Some(invalid)),
    };
    if !jobs.is_empty() {
        // It ends before the jobs are stored: when that happens is the transaction's to say.
        drop(trace::enqueue_span(&mut jobs, None));
    }
    tx.enqueue_jobs(jobs, move |stored| match refused {
        Some(invalid) => then(Err(invalid.into())),
        None => then(stored),
    })
}

fn only(stored: &[Enqueued]) -> Result<Enqueued, StoreError> {
    stored.first().copied().ok_or_else(|| StoreError::Corrupt("an enqueue of one job was answered with none".into()))
}
