//! The registry of worker processes: what each says of itself, and what people read.

use tenure_core::name::{QueueName, WorkerName, check_text};
use tenure_core::{Invalid, Timestamp, WorkerId, worker_loop};

/// What a worker is and does now. It says so every few seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Who.
    pub worker: WorkerId,
    /// Where its loop stands.
    pub state: worker_loop::State,
    /// Handlers that run.
    pub running: u32,
    /// Endings on their way to the store.
    pub reporting: u32,
    /// What does not change while it lives.
    pub about: About,
}

/// What does not change while a worker process lives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The program's version.
    pub version: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// The queues it serves, with the slots of each.
    pub queues: Vec<(QueueName, u32)>,
}

/// One line of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its number, which leases and the journal name.
    pub id: WorkerId,
    /// As people read it; two starts may share one.
    pub name: WorkerName,
    /// When it started.
    pub registered_at: Timestamp,
    /// Its last beat; `None` when it never beat.
    pub beat: Option<Beat>,
    /// When that was.
    pub seen_at: Option<Timestamp>,
}

impl WorkerRecord {
    /// Refuses a list that is empty or too long.
    pub fn check_limit(limit: u32) -> Result<(), Invalid> {
        crate::operate::check_batch(limit)
    }
}

impl Beat {
    /// Refuses a version or a host that is no text, and queues without end.
    pub fn check(&self) -> Result<(), Invalid> {
        check_text("version", &self.about.version)?;
        check_text("host", &self.about.host)?;
        match self.about.queues.len() {
            0..=QUEUES_MAX => Ok(()),
            many => Err(Invalid::new("queues", many, format!("a worker serves at most {QUEUES_MAX} queues"))),
        }
    }
}

/// Most queues one worker serves.
pub const QUEUES_MAX: usize = 100;
