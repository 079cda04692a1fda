//! `tenure jobs list`: jobs that match, newest first.

use std::time::Duration;

use clap::Args;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{JobId, State, Timestamp, When};
use tenure_store::Store;
use tenure_store::record::{JobFilter, JobSummary};

use super::state;
use crate::args::{TenantArg, job_id, kind, limit, page_size, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::job::JobLine;

/// Characters of an error in a list; `jobs show` has all of it.
const ERROR_CHARS_MAX: usize = 60;

const EXAMPLES: &str = "\
Examples:
  tenure jobs list                             the 20 newest
  tenure jobs list --recent 100 --queue mail   the 100 newest of a queue
  tenure jobs list --state dead                dead letters
  tenure jobs list --stuck 5m                  running, and silent for five minutes
  tenure jobs list --since 1h --until 10m      created in that time
  tenure jobs list --text ORDER-42             whose payload contains this
  tenure jobs list --before ID                 the page after the one that ended with ID
  tenure jobs list --json                      one JSON array";

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// waiting, queued, retryable, running, succeeded, failed, dead or canceled
    #[arg(long, value_parser = state)]
    state: Option<State>,
    /// Only jobs of this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// Only jobs of this kind
    #[arg(long, value_name = "NAME", value_parser = kind)]
    kind: Option<KindName>,
    #[command(flatten)]
    tenant: TenantArg,
    /// At most this many, up to 1000 [also: --recent]
    #[arg(long, alias = "recent", value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
    /// Only jobs older than this one
    #[arg(long, value_name = "ID", value_parser = job_id)]
    before: Option<JobId>,
    /// Only running jobs whose worker was silent for this long, such as 5m
    #[arg(long, value_name = "DURATION", value_parser = stuck)]
    stuck: Option<Duration>,
    /// Only jobs created then or later: a date, or how long ago, such as 1h
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<When>,
    /// Only jobs created before: likewise
    #[arg(long, value_name = "WHEN", value_parser = until)]
    until: Option<When>,
    /// Only jobs whose payload contains this, letters in either case
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = JobFilter {
        sight: session.sight(args.tenant),
        state: args.state,
        queue: args.queue,
        kind: args.kind,
        before: args.before,
        stuck_for: args.stuck,
        since: args.since.map(|when| when.at(moment::now())),
        until: args.until.map(|when| when.at(moment::now())),
        limit: args.limit,
        ..JobFilter::default()
    };
    let store = session.store().await?;
    let jobs = match &args.text {
        Some(text) => search(&*store, &filter, text).await?,
        None => store.list_jobs(&filter).await?,
    };
    if session.out.is_json() {
        session.out.json(&jobs.iter().map(JobLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if jobs.is_empty() {
        let everything = JobFilter { limit: filter.limit, ..JobFilter::default() };
        let nothing = if filter == everything && args.text.is_none() {
            "No jobs yet. Try: tenure enqueue sleep"
        } else {
            "No such jobs."
        };
        session.out.line(nothing);
        return Ok(Answer::Done);
    }
    session.out.table_with_note(table(&jobs, moment::now()));
    if let Some(last) = jobs.last().filter(|_| jobs.len() == filter.limit as usize) {
        session.out.line(format!("\nThere may be more: add --before {}", last.id));
    }
    Ok(Answer::Done)
}

/// Goes on until there are enough or nothing is left: one call looks into a bounded number of jobs.
async fn search(store: &dyn Store, filter: &JobFilter, text: &str) -> Result<Vec<JobSummary>, Failure> {
    let (mut rest, mut jobs) = (filter.clone(), Vec::new());
    loop {
        let found = store.search_jobs(&rest, text).await?;
        rest.limit -= found.jobs.len() as u32;
        jobs.extend(found.jobs);
        rest.before = found.next;
        if rest.limit == 0 || rest.before.is_none() {
            return Ok(jobs);
        }
    }
}

/// Also what `dead list --each` shows.
pub(crate) fn table(jobs: &[JobSummary], now: Timestamp) -> Table {
    // Who has one tenant does not want to read its name on every line.
    let tenants = jobs.iter().any(|job| job.tenant != TenantName::default());
    let mut head = vec!["ID", "STATE", "QUEUE", "KIND", "PRIO", "TRY", "CREATED", "NOTE"];
    if tenants {
        head.insert(1, "TENANT");
    }
    let mut table = Table::new(&head);
    for job in jobs {
        let mut cells = vec![
            job.id.to_string().into(),
            Cell::painted(job.state.as_str(), Paint::of_state(job.state)),
            job.queue.as_str().into(),
            job.kind.as_str().into(),
            Cell::number(job.priority.get()),
            Cell::number(format_args!("{}/{}", job.attempt, job.max_attempts)),
            Cell::dim(moment::relative(job.created_at, now)),
            note(job, now).into(),
        ];
        if tenants {
            cells.insert(1, job.tenant.as_str().into());
        }
        table.row(cells);
    }
    table
}

/// What a person wants to know next about a job in its state.
pub(super) fn note(job: &JobSummary, now: Timestamp) -> String {
    let due = if job.run_at <= now { "due".to_owned() } else { format!("due {}", moment::relative(job.run_at, now)) };
    let error = || job.error.as_ref().map(|error| shorten(&error_text(error), ERROR_CHARS_MAX));
    let head = match job.state {
        State::Waiting => "held back".to_owned(),
        State::Queued | State::Retryable => due,
        State::Running => job.locked_by.as_ref().map_or("held".to_owned(), |worker| format!("held by {worker}")),
        State::Succeeded | State::Failed | State::Dead | State::Canceled => {
            job.finished_at.map_or_else(String::new, |at| moment::relative(at, now))
        }
    };
    match error().filter(|_| job.state != State::Succeeded) {
        Some(error) if head.is_empty() => error,
        Some(error) => format!("{head}: {error}"),
        None => head,
    }
}

fn stuck(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("stuck", text).map_err(limit)
}

fn since(text: &str) -> Result<When, String> {
    When::parse("since", text).map_err(limit)
}

fn until(text: &str) -> Result<When, String> {
    When::parse("until", text).map_err(limit)
}
