//! Queues and the newest jobs, look after look: drawn on a terminal, a line for each change elsewhere.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::name::{QueueName, TenantName};
use tenure_core::{JobId, Timestamp};
use tenure_store::record::{JobFilter, JobSummary, QueueRecord, Sight};
use tenure_store::{Store, StoreError};

use super::WatchArgs;
use crate::command::jobs::list::note;
use crate::command::queues::list::table as queue_table;
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};
use crate::follow::Follow;
use crate::output::Output;
use crate::paint::Paint;
use crate::screen::Screen;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::wire::job::JobLine;
use tenure_server::wire::worker::QueueLine;

/// Characters of a name in the view.
const NAME_CHARS_MAX: usize = 16;
/// Characters of a note in the view; `jobs show` has all of it.
const NOTE_CHARS_MAX: usize = 48;

/// What one look saw.
struct Look {
    at: Timestamp,
    queues: Vec<QueueRecord>,
    jobs: Vec<JobSummary>,
}

pub(super) async fn run(args: WatchArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = JobFilter {
        sight: session.sight(args.tenant),
        queue: args.queue.clone(),
        limit: args.recent,
        ..JobFilter::default()
    };
    let store = session.store_to_follow().await?;
    let mut follow = Follow::begin()?;
    let title = title(&session.settings.location.value.to_string(), args.queue.as_ref(), &filter.sight, args.every);
    let out = &mut session.out;
    let unseen = |error| Failure::new("output", exit::REFUSED, "the view could not be drawn").caused_by(&error);
    let mut screen = if out.is_live() { Some(Screen::enter().map_err(unseen)?) } else { None };
    let begin = Instant::now();
    let mut before: Option<Look> = None;
    loop {
        let Some(look) = follow.ask(async || look(&*store, &filter).await).await? else { break };
        match &mut screen {
            Some(screen) => screen.draw(&picture(&look, &title, Screen::size().0, out.color())).map_err(unseen)?,
            None => print_changes(before.as_ref(), &look, out)?,
        }
        out.flush()?;
        if args.until_idle && look.is_idle() {
            break;
        }
        let left = args.timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            let waited = tenure_core::duration::format(args.timeout.unwrap_or_default());
            let message = format!("there is still work after {waited}");
            return Err(Failure::new("timeout", exit::REFUSED, message).hint("--timeout waits longer."));
        }
        before = Some(look);
        let pause = left.map_or(args.every, |left| left.min(args.every));
        if out.is_closed() || !follow.pause(pause).await {
            break;
        }
    }
    Ok(Answer::Done)
}

async fn look(store: &dyn Store, filter: &JobFilter) -> Result<Look, StoreError> {
    let at = store.now().await?;
    let mut queues = store.list_queues().await?;
    queues.retain(|queue| filter.queue.as_ref().is_none_or(|wanted| *wanted == queue.name));
    Ok(Look { at, queues, jobs: store.list_jobs(filter).await? })
}

impl Look {
    fn is_idle(&self) -> bool {
        self.queues.iter().all(|queue| queue.due == 0 && queue.running == 0)
    }
}

fn title(place: &str, queue: Option<&QueueName>, sight: &Sight, every: Duration) -> String {
    let queue = queue.map_or_else(String::new, |queue| format!("  queue {queue}"));
    let tenant = match sight {
        Sight::All => String::new(),
        Sight::Tenant(tenant) => format!("  tenant {tenant}"),
    };
    format!("{place}{queue}{tenant}  every {}, Ctrl-C ends", tenure_core::duration::format(every))
}

/// The whole view, `rows` lines at most.
fn picture(look: &Look, title: &str, rows: usize, color: bool) -> String {
    let clock = moment::absolute(look.at);
    let mut text = format!("{}  {}\n\n", Paint::Bold.apply(&clock, color), Paint::Dim.apply(title, color));
    // Half of the screen for queues, the busiest first where not all fit.
    let room = (rows / 2).saturating_sub(3).max(1);
    let mut shown: Vec<QueueRecord> = look.queues.clone();
    if shown.len() > room {
        shown.sort_by_key(|queue| std::cmp::Reverse((queue.due + queue.running, queue.scheduled)));
        shown.truncate(room);
    }
    if shown.is_empty() {
        text.push_str("No queues yet: the first job of a queue creates it.\n");
    } else {
        text.push_str(&queue_table(&shown, look.at).render(color));
    }
    if shown.len() < look.queues.len() {
        text.push_str(&format!("and {} queues with less to do\n", look.queues.len() - shown.len()));
    }
    text.push('\n');
    if look.jobs.is_empty() {
        text.push_str("No jobs yet. Try: tenure enqueue sleep\n");
    } else {
        text.push_str(&job_table(&look.jobs, look.at).render(color));
    }
    text
}

/// Narrower than `jobs list`, and what is cut off first is told first by the queues above.
fn job_table(jobs: &[JobSummary], now: Timestamp) -> Table {
    let mut table = Table::new(&["JOB", "STATE", "TRY", "KIND", "NOTE", "QUEUE", "TENANT"]);
    for job in jobs {
        let tenant = if job.tenant == TenantName::default() { "" } else { job.tenant.as_str() };
        table.row(vec![
            job.id.to_string().into(),
            Cell::painted(job.state.as_str(), Paint::of_state(job.state)),
            Cell::number(format_args!("{}/{}", job.attempt, job.max_attempts)),
            shorten(job.kind.as_str(), NAME_CHARS_MAX).into(),
            Cell::dim(shorten(&note(job, now), NOTE_CHARS_MAX)),
            shorten(job.queue.as_str(), NAME_CHARS_MAX).into(),
            shorten(tenant, NAME_CHARS_MAX).into(),
        ]);
    }
    table
}

/// Whoever reads lines wants each change once: queues whose counts changed, jobs that are new or stand elsewhere.
fn print_changes(before: Option<&Look>, look: &Look, out: &mut Output) -> Result<(), Failure> {
    let known: HashMap<&QueueName, &QueueRecord> =
        before.iter().flat_map(|look| &look.queues).map(|queue| (&queue.name, queue)).collect();
    let queues: Vec<&QueueRecord> =
        look.queues.iter().filter(|queue| known.get(&queue.name).is_none_or(|before| before != queue)).collect();
    let known: HashMap<JobId, &JobSummary> =
        before.iter().flat_map(|look| &look.jobs).map(|job| (job.id, job)).collect();
    // Oldest first: in the order in which things happened.
    let jobs: Vec<&JobSummary> =
        look.jobs.iter().rev().filter(|job| known.get(&job.id).is_none_or(|before| before != job)).collect();
    if out.is_json() {
        if before.is_none() || !queues.is_empty() || !jobs.is_empty() {
            let queues: Vec<QueueLine> = look.queues.iter().map(QueueLine::from).collect();
            let jobs: Vec<JobLine> = look.jobs.iter().map(JobLine::from).collect();
            out.json(&json!({ "at": look.at.to_string(), "queues": queues, "jobs": jobs }))?;
        }
        return Ok(());
    }
    let clock = moment::absolute(look.at);
    for queue in queues {
        let paused = if queue.paused { ", paused" } else { "" };
        let oldest = queue
            .oldest_due
            .map_or_else(String::new, |due| format!(", oldest due for {}", moment::span(look.at.since(due))));
        out.line(format!(
            "{clock}  queue {}: {} due, {} scheduled, {} running{oldest}{paused}",
            queue.name, queue.due, queue.scheduled, queue.running
        ));
    }
    for job in jobs {
        let from = known.get(&job.id).filter(|before| before.state != job.state);
        let from = from.map_or_else(String::new, |before| format!("{} → ", before.state.as_str()));
        let note = crate::table::printable(&note(job, look.at));
        out.line(format!("{clock}  job {}  {}  {from}{}  {note}", job.id, job.kind, job.state.as_str()));
    }
    Ok(())
}
