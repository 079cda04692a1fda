//! The registry of worker processes: what each says of itself, and what people read.

use std::time::Duration;

use tenure_core::name::{QueueName, WorkerName, check_text};
use tenure_core::{Invalid, Timestamp, WorkerId, worker_loop};

use crate::operate::Word;

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

/// What a worker is told to do, until it is told something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Go on.
    #[default]
    Work,
    /// Claim nothing more, finish what is there, stay.
    Quiet,
    /// Claim nothing more, finish what is there, and go.
    Stop,
}

/// Tell a worker what to do. It hears of it with its next beat.
#[derive(Debug, Clone)]
pub struct OrderWorker {
    /// Whom.
    pub worker: WorkerId,
    /// What.
    pub order: Order,
    /// Who and why.
    pub word: Word,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Work, Self::Quiet, Self::Stop];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Quiet => "quiet",
            Self::Stop => "stop",
        }
    }

    /// The order of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.as_str() == word)
    }
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
    /// What it is told to do.
    pub order: Order,
}

/// What a worker is, as far as the registry knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It said so lately.
    There(worker_loop::State),
    /// Registered a moment ago, and has not said anything yet.
    New,
    /// It said that it stopped.
    Stopped,
    /// It said nothing for too long.
    Gone,
}

/// A worker beats every few seconds; who was silent for so long is not there any more, or cannot reach the store.
const GONE_AFTER: Duration = Duration::from_secs(30);

impl Standing {
    /// Of this worker, by the store's clock.
    pub fn of(worker: &WorkerRecord, now: Timestamp) -> Self {
        let silent = now.since(worker.seen_at.unwrap_or(worker.registered_at)) >= GONE_AFTER;
        match worker.beat.as_ref().map(|beat| beat.state) {
            Some(worker_loop::State::Stopped) => Self::Stopped,
            _ if silent => Self::Gone,
            Some(state) => Self::There(state),
            None => Self::New,
        }
    }

    /// Whether it works, or is about to.
    pub const fn is_there(self) -> bool {
        matches!(self, Self::There(_) | Self::New)
    }

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::There(state) => state.as_str(),
            Self::New => "new",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
        }
    }
}

impl WorkerRecord {
    /// Slots in which this worker takes jobs of a queue now. A worker that is gone, stops or was told to be quiet takes none.
    pub fn slots_of(&self, queue: &QueueName, now: Timestamp) -> u64 {
        let takes_jobs = match Standing::of(self, now) {
            Standing::There(state) => state != worker_loop::State::Draining && self.order == Order::Work,
            Standing::New | Standing::Stopped | Standing::Gone => false,
        };
        let served = self.beat.iter().filter(|_| takes_jobs).flat_map(|beat| &beat.about.queues);
        served.filter(|(name, _)| name == queue).map(|(_, slots)| u64::from(*slots)).sum()
    }

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn worker(state: worker_loop::State, order: Order) -> WorkerRecord {
        let about = About { queues: vec![(queue("mail"), 3)], ..About::default() };
        WorkerRecord {
            id: WorkerId(1),
            name: WorkerName::new("w").unwrap(),
            registered_at: Timestamp::EPOCH,
            beat: Some(Beat { worker: WorkerId(1), state, running: 0, reporting: 0, about }),
            seen_at: Some(Timestamp::EPOCH),
            order,
        }
    }

    #[test]
    fn only_a_worker_that_is_there_and_takes_jobs_serves_its_queues() {
        use worker_loop::State::{Draining, Polling, Stopped};
        let (soon, late) = (Timestamp::EPOCH.plus(Duration::from_secs(5)), Timestamp::EPOCH.plus(GONE_AFTER));
        for (state, order, now, slots) in [
            (Polling, Order::Work, soon, 3),
            (Polling, Order::Quiet, soon, 0),
            (Polling, Order::Stop, soon, 0),
            (Draining, Order::Work, soon, 0),
            (Stopped, Order::Work, soon, 0),
            (Polling, Order::Work, late, 0),
        ] {
            let worker = worker(state, order);
            assert_eq!(worker.slots_of(&queue("mail"), now), slots, "{state:?} {order:?} {now}");
            assert_eq!(worker.slots_of(&queue("other"), now), 0);
        }
        let silent = WorkerRecord { beat: None, seen_at: None, ..worker(Polling, Order::Work) };
        assert_eq!(silent.slots_of(&queue("mail"), soon), 0, "its queues are not known yet");
    }
}
