//! One job until it ends: each change a line.

use std::time::Instant;

use tenure_core::{JobId, LeaseNo, State, Timestamp};
use tenure_store::record::JobRecord;

use super::WatchArgs;
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};
use crate::follow::Follow;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::job::JobDocument;

/// Widths that most lines keep, so that later ones line up.
const WIDTHS: [usize; 3] = [20, 20, 0];

/// What makes a look differ from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    state: State,
    run_at: Timestamp,
    lease: Option<LeaseNo>,
    cancel_requested: bool,
    attempts: usize,
}

pub(super) async fn run(id: JobId, args: WatchArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let store = session.store_to_follow().await?;
    let out = &mut session.out;
    let mut follow = Follow::begin()?;
    let begin = Instant::now();
    let mut before: Option<Standing> = None;
    loop {
        // Stopped before it ended: whether it succeeds is not known, so the answer cannot be yes.
        let Some(job) = follow.ask(async || store.show_job(&sight, id).await).await? else {
            return Ok(Answer::Findings);
        };
        let standing = Standing::of(&job);
        if before.as_ref() != Some(&standing) {
            print(&job, before.as_ref(), out)?;
            out.flush()?;
            before = Some(standing);
        }
        let state = job.summary.state;
        if state.is_terminal() {
            return Ok(if state == State::Succeeded { Answer::Done } else { Answer::Findings });
        }
        let left = args.timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            let waited = tenure_core::duration::format(args.timeout.unwrap_or_default());
            let message = format!("job {id} is still {} after {waited}", state.as_str());
            return Err(
                Failure::new("timeout", exit::REFUSED, message).hint("The job goes on; --timeout waits longer.")
            );
        }
        let pause = left.map_or(args.every, |left| left.min(args.every));
        if out.is_closed() || !follow.pause(pause).await {
            return Ok(Answer::Findings);
        }
    }
}

impl Standing {
    fn of(job: &JobRecord) -> Self {
        Self {
            state: job.summary.state,
            run_at: job.summary.run_at,
            lease: job.lease,
            cancel_requested: job.cancel_requested,
            attempts: job.attempts.len(),
        }
    }
}

/// What is new since the look before: attempts that ended (a quick one may have come and gone in between), then where
/// the job stands.
fn print(job: &JobRecord, before: Option<&Standing>, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.json(&JobDocument::new(job, None));
    }
    let now = moment::now();
    let mut table = Table::with_widths(&[], &WIDTHS);
    let mut row = |at: Timestamp, what: String, paint: Paint, detail: String| {
        table.row(vec![Cell::dim(moment::absolute(at)), Cell::painted(what, paint), detail.into()]);
    };
    if before.is_none() {
        let detail = format!("{} in queue {}", job.summary.kind, job.summary.queue);
        row(job.summary.created_at, "enqueued".to_owned(), Paint::Plain, detail);
    }
    for attempt in job.attempts.iter().skip(before.map_or(0, |before| before.attempts)) {
        // An operator ended it while nobody held it: the state says the same.
        let Some(start) = attempt.started_at else { continue };
        let what = format!("try {}: {}", attempt.attempt, attempt.how.as_str());
        let took = format!("after {}", moment::span(attempt.ended_at.since(start)));
        let detail = attempt.error.as_ref().map_or(took.clone(), |error| format!("{took}: {}", error_text(error)));
        row(attempt.ended_at, what, Paint::of_ending(attempt.how), detail);
    }
    let state = job.summary.state;
    let (at, detail) = match state {
        State::Waiting => (now, "held back until it is opened".to_owned()),
        State::Queued | State::Retryable if job.summary.run_at <= now => (now, "waits for a worker".to_owned()),
        State::Queued | State::Retryable => (now, format!("due {}", moment::relative(job.summary.run_at, now))),
        State::Running => {
            let worker = job.summary.locked_by.as_deref().unwrap_or("a worker");
            let asked = if job.cancel_requested { ", asked to stop" } else { "" };
            (now, format!("try {} of {}, held by {worker}{asked}", job.summary.attempt, job.summary.max_attempts))
        }
        State::Succeeded | State::Failed | State::Dead | State::Canceled => {
            let at = job.summary.finished_at.unwrap_or(now);
            (at, format!("{} after it was enqueued", moment::span(at.since(job.summary.created_at))))
        }
    };
    row(at, state.as_str().to_owned(), Paint::of_state(state), detail);
    out.table(&table);
    Ok(())
}
