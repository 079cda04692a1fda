//! From a handler's answer to the ending that is reported. Core decides; here its input and output change clothes.

use std::time::Duration;

use tenure_core::apply::{Job, decide_failure};
use tenure_core::backoff::Roll;
use tenure_core::classify::RuleTable;
use tenure_core::failure::Failure;
use tenure_core::{Class, Health, How, Json, State};
use tenure_store::lease::{ERROR_BYTES_MAX, Ending};

use crate::answer::Answer;
use crate::ctx::{Ctx, Stop};
use crate::fail::{Fail, Means, Said};

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Report this.
    Report(Ending),
    /// The handler completed it in a transaction, it says: look, and report the ending if it is not there.
    Confirm(Ending),
    /// The lease is gone: the result is dropped, the job given back.
    Drop,
}

/// The ending of an attempt that a handler answered.
pub(crate) fn judge(
    ctx: &Ctx,
    answer: Answer,
    rules: &RuleTable,
    error_wait: Duration,
    roll: impl Fn() -> Roll,
) -> Verdict {
    if ctx.stop() == Some(Stop::LeaseLost) && !matches!(answer, Answer::Completed) {
        return Verdict::Drop;
    }
    match answer {
        Answer::Done(result) => Verdict::Report(Ending::Succeeded { result, usage: ctx.take_usage() }),
        Answer::Completed => {
            let fail = Fail::transient("the handler completed the job in a transaction that was not committed");
            Verdict::Confirm(failed(ctx, fail.said(), Class::Transient, Some("rolled_back"), roll()))
        }
        Answer::Failed(fail) => match_failure(ctx, fail.said(), rules, error_wait, roll()),
    }
}

fn match_failure(ctx: &Ctx, said: &Said, rules: &RuleTable, error_wait: Duration, roll: Roll) -> Verdict {
    let ending = match &said.means {
        Means::LeaseLost => return Verdict::Drop,
        Means::OffsetMismatch { expected, got } => skipped(ctx, *expected, *got),
        Means::Release => Ending::Released { delay: Duration::ZERO },
        Means::Snooze(delay) => Ending::Snoozed { delay: *delay },
        // A handler that stops in time because the process goes down has nothing to answer for.
        Means::Canceled if ctx.stop() == Some(Stop::Shutdown) => Ending::Released { delay: Duration::ZERO },
        Means::Canceled => Ending::Canceled { error: None },
        Means::Class(class) => failed(ctx, said, *class, None, roll),
        // No table counts streaks yet: every fault is the first of its kind in a row.
        Means::Met(met) => failed(ctx, said, rules.classify(&met.fault(), 1).class, Some(&met.word()), roll),
        Means::Unsaid => failed(ctx, said, rules.otherwise, None, roll),
        // Whatever a table says of unknown errors, and a policy of retries: a database that restarts ends no job for good.
        Means::StoreAway => {
            ctx.say_of_gate(|word| word.silent = word.health.is_none());
            match failed(ctx, said, Class::Transient, Some("store_unavailable"), roll) {
                retry @ Ending::Retry { .. } => retry,
                _ => {
                    tracing::warn!(job.id = %ctx.job_id(), job.kind = %ctx.kind(), error = said.message, "the store did not answer the handler: its job is put aside");
                    Ending::Snoozed { delay: error_wait }
                }
            }
        }
    };
    Verdict::Report(ending)
}

/// The ending of a page that was repeated or comes out of order: it is done, and did nothing. Nothing is known of its source.
pub(crate) fn skipped(ctx: &Ctx, expected: u64, got: u64) -> Ending {
    ctx.say_of_gate(|word| word.silent = true);
    let part = ctx.part().map(ToString::to_string).unwrap_or_default();
    tracing::warn!(job.id = %ctx.job_id(), page = part, expected, got, "offset_mismatch: a page was repeated or comes out of order, and is skipped");
    let result = format!("{{\"skipped\":\"offset_mismatch\",\"expected\":{expected},\"got\":{got}}}");
    Ending::Succeeded { result: Some(Json::from_store(result)), usage: ctx.take_usage() }
}

/// What is said of a handler that ran longer than it may.
pub(crate) fn timeout(after: Duration) -> Fail {
    let after = tenure_core::duration::format(after);
    Fail::timeout(format!("the handler was stopped: it ran longer than {after}"))
}

/// The ending of an attempt that ran longer than it may and did not stop by itself.
pub(crate) fn timed_out(ctx: &Ctx, after: Duration, rules: &RuleTable, roll: Roll) -> Ending {
    let fail = timeout(after);
    let class = rules.classify(&tenure_core::classify::Fault::Timeout, 1).class;
    failed(ctx, fail.said(), class, Some("timeout"), roll)
}

fn failed(ctx: &Ctx, said: &Said, class: Class, code: Option<&str>, roll: Roll) -> Ending {
    let claimed = &ctx.0.job;
    let job = Job {
        state: State::Running,
        attempt: claimed.attempt,
        losses: claimed.losses,
        run_at: claimed.run_at,
        lease: Some(ctx.fence()),
        cancel_requested: false,
        rules: claimed.rules.clone(),
    };
    if class == Class::Transient && !ctx.gate_word().silent {
        // Also on the last attempt, whose ending does not tell.
        ctx.say_of_gate(|word| word.health = word.health.or(Some(Health::Unhealthy)));
    }
    let Said { message, causes, details, .. } = said;
    let error = Failure { class, code, message, causes, details: details.as_ref() }.to_json(ERROR_BYTES_MAX);
    match decide_failure(&job, class, said.retry_in, roll) {
        (How::Retry, _, delay) => Ending::Retry { delay, error },
        (How::Dead, ..) => Ending::Dead { error },
        _ => Ending::Failed { error },
    }
}
