//! A worker sleeps through the end of its lease, and reports when it wakes up.

use std::time::{Duration, Instant};

use tenure_core::{JobId, LeaseNo};

use super::board::Mood;
use super::stage::REPORTS;
use super::story::{LOOK_EVERY, Story, WORKER_3, WORKER_5};
use crate::failure::{Failure, exit};
use tenure_server::moment;

/// How long a frozen process may seem to hold the file's lock before it is let go again.
const LOCKED_FOR: Duration = Duration::from_millis(800);

/// The worker that was frozen, and what it held then.
pub(super) struct Frozen {
    pub(super) name: &'static str,
    pub(super) pid: u32,
    pub(super) held: (LeaseNo, JobId),
}

impl Story {
    /// A worker sleeps through the end of its lease, and reports when somebody else runs its job.
    pub(super) async fn a_stale_worker(&mut self) -> Result<(), Failure> {
        let (report, pid) = (self.cast.report, self.pid(WORKER_3));
        let lease = self.freeze().await?;
        let ends = self.show(report).await?.lease_expires_at.map(|ends| Instant::now() + ends.since(moment::now()));
        self.board.set_mood(WORKER_3, Mood::Frozen, "SIGSTOP");
        self.board.say_until(format!("{WORKER_3} (pid {pid}) was frozen while it built a report"), ends);
        let fifth = self.crew.start(WORKER_5, &[(REPORTS, 1)])?;
        self.board.hire(WORKER_5, fifth, format!("in the place of {WORKER_3}"));
        let successor_lease = self
            .until("worker-5 runs the frozen worker's report", async |story| {
                let job = story.show(report).await?;
                let runs = job.summary.locked_by.as_deref() == Some(WORKER_5) && story.board.is_lost(lease, report);
                Ok(job.lease.filter(|_| runs))
            })
            .await?;
        self.board.say(format!(
            "{WORKER_5} runs the report under lease {successor_lease}; {WORKER_3} still believes in lease {lease}"
        ));
        self.breathe().await;
        self.crew.wake(WORKER_3)?;
        self.board.set_mood(WORKER_3, Mood::Running, "SIGCONT");
        self.until("the woken worker's report is refused", async |story| {
            Ok(story.board.is_refused(lease, report).then_some(()))
        })
        .await?;
        // Its successor's work has no end before the gate is open: who else could have ended the job?
        if self.show(report).await?.summary.state.is_terminal() {
            return Err(Failure::new("demo", exit::REFUSED, "a stale worker's report ended a job it no longer held"));
        }
        self.board.set_mood(WORKER_3, Mood::Refused, "its report came too late");
        self.board
            .say(format!("{WORKER_3} woke up and reported: too late, and refused. {WORKER_5} goes on undisturbed"));
        self.breathe().await;
        self.stage.open_gate(REPORTS)?;
        let held = (lease, report);
        self.frozen = Some(Frozen { name: WORKER_3, pid, held });
        Ok(())
    }

    /// Freezes the worker while it holds its job, and answers under which lease.
    ///
    /// One that is frozen in the middle of a commit keeps the file locked for everybody. That is what an embedded file
    /// costs and not what is shown here: it is woken and frozen again a moment later.
    async fn freeze(&mut self) -> Result<LeaseNo, Failure> {
        let report = self.cast.report;
        loop {
            self.until("worker-3 runs its report", async |story| {
                let job = story.show(report).await?;
                Ok(job.lease.filter(|_| job.summary.locked_by.as_deref() == Some(WORKER_3)))
            })
            .await?;
            self.crew.freeze(WORKER_3)?;
            let written = tokio::time::timeout(LOCKED_FOR, self.stage.set_lease(REPORTS)).await;
            let job = self.show(report).await?;
            if let (Ok(Ok(())), Some(WORKER_3), Some(lease)) = (written, job.summary.locked_by.as_deref(), job.lease) {
                return Ok(lease);
            }
            self.crew.wake(WORKER_3)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
