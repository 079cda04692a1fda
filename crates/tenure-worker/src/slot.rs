//! A slot: runs one claimed job and reports how it ended, as core's slot table says.
//!
//! Whatever a handler does ends here: an error, a panic, a hang, a word too late. The worker's loop never notices more
//! than a slot that is free again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tenure_core::slot::{Event, State, next};
use tenure_core::{How, Part};
use tenure_store::lease::Ending;
use tenure_store::run::PageFound;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};

use crate::answer::Answer;
use crate::ctx::{Ctx, Stop};
use crate::fail::Fail;
use crate::handler::Running;
use crate::judge::{self, Verdict};
use crate::lane::Held;
use crate::observe::{AttemptEnded, Failure};
use crate::random;
use crate::reporter::{Report, Reporter, Settled};
use crate::route::Route;
use crate::shared::{Shared, count};
use crate::{measure, trace};

/// How long a handler may take to stop when the process goes down.
const SHUTDOWN_WAIT: Duration = Duration::from_millis(200);

/// Runs the job of `held` and hands its ending in; what becomes of that report is heard by [`Slot::conclude`].
pub(crate) async fn run(shared: &Arc<Shared>, reporter: &Reporter, held: Held) {
    let Held { ctx, mut place } = held;
    let span = trace::attempt_span(&ctx);
    let mut slot = Slot { state: State::Free, began: Instant::now(), failure: None, span };
    slot.step(shared, Event::Take, &ctx);
    let verdict = match shared.routes.get(ctx.kind()) {
        Some(route) => {
            let outcome = execute(shared, route, &ctx).instrument(slot.span.clone()).await;
            if route.timeout.is_some() {
                // From here on it blocks nothing: a report that takes long must not be overruled by the keeper.
                shared.held.limit(&ctx, None);
            }
            let rules = route.rules.as_ref().unwrap_or(&shared.options.rules);
            match outcome {
                Outcome::Answered(answer) => {
                    if let Answer::Failed(fail) = &answer {
                        slot.failure = Some(fail.failure());
                    }
                    judge::judge(&ctx, answer, rules, shared.options.error_wait, random::roll)
                }
                Outcome::TimedOut(after) => {
                    slot.failure = Some(judge::timeout(after).failure());
                    Verdict::Report(judge::timed_out(&ctx, after, rules, random::roll()))
                }
                Outcome::Skipped { expected, got } => Verdict::Report(judge::skipped(&ctx, expected, got)),
                Outcome::Canceled => Verdict::Report(Ending::Canceled { error: None }),
                Outcome::Released => Verdict::Report(Ending::Released { delay: Duration::ZERO }),
                Outcome::Fenced => Verdict::Drop,
            }
        }
        None => {
            count(&shared.gauge.unknown_kinds);
            if shared.unknown.is_news(ctx.kind()) {
                tracing::warn!(job.id = %ctx.job_id(), job.kind = %ctx.kind(), "no handler for this kind here: such jobs are given back for other workers");
            }
            Verdict::Report(Ending::Released { delay: shared.given_back.delay(ctx.job_id()) })
        }
    };
    let succeeded = matches!(&verdict, Verdict::Report(Ending::Succeeded { .. }) | Verdict::Confirm(_));
    slot.step(shared, if succeeded { Event::Succeed } else { Event::Fail }, &ctx);
    shared.gauge.unended.fetch_sub(1, Ordering::AcqRel);
    if place.end() {
        shared.freed.notify_one();
    }
    // Asked first: what was committed together with the handler's own rows stands, whatever became of the lease.
    if matches!(verdict, Verdict::Confirm(_)) && find_ending(shared, &ctx).await == Some(How::Succeeded) {
        shared.held.settle(ctx.fence(), &[ctx.job_id()], 0);
        slot.conclude(shared, &ctx, Settled::Accepted(How::Succeeded));
        drop(place);
        shared.freed.notify_one();
        return;
    }
    let confirm = matches!(verdict, Verdict::Confirm(_));
    let ending = match verdict {
        // Let go of by the keeper, at the deadline or because it blocked its thread: what was done here is dropped,
        // and the grant given back in case nobody has taken it yet.
        _ if ctx.stop() == Some(Stop::LeaseLost) => Ending::Released { delay: Duration::ZERO },
        Verdict::Report(ending) | Verdict::Confirm(ending) => ending,
        Verdict::Drop => Ending::Released { delay: Duration::ZERO },
    };
    reporter.hand_in(Report::new(shared, ctx, ending, confirm, (slot, place))).await;
}

/// How a handler's run ended.
enum Outcome {
    Answered(Answer),
    TimedOut(Duration),
    /// It is another page's turn.
    Skipped {
        expected: u64,
        got: u64,
    },
    Canceled,
    Released,
    Fenced,
}

/// Runs the handler beside everything that may stop it.
async fn execute(shared: &Shared, route: &Arc<Route>, ctx: &Ctx) -> Outcome {
    // It may have waited in memory, and what it waited under may be over.
    match ctx.stop() {
        Some(Stop::LeaseLost) => return Outcome::Fenced,
        Some(Stop::Canceled) => return Outcome::Canceled,
        Some(Stop::Shutdown) => return Outcome::Released,
        Some(Stop::Timeout) | None if shared.stopping.is_up() => return Outcome::Released,
        Some(Stop::Timeout) | None => {}
    }
    // The claim's reply may have taken as long as the lease, and the keeper may not have looked since.
    if ctx.lease_remaining().is_zero() {
        return Outcome::Fenced;
    }
    if let Some(Part::Page { offset, .. }) = ctx.part() {
        match begin_page(shared, ctx, *offset).await {
            Ok(()) => {}
            Err(outcome) => return outcome,
        }
    }
    let cancel_grace = shared.options.cancel_grace;
    let started = Instant::now();
    if let Some(timeout) = route.timeout {
        // The keeper gives us some time more: only a blocked thread is left to it.
        shared.held.limit(ctx, Some(started + timeout));
    }
    // Making the future may panic as well as running it.
    let mut handler = match catch_unwind(AssertUnwindSafe(|| route.call(&ctx.0.job.payload, ctx))) {
        Ok(running) => Caught(Some(running)),
        Err(panic) => return Outcome::Answered(Answer::Failed(panicked(&*panic))),
    };
    let mut timeout_at = route.timeout.map(|timeout| started + timeout);
    let mut told: Option<Stop> = None;
    let mut drop_at: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            answer = &mut handler => return Outcome::Answered(answer),
            why = ctx.stopped_beyond(told) => {
                told = Some(why);
                drop_at = match why {
                    Stop::LeaseLost => return Outcome::Fenced,
                    Stop::Shutdown => Some(Instant::now() + SHUTDOWN_WAIT),
                    Stop::Canceled | Stop::Timeout => Some(Instant::now() + cancel_grace),
                };
            }
            () = until(timeout_at), if timeout_at.is_some() => {
                timeout_at = None;
                ctx.tell(Stop::Timeout);
            }
            () = until(drop_at), if drop_at.is_some() => return match told {
                Some(Stop::Shutdown) => Outcome::Released,
                Some(Stop::Canceled) => Outcome::Canceled,
                _ => Outcome::TimedOut(route.timeout.unwrap_or_default()),
            },
        }
    }
}

/// Asks whether it is this page's turn.
async fn begin_page(shared: &Shared, ctx: &Ctx, offset: u64) -> Result<(), Outcome> {
    match shared.store.begin_page(ctx.job_id()).await {
        Ok(PageFound::Next { limit }) => {
            ctx.set_page_limit(limit);
            Ok(())
        }
        Ok(PageFound::Elsewhere { expected }) => Err(Outcome::Skipped { expected, got: offset }),
        Ok(PageFound::Ended) => Err(Outcome::Canceled),
        Err(error) if error.is_passing() => {
            shared.trouble.failed("beginning a page", &error);
            Err(Outcome::Released)
        }
        Err(error) => Err(Outcome::Answered(Answer::Failed(error.into()))),
    }
}

/// A timer that is heard beside a handler that is always ready: such a one uses up what tokio lets a task do in one go,
/// and an ordinary timer polled after it would never be looked at.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::task::unconstrained(sleep_until(at)).await,
        None => std::future::pending().await,
    }
}

/// How the attempt ended in the handler's own transaction. Asked until it is answered or the lease ends.
async fn find_ending(shared: &Shared, ctx: &Ctx) -> Option<How> {
    loop {
        match shared.store.find_endings(ctx.0.worker, ctx.fence(), vec![ctx.job_id()]).await {
            Ok(hows) => return hows.first().copied().flatten(),
            Err(error) if error.is_passing() => shared.trouble.failed("looking for an ending", &error),
            // Asking again would never help, and the lease is renewed meanwhile. The report will tell.
            Err(error) => {
                tracing::error!(job.id = %ctx.job_id(), error = %error, "looking for an ending failed");
                return None;
            }
        }
        if !shared.held.holds(ctx.fence()) {
            return None;
        }
        tokio::time::sleep(random::jitter(Duration::from_millis(250))).await;
    }
}

/// One attempt's stay in a slot, stepping through core's table.
pub(crate) struct Slot {
    state: State,
    began: Instant,
    /// What went wrong, for the log and whoever observes.
    failure: Option<Failure>,
    /// The attempt from here to its settled report.
    span: Span,
}

impl Slot {
    /// Counts and logs what became of the report, and frees the slot.
    pub(crate) fn conclude(&mut self, shared: &Shared, ctx: &Ctx, settled: Settled) {
        let gauge = &shared.gauge;
        if ctx.part().is_some() {
            shared.spoken.notify_one();
        }
        match settled {
            Settled::Accepted(how) => {
                count(match how {
                    How::Succeeded => &gauge.succeeded,
                    How::Released => &gauge.released,
                    _ => &gauge.failed,
                });
                self.span.record("outcome", how.as_str());
                self.log(ctx, how);
                shared.minute.ended(ctx, how, self.began.elapsed());
                self.tell(shared, ctx, how);
            }
            Settled::Refused(how) => {
                count(&gauge.refused);
                self.span.record("outcome", "refused");
                ctx.tell(Stop::LeaseLost);
                let how = how.map_or("unknown", How::as_str);
                tracing::warn!(job.id = %ctx.job_id(), job.kind = %ctx.kind(), lease.no = %ctx.fence(), ended = how, "a report came too late and was refused: the lease no longer held the job");
            }
            Settled::GivenUp => {
                self.span.record("outcome", "unknown");
                ctx.tell(Stop::LeaseLost);
                // Whoever carried the report may have died under it: what is left in here is renewed for ever.
                shared.held.settle(ctx.fence(), &[ctx.job_id()], 0);
                // The keeper has told of the lease, and the store's silence is told of as well.
                tracing::debug!(job.id = %ctx.job_id(), lease.no = %ctx.fence(), "no answer until the lease's end: what became of the report is unknown");
            }
        }
        self.step(shared, if settled == Settled::GivenUp { Event::Break } else { Event::Settle }, ctx);
    }

    /// Failures are told, with what went wrong; the rest is for whoever looks closely.
    fn log(&self, ctx: &Ctx, how: How) {
        let error = self.failure.as_ref().map_or("", |failure| failure.message.as_str());
        let (attempt, job_duration_ms) = (ctx.attempt(), u64::try_from(self.began.elapsed().as_millis()).unwrap_or(0));
        let (job, kind, queue, lease) = (ctx.job_id(), ctx.kind(), ctx.queue(), ctx.fence());
        if self.failure.as_ref().is_some_and(|failure| failure.quiet) {
            tracing::debug!(job.id = %job, job.kind = %kind, queue = %queue, attempt, lease.no = %lease, job_duration_ms, error, "{}", how.as_str());
            return;
        }
        match how {
            How::Failed | How::Dead => {
                tracing::warn!(job.id = %job, job.kind = %kind, queue = %queue, attempt, lease.no = %lease, job_duration_ms, error, "{}", how.as_str());
            }
            How::Retry => {
                tracing::info!(job.id = %job, job.kind = %kind, queue = %queue, attempt, lease.no = %lease, job_duration_ms, error, "retry");
            }
            how => {
                tracing::debug!(job.id = %job, job.kind = %kind, queue = %queue, attempt, lease.no = %lease, job_duration_ms, "{}", how.as_str());
            }
        }
    }

    /// Marks the span of an attempt that went wrong, counts it, and tells whoever observes.
    fn tell(&self, shared: &Shared, ctx: &Ctx, how: How) {
        let failure = self.failure.as_ref().filter(|_| matches!(how, How::Retry | How::Failed | How::Dead));
        if let Some(failure) = failure {
            self.span.record("error.type", failure.error_type.as_str());
            self.span.record("otel.status_code", "ERROR");
        }
        let ended = AttemptEnded {
            job: ctx.job_id(),
            kind: ctx.kind(),
            queue: ctx.queue(),
            tenant: ctx.tenant(),
            attempt: ctx.attempt(),
            lease: ctx.fence(),
            how,
            took: self.began.elapsed(),
            failure,
        };
        measure::attempt_ended(&ended, shared.gauge.unended.load(Ordering::Relaxed));
        if let Some(observer) = &shared.options.observer {
            observer.attempt_ended(&ended);
        }
    }

    fn step(&mut self, shared: &Shared, event: Event, ctx: &Ctx) {
        let Some(to) = next(self.state, event) else {
            debug_assert!(false, "a slot that is {} cannot {event:?}", self.state.as_str());
            return;
        };
        let gauge = &shared.gauge;
        let counter = |state: State| match state {
            State::Processing => Some(&gauge.processing),
            State::ReportingSuccess | State::ReportingFailure => Some(&gauge.reporting),
            State::Free => None,
        };
        // Added before it is taken away: nobody may see a worker with a job in it as idle.
        if let Some(to) = counter(to) {
            to.fetch_add(1, Ordering::AcqRel);
        }
        if let Some(from) = counter(self.state) {
            from.fetch_sub(1, Ordering::AcqRel);
        }
        tracing::trace!(job.id = %ctx.job_id(), lease.no = %ctx.fence(), from = self.state.as_str(), to = to.as_str(), "slot");
        self.state = to;
    }
}

/// A handler whose panic is an answer like any other, also when it panics while it is dropped.
struct Caught(Option<Running>);

impl Future for Caught {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(running) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Answer::Failed(panicked(&*panic))),
        }
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        let running = self.0.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(running))) {
            tracing::warn!(error = %panicked(&*panic), "a handler was stopped and panicked over it");
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Fail {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Fail::panicked(format!("the handler panicked: {}", text.unwrap_or("no message")))
}
