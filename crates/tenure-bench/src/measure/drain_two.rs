//! `drain_two`: two worker processes empty one queue.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tenure_core::State;
use tenure_store::Store;
use tenure_store::record::JobFilter;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::Size;
use super::drain::{self, FLOOR_BATCH, FLOOR_CLIENTS, FLOOR_IS, beside, with_wal};
use crate::arena::{Arena, Field};
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

/// How often it is looked whether everything is done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The variable that names the store for a part: on the command line everybody could read its password.
pub const PART_STORE: &str = "TENURE_BENCH_STORE";
/// The hidden command by which a process becomes one of the two.
pub const PART: &str = "bench-part";

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (drain::jobs(size), format!("2 processes, each {}", Crew::BEST.settings()), FLOOR_IS)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let (jobs, field) = (drain::jobs(size), arena.field().await?);
    fill(&field.store, jobs, Due::Now).await?;
    field.floor.fill(jobs).await?;
    let ours = with_wal(&field, jobs, by_two(&field, jobs));
    let floor = field.floor.drain(jobs, FLOOR_BATCH, FLOOR_CLIENTS);
    let ((ours, wal_per_job), floor) = beside(&field, floor_first, ours, floor).await?;
    Ok(Round { wal_per_job, ..Round::rates(jobs, ours, floor) })
}

/// From the word to both until every job is done; both are started and connected before.
async fn by_two(field: &Field, jobs: u32) -> Result<Duration> {
    let mut parts = [Part::start(&field.address).await?, Part::start(&field.address).await?];
    let began = Instant::now();
    for part in &mut parts {
        part.stdin.write_all(b"go\n").await?;
    }
    // A process knows what it was answered, not what the other does: the store is asked.
    while !is_empty(field).await? {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let took = began.elapsed();
    let mut done = 0;
    for part in parts {
        done += part.stop().await?;
    }
    ensure!(done == u64::from(jobs), "{done} jobs were done, not {jobs}");
    Ok(took)
}

/// One job is looked for, not counted: counting would be measured as well.
async fn is_empty(field: &Field) -> Result<bool> {
    for state in [State::Queued, State::Running] {
        let filter = JobFilter { state: Some(state), limit: 1, ..JobFilter::default() };
        if !field.store.list_jobs(&filter).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Part {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    async fn start(address: &str) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg(PART).env(PART_STORE, address);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take().context("stdin")?, child.stdout.take().context("stdout")?);
        let mut lines = BufReader::new(stdout).lines();
        let ready = lines.next_line().await?;
        ensure!(ready.as_deref() == Some("ready"), "a process of the bench did not start");
        Ok(Self { child, stdin, lines })
    }

    /// Lets it end; answers how many jobs it has done.
    async fn stop(mut self) -> Result<u64> {
        drop(self.stdin);
        let done = self.lines.next_line().await?.context("a process of the bench ended early")?;
        self.child.wait().await?;
        Ok(done.parse()?)
    }
}

/// One of the two: says that it is ready, works from the first line of stdin to its end, and tells how many it has done.
pub async fn run_part(store: &Arc<dyn Store>) -> Result<()> {
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    lines.next_line().await?;
    let over = async move { while let Ok(Some(_)) = lines.next_line().await {} };
    let (done, _) = Crew::BEST.run_until(store, u32::MAX, over).await?;
    println!("{done}");
    Ok(())
}
