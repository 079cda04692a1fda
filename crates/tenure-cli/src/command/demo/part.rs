//! A worker process of the demo: the same program, started by it with hidden flags.
//!
//! It must never outlive the demo. Its standard input is a pipe that only the demo holds: when that is closed, by the
//! demo or by the demo's end however sudden, the worker ends. (A frozen one cannot; see `crew` for what wakes it.)

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tenure_sqlite::SqliteStore;
use tenure_worker::Worker;

use super::{kinds, stage};
use crate::command::Answer;
use crate::failure::{Failure, exit};

/// How long jobs may go on when the demo says that it is over, or is gone.
const GRACE: Duration = Duration::from_millis(500);
/// A worker that has not ended by itself so long after the demo's end is ended.
const END_AFTER: Duration = Duration::from_secs(5);

/// Flags of a worker process; the demo sets them, people do not.
#[derive(Debug, Args)]
pub(super) struct PartArgs {
    /// Its name
    #[arg(long = "part", value_name = "NAME", hide = true, requires = "part_dir")]
    pub(super) part: Option<String>,
    /// The demo's directory
    #[arg(long = "part-dir", value_name = "DIR", hide = true, requires = "part")]
    part_dir: Option<PathBuf>,
    /// A queue it serves, and its slots
    #[arg(long = "part-queue", value_name = "NAME=SLOTS", hide = true, requires = "part", value_parser = queue)]
    part_queues: Vec<(String, u32)>,
}

/// The command line of a worker process.
pub(super) fn arguments(name: &str, dir: &std::path::Path, queues: &[(&str, u32)]) -> Vec<std::ffi::OsString> {
    let mut arguments = vec!["demo".into(), "--part".into(), name.into(), "--part-dir".into(), dir.into()];
    for (queue, slots) in queues {
        arguments.extend(["--part-queue".into(), format!("{queue}={slots}").into()]);
    }
    arguments
}

/// Runs until the demo closes the pipe.
pub(super) async fn run(args: &PartArgs, name: &str) -> Result<Answer, Failure> {
    let Some(dir) = args.part_dir.clone() else { return Err(Failure::usage("usage", "--part needs --part-dir")) };
    let over = parent_gone().map_err(|error| unheard(&error))?;
    let store = stage::store(&dir)?;
    let queues: Vec<(&str, u32)> = args.part_queues.iter().map(|(queue, slots)| (queue.as_str(), *slots)).collect();
    let worker = worker(&store, name, &queues, dir)?;
    worker.run_until(over).await.map_err(|error| unheard(&error))?;
    Ok(Answer::Done)
}

/// A worker of the shop: in the demo's own process, or in one of its own.
pub(super) fn worker(store: &SqliteStore, name: &str, queues: &[(&str, u32)], dir: PathBuf) -> Result<Worker, Failure> {
    let mut worker = Worker::builder(store)
        .name(name)
        .grace(GRACE)
        .poll_every(Duration::from_millis(250))
        .reclaim_every(Duration::from_millis(500));
    for (queue, slots) in queues {
        worker = worker.queue(*queue, *slots);
    }
    Ok(kinds::add(worker, store.clone(), dir).build()?)
}

/// Is over when standard input is.
fn parent_gone() -> std::io::Result<impl Future<Output = ()>> {
    let (tell, told) = tokio::sync::oneshot::channel();
    // A thread of its own: a read of a pipe cannot be cancelled, and handlers must not keep it from running.
    std::thread::Builder::new().name("demo-parent".into()).spawn(move || {
        // Nothing is ever written: whatever ends the read, the demo is over.
        let _ = std::io::stdin().read(&mut [0]);
        // Nobody listens when the worker has ended by itself.
        let _ = tell.send(());
        std::thread::sleep(END_AFTER);
        std::process::exit(exit::REFUSED.into());
    })?;
    Ok(async move {
        let _ = told.await;
    })
}

fn unheard(error: &std::io::Error) -> Failure {
    Failure::new("worker", exit::STORE, "the worker cannot start").caused_by(error)
}

fn queue(text: &str) -> Result<(String, u32), String> {
    let (name, slots) = text.split_once('=').ok_or("a queue and its slots, such as shop=4")?;
    Ok((name.to_owned(), slots.parse().map_err(|_| "slots are a number")?))
}
