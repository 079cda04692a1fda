//! What all actors share: the database, the ledger, and the things they pass to each other.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::{JobId, LeaseNo, QueueName, WorkerId};
use tenure_postgres::mutant::Mutant;
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::StoreError;
use tokio_postgres::{Client, NoTls};

use crate::ledger::Ledger;
use crate::rng::Rng;

/// Ids kept for those who want to touch a job.
const RECENT: usize = 60;

/// The ground on which everybody meets.
pub(crate) struct Field {
    pub(crate) url: String,
    pub(crate) seed: u64,
    /// A run on broken SQL, to see whether it is noticed.
    mutant: Option<Mutant>,
    pub(crate) ledger: Ledger,
    /// Jobs in a worker's hands, to be completed in a user's transaction.
    pub(crate) grants: Mutex<Vec<Grant>>,
    /// Prepared transactions, and when to end them.
    pub(crate) prepared: Mutex<Vec<Prepared>>,
    recent: Mutex<Vec<JobId>>,
    began: Instant,
    stop: AtomicBool,
}

/// One job under one lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseNo,
    pub(crate) job: JobId,
}

/// A transaction that waits for its second phase.
pub(crate) struct Prepared {
    pub(crate) name: String,
    pub(crate) due: Instant,
    pub(crate) work: crate::user::Work,
}

impl Field {
    pub(crate) fn new(url: &str, seed: u64, mutant: Option<Mutant>) -> Self {
        Self {
            url: url.to_owned(),
            seed,
            mutant,
            ledger: Ledger::default(),
            grants: Mutex::default(),
            prepared: Mutex::default(),
            recent: Mutex::default(),
            began: Instant::now(),
            stop: AtomicBool::new(false),
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// A store with floors and connections of its own.
    pub(crate) async fn store(&self) -> PgStore {
        let options = PgOptions { connections_max: 2, mutant: self.mutant, ..PgOptions::default() };
        PgStore::connect(&self.url, options).await.expect("connect")
    }

    /// A plain connection, as a user has.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url).await
    }

    pub(crate) fn remember(&self, jobs: impl IntoIterator<Item = JobId>) {
        let mut recent = lock(&self.recent);
        recent.extend(jobs);
        let surplus = recent.len().saturating_sub(RECENT);
        recent.drain(..surplus);
    }

    /// A job that was there not long ago.
    pub(crate) fn some_job(&self, rng: &mut Rng) -> Option<JobId> {
        let recent = lock(&self.recent);
        (!recent.is_empty()).then(|| recent[rng.index(recent.len())])
    }

    /// Sorts out an error: refusals are part of the game, everything else is a fault.
    pub(crate) fn refused(&self, what: &str, error: &StoreError) {
        match error {
            StoreError::Unavailable(..) => self.ledger.count("unavailable (locks, serialization, idle)"),
            StoreError::Conflict(_) | StoreError::NotFound(_) | StoreError::LeaseLost(_) => {
                self.ledger.count("refused");
            }
            _ => self.ledger.fault(format!("{what}: {error}")),
        }
    }

    /// Runs `f` and walks away after `time`: what came of it stays unknown.
    pub(crate) async fn hang_up<T>(&self, time: Duration, f: impl Future<Output = T>) -> Option<T> {
        let answer = tokio::time::timeout(time, f).await.ok();
        if answer.is_none() {
            self.ledger.count("replies lost");
        }
        answer
    }
}

/// The two queues of the field.
pub(crate) fn queues() -> [QueueName; 2] {
    ["mail", "pages"].map(|name| QueueName::new(name).expect("a name"))
}

pub(crate) fn some_queue(rng: &mut Rng) -> QueueName {
    queues()[rng.index(2)].clone()
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connect");
    // Its end is seen by whoever uses the client.
    tokio::spawn(async { connection.await.unwrap_or_default() });
    client
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
