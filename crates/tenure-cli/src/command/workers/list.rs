//! `tenure workers list`: who works, where, on which queues.

use clap::Args;
use tenure_core::name::QueueName;
use tenure_core::worker_loop::State;
use tenure_core::{Timestamp, WorkerId};
use tenure_store::operate::BATCH_MAX;
use tenure_store::worker::{Standing, WorkerRecord};

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::wire::worker::WorkerLine;

/// Characters of the list of queues; --json has all.
const QUEUES_CHARS_MAX: usize = 40;
/// Characters of a name or a host.
const NAME_CHARS_MAX: usize = 32;

const EXAMPLES: &str = "\
Examples:
  tenure workers list          who works, where, on which queues
  tenure workers list --all    also those that stopped or are gone
  tenure workers list --json

A worker says every few seconds that it is there; who did not for 30s is gone. What a gone worker held is taken
back when its lease ends. QUEUES are the queues it serves, with the slots of each; NO is its number in the journal.";

/// List workers with what they do
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Also those that stopped or were not seen for 30s
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: &ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    let workers = store.list_workers(BATCH_MAX).await?;
    let now = store.now().await?;
    let full = workers.len() == BATCH_MAX as usize;
    let (there, gone): (Vec<_>, Vec<_>) = workers
        .into_iter()
        .map(|worker| (Standing::of(&worker, now), worker))
        .partition(|(standing, _)| standing.is_there());
    let hidden = if args.all { 0 } else { gone.len() };
    let mut shown = there;
    if args.all {
        shown.extend(gone);
    }
    if session.out.is_json() {
        let line = |(standing, worker): &(Standing, WorkerRecord)| WorkerLine::new(worker, standing.as_str());
        session.out.json(&shown.iter().map(line).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if shown.is_empty() {
        session.out.line("No workers.");
    } else {
        session.out.table(&table(&shown, now));
    }
    if hidden > 0 {
        session.out.line(format!("\n{hidden} stopped or were not seen for 30s: --all shows them."));
    }
    if full {
        session.out.line(format!("\nThere may be more: these are of the {BATCH_MAX} that were seen last."));
    }
    Ok(Answer::Done)
}

fn table(workers: &[(Standing, WorkerRecord)], now: Timestamp) -> Table {
    let head = ["WORKER", "NO", "STATE", "QUEUES", "RUNNING", "REPORTING", "SEEN", "HOST", "PID", "VERSION"];
    let mut table = Table::new(&head);
    for (standing, worker) in workers {
        let WorkerId(number) = worker.id;
        let mut cells = vec![
            shorten(worker.name.as_str(), NAME_CHARS_MAX).into(),
            Cell::number(number),
            Cell::painted(standing.as_str(), paint(*standing)),
        ];
        let seen = worker.seen_at.unwrap_or(worker.registered_at);
        let seen = Cell::dim(moment::relative(seen, now));
        match &worker.beat {
            Some(beat) => cells.extend([
                shorten(&queues(&beat.about.queues), QUEUES_CHARS_MAX).into(),
                Cell::number(beat.running),
                Cell::number(beat.reporting),
                seen,
                shorten(&beat.about.host, NAME_CHARS_MAX).into(),
                Cell::number(beat.about.pid),
                Cell::dim(shorten(&beat.about.version, NAME_CHARS_MAX)),
            ]),
            None => cells.extend([Cell::default(), Cell::default(), Cell::default(), seen]),
        }
        table.row(cells);
    }
    table
}

/// `mail 8, default 2`.
fn queues(queues: &[(QueueName, u32)]) -> String {
    queues.iter().map(|(queue, slots)| format!("{queue} {slots}")).collect::<Vec<_>>().join(", ")
}

const fn paint(standing: Standing) -> Paint {
    match standing {
        Standing::There(State::Polling | State::Claiming | State::Backoff | State::Idle) => Paint::Green,
        Standing::There(State::ErrorWait) | Standing::Gone => Paint::Red,
        Standing::There(State::Draining) => Paint::Yellow,
        Standing::There(State::Startup | State::Connecting | State::Recovery) | Standing::New => Paint::Cyan,
        Standing::There(State::Stopped) | Standing::Stopped => Paint::Dim,
    }
}
