//! [`GatePass`]: what a handler asks of the shared resource its job passes, and says about it.

use std::time::Duration;

use tenure_core::{GateName, Health};
use tenure_store::StoreError;
use tenure_store::gate::{AcquireTokens, Acquired};
use tokio::time::Instant;

use crate::ctx::{Ctx, Stop};
use crate::fail::Fail;

/// How long a job is put aside whose gate was closed while it ran, and nobody knows for how long.
const CLOSED_WAIT: Duration = Duration::from_secs(10);

/// The gate of a job that runs, from [`Ctx::gate`]. A job without one may say and ask the same: nothing comes of it.
///
/// ```
/// # use tenure_worker::{Ctx, Fail};
/// # use std::time::Duration;
/// # struct Answer { status: u16, retry_after: Option<Duration> }
/// # async fn fetch(_page: u32) -> Result<Answer, Fail> { Ok(Answer { status: 200, retry_after: None }) }
/// async fn collect(ctx: Ctx) -> Result<(), Fail> {
///     for page in 1..=3 {
///         if page > 1 {
///             ctx.gate().acquire(1).await?; // the first call was counted when the job was claimed
///         }
///         let answer = fetch(page).await?;
///         if let Some(wait) = answer.retry_after {
///             ctx.gate().hold(wait); // once this attempt has ended nobody calls it before that, in any process
///         }
///         if answer.status == 404 {
///             ctx.gate().healthy(); // it answered: the job is at fault, not the source
///             return Err(Fail::permanent("no such coin"));
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct GatePass<'c> {
    ctx: &'c Ctx,
}

impl<'c> GatePass<'c> {
    pub(crate) fn new(ctx: &'c Ctx) -> Self {
        Self { ctx }
    }

    /// Its name; `None` when the job has no gate.
    pub fn name(&self) -> Option<&'c GateName> {
        self.ctx.0.job.gate.as_ref()
    }

    /// Asks before calling the resource `calls` times more, and waits until its rate allows that. A call takes one token,
    /// whatever a claim costs. The tokens are reserved at once, so whoever asks later waits longer.
    ///
    /// The gate gives at most its burst at once: more calls are a permanent error. Ask in parts, or raise the burst.
    ///
    /// Answers an error to end the handler with when the gate was closed meanwhile (the job is snoozed until it opens,
    /// uncharged), or when the handler should stop.
    pub async fn acquire(&self, calls: u32) -> Result<(), Fail> {
        if self.name().is_none() {
            return self.ctx.check();
        }
        let at = &self.ctx.0;
        let request = AcquireTokens { worker: at.worker, lease: at.lease, job: at.job.id, tokens: calls };
        let answer = match at.client.store().acquire_tokens(request).await {
            // The database is in trouble, and nothing is known of the source.
            Err(error) if error.is_passing() => return Err(Fail::snooze(CLOSED_WAIT)),
            // More calls than the burst: the handler's mistake, which no repetition mends and which is not the resource's.
            Err(StoreError::Invalid(refused)) => return Err(Fail::permanent(refused)),
            answer => answer?,
        };
        // From the answer on: the time it took to come is the store's, not the source's.
        let told = Instant::now();
        match answer {
            Acquired::After(wait) => tokio::select! {
                biased;
                // A cancel, a timeout or a lost lease; a process that goes down lets it finish.
                _ = self.ctx.stopped_beyond(Some(Stop::Shutdown)) => self.ctx.check(),
                () = tokio::time::sleep_until(told + wait) => Ok(()),
            },
            Acquired::Closed { until: Some(until), .. } => {
                let now = at.client.store().now().await?;
                Err(Fail::snooze(until.since(now)))
            }
            Acquired::Closed { until: None, .. } => Err(Fail::snooze(CLOSED_WAIT)),
            Acquired::LeaseLost => Err(Fail::lease_lost()),
        }
    }

    /// The resource answered as it should, whatever becomes of the job.
    pub fn healthy(&self) {
        self.ctx.say_of_gate(|word| word.health = Some(Health::Healthy));
    }

    /// The resource failed, whatever becomes of the job. Said by itself for every transient error.
    pub fn unhealthy(&self) {
        self.ctx.say_of_gate(|word| word.health = Some(Health::Unhealthy));
    }

    /// The resource was not asked, because its answer was kept for example: unless [`healthy`](Self::healthy) or
    /// [`unhealthy`](Self::unhealthy) say otherwise, nothing was learnt, however the attempt ends.
    pub fn silent(&self) {
        self.ctx.say_of_gate(|word| word.silent = true);
    }

    /// The resource asked for silence, by a `Retry-After` for example: once this attempt has ended nothing passes for
    /// that long, at most a day.
    pub fn hold(&self, time: Duration) {
        self.ctx.say_of_gate(|word| word.hold = word.hold.max(Some(time)));
    }
}
