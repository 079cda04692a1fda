//! `tenure jobs show`: one job in full, its attempts and what people did to it as a timeline.

use clap::Args;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{JobId, State, Timestamp};
use tenure_store::StoreError;
use tenure_store::gate::GateRecord;
use tenure_store::record::{AttemptRecord, JobRecord};

use crate::args::{TenantArg, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table, printable};
use tenure_server::gate_words::closed_text;
use tenure_server::moment;
use tenure_server::pretty::{self, error_text};
use tenure_server::wire::job::JobDocument;

const EXAMPLES: &str = "\
Examples:
  tenure jobs show 01933c5e-7b5a-7000-8000-000000000001
  tenure jobs show 01933c5e-7b5a-7000-8000-000000000001 --json";

/// Show one job: what it asks for, where it stands, every attempt
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The job's id
    #[arg(value_parser = job_id)]
    id: JobId,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let store = session.store().await?;
    let job = store.show_job(&sight, args.id).await?;
    // Of a job that waits it is worth knowing what for.
    let waits = matches!(job.summary.state, State::Queued | State::Retryable);
    let gate = match job.summary.gate.as_ref().filter(|_| waits) {
        Some(gate) => store.show_gate(gate).await.map_or_else(unless_unknown, |gate| Ok(Some(gate)))?,
        None => None,
    };
    if session.out.is_json() {
        session.out.json(&JobDocument::new(&job, gate.as_ref()))?;
        return Ok(Answer::Done);
    }
    let rows = store.list_job_rows(&sight, args.id).await?;
    print(&job, &rows, gate.as_ref(), &mut session.out);
    Ok(Answer::Done)
}

/// A gate that no job has passed and no rule is meant for lets everything through.
fn unless_unknown(error: StoreError) -> Result<Option<GateRecord>, StoreError> {
    match error {
        StoreError::NotFound(_) => Ok(None),
        error => Err(error),
    }
}

fn print(job: &JobRecord, rows: &[JournalRow], gate: Option<&GateRecord>, out: &mut Output) {
    let now = moment::now();
    let when = |at: Timestamp| format!("{}  ({})", moment::absolute(at), moment::relative(at, now));
    let summary = &job.summary;
    let title = format!("Job {}", summary.id);
    out.line(Paint::Bold.apply(&title, out.color()));
    let mut pairs: Vec<(&'static str, Cell)> = vec![
        ("state", Cell::painted(summary.state.as_str(), Paint::of_state(summary.state))),
        ("kind", summary.kind.as_str().into()),
        ("queue", summary.queue.as_str().into()),
        ("tenant", summary.tenant.as_str().into()),
        ("priority", summary.priority.get().to_string().into()),
        ("attempts", format!("{} of {}", summary.attempt, summary.max_attempts).into()),
        ("backoff", job.rules.backoff.to_string().into()),
    ];
    if job.losses > 0 {
        pairs.push(("losses", format!("{} of {}", job.losses, job.rules.max_losses).into()));
    }
    if let Some(name) = &summary.gate {
        let closed = gate.and_then(closed_text);
        pairs.push((
            "gate",
            closed.map_or_else(|| name.as_str().into(), |why| Cell::painted(format!("{name}: {why}"), Paint::Yellow)),
        ));
    }
    if let Some(trace) = &job.trace {
        pairs.push(("trace", trace.as_str().into()));
    }
    if let Some(url) = &job.callback_url {
        pairs.push(("callback", printable(url).into()));
    }
    pairs.push(("created", when(summary.created_at).into()));
    match summary.finished_at {
        Some(at) => pairs.push(("finished", when(at).into())),
        None => pairs.push(("due", when(summary.run_at).into())),
    }
    if job.cancel_requested {
        pairs.push(("cancel", Cell::painted("requested; its worker is asked to stop", Paint::Yellow)));
    }
    out.table(&Table::pairs(pairs));
    out.line("");
    block("Payload", job.payload.as_str(), out);
    if let Some(result) = job.attempts.last().and_then(|attempt| attempt.result.as_ref()) {
        block("Result", result.as_str(), out);
    }
    out.line(Paint::Bold.apply("Timeline", out.color()));
    out.table(&timeline(job, rows, gate, now));
}

/// A JSON document with a heading, indented.
fn block(title: &str, json: &str, out: &mut Output) {
    out.line(Paint::Bold.apply(title, out.color()));
    for line in pretty::indent(json).lines() {
        out.line(format!("  {}", printable(line)));
    }
    out.line("");
}

fn timeline(job: &JobRecord, rows: &[JournalRow], gate: Option<&GateRecord>, now: Timestamp) -> Table {
    let mut table = Table::new(&["WHEN", "", "WHAT", "LEASE", "WORKER", "TOOK", "DETAIL"]);
    let mut lines: Vec<(Timestamp, Cell, [Cell; 4])> = Vec::new();
    let mut row = |at: Timestamp, what: Cell, rest: [Cell; 4]| lines.push((at, what, rest));
    let none = Cell::default;
    row(job.summary.created_at, "enqueued".into(), [none(), none(), none(), none()]);
    for attempt in &job.attempts {
        let what = Cell::painted(what(attempt), Paint::of_ending(attempt.how));
        let took = attempt.started_at.map_or_else(String::new, |start| moment::span(attempt.ended_at.since(start)));
        let worker = attempt.worker.clone().unwrap_or_default();
        let detail = match &attempt.error {
            Some(error) => error_text(error),
            None => ending_of(rows, attempt).map(said).unwrap_or_default(),
        };
        row(attempt.ended_at, what, [Cell::number(attempt.lease), worker.into(), took.into(), detail.into()]);
    }
    for act in rows.iter().filter(|row| is_act(row.event)) {
        let what = Cell::painted(act.event.as_str().replace('_', " "), Paint::of_event(act.event));
        let lease = act.lease.map_or_else(none, Cell::number);
        row(act.at, what, [lease, none(), none(), said(act).into()]);
    }
    if let (State::Running, Some(lease), Some(expires)) = (job.summary.state, job.lease, job.lease_expires_at) {
        let worker = job.summary.locked_by.clone().unwrap_or_default();
        let detail = format!("the lease ends {} unless renewed", moment::relative(expires, now));
        let what = Cell::painted(format!("running, try {}", job.summary.attempt), Paint::Cyan);
        row(job.heartbeat_at.unwrap_or(now), what, [Cell::number(lease), worker.into(), none(), detail.into()]);
    }
    if matches!(job.summary.state, State::Queued | State::Retryable) {
        let detail = match gate.and_then(|gate| Some((gate, closed_text(gate)?))) {
            _ if job.summary.run_at > now => "not before this".to_owned(),
            Some((gate, why)) => format!("waiting for gate {}: {why}", gate.name),
            None => "waiting for a worker".to_owned(),
        };
        row(job.summary.run_at, "due".into(), [none(), none(), none(), detail.into()]);
    }
    // What happened at one moment stays as it was found.
    lines.sort_by_key(|(at, ..)| *at);
    for (at, what, rest) in lines {
        let mut cells = vec![moment::absolute(at).into(), Cell::dim(moment::relative(at, now)), what];
        cells.extend(rest);
        table.row(cells);
    }
    table
}

/// What happened to a job beside its attempts.
fn is_act(event: JournalEvent) -> bool {
    matches!(
        event,
        JournalEvent::CancelRequested
            | JournalEvent::Requeued
            | JournalEvent::Opened
            | JournalEvent::Hastened
            | JournalEvent::Refused
    )
}

/// The row that an attempt's ending left.
fn ending_of<'r>(rows: &'r [JournalRow], attempt: &AttemptRecord) -> Option<&'r JournalRow> {
    rows.iter().find(|row| row.event == JournalEvent::Ended(attempt.how) && row.lease == Some(attempt.lease))
}

/// Who said so, and why.
fn said(row: &JournalRow) -> String {
    match (&row.actor, &row.reason) {
        (Some(actor), Some(reason)) => printable(&format!("by {actor}: {reason}")),
        (Some(actor), None) => printable(&format!("by {actor}")),
        (None, Some(reason)) => printable(reason),
        (None, None) => String::new(),
    }
}

fn what(attempt: &AttemptRecord) -> String {
    match attempt.started_at {
        Some(_) => format!("try {}: {}", attempt.attempt, attempt.how.as_str()),
        // An operator ended it while nobody held it.
        None => attempt.how.as_str().to_owned(),
    }
}
