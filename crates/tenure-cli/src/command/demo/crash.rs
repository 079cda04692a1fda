//! A worker is killed with -9 in the middle of its jobs.

use std::time::Instant;

use tenure_core::{JobId, LeaseNo};

use super::board::Mood;
use super::stage::{EXPORTS, IMAGES};
use super::story::{Story, WORKER_2, WORKER_4};
use crate::failure::Failure;
use tenure_server::moment;

/// It is killed when it holds at least so many jobs.
const HELD_MIN: usize = 3;

/// The worker that was killed, and what it held then.
pub(super) struct Killed {
    pub(super) name: &'static str,
    pub(super) pid: u32,
    pub(super) held: Vec<(LeaseNo, JobId)>,
}

impl Story {
    /// A worker is killed with -9 while it runs several jobs, and others finish them.
    pub(super) async fn a_crash(&mut self) -> Result<(), Failure> {
        let exports = self.cast.exports.len();
        self.until("worker-2 runs the catalog's exports", async |story| {
            let running = story.running_by(WORKER_2, HELD_MIN.max(exports)).await?;
            Ok(running.filter(|running| story.cast.exports.iter().all(|export| running.contains(export))))
        })
        .await?;
        self.crew.kill(WORKER_2)?;
        // It is dead: what it holds now it holds until its leases are over.
        let jobs = self.until("the store shows what it held", async |s| s.running_by(WORKER_2, HELD_MIN).await).await?;
        let mut held = Vec::new();
        let mut lease_ends = Instant::now();
        for job in jobs {
            let record = self.show(job).await?;
            if let (Some(lease), Some(ends)) = (record.lease, record.lease_expires_at) {
                held.push((lease, job));
                lease_ends = lease_ends.max(Instant::now() + ends.since(moment::now()));
            }
        }
        let pid = self.pid(WORKER_2);
        self.board.set_mood(WORKER_2, Mood::Killed, "kill -9");
        let count = held.len();
        let text = format!("{WORKER_2} (pid {pid}) was killed with -9 while it held {count} jobs");
        self.board.say_until(text, Some(lease_ends));
        self.until("the killed worker's jobs are taken back", async |story| {
            Ok(held.iter().all(|(lease, job)| story.board.is_lost(*lease, *job)).then_some(()))
        })
        .await?;
        let fourth = self.crew.start(WORKER_4, &[(EXPORTS, 4), (IMAGES, 2)])?;
        self.board.hire(WORKER_4, fourth, format!("in the place of {WORKER_2}"));
        self.board
            .say(format!("All {count} jobs of {WORKER_2} were taken back; {WORKER_4} (pid {fourth}) runs them again"));
        self.stage.open_gate(EXPORTS)?;
        self.killed = Some(Killed { name: WORKER_2, pid, held: held.clone() });
        self.until("the killed worker's jobs are done by others", async |story| {
            for (_, job) in &held {
                if !story.show(*job).await?.summary.state.is_terminal() {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await?;
        self.breathe().await;
        Ok(())
    }
}
