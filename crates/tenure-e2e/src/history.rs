//! The client's history: what producers were told about their enqueues. And producers that make one.
//!
//! An enqueue is *acknowledged* when the store said so, and *unknown* when its answer did not come: then the same one is
//! sent again, under the same idempotency key, until there is an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tenure_core::JobId;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_worker::{Client, Job};

use crate::act::Act;
use crate::stage::unique;

/// A pause before the same enqueue is sent again.
const AGAIN: Duration = Duration::from_millis(50);
/// A pause between two enqueues of one producer.
const BETWEEN: Duration = Duration::from_millis(5);

/// What producers were told. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    acknowledged: Vec<JobId>,
    by_key: HashMap<String, JobId>,
    unknown: usize,
    repeated: usize,
}

impl History {
    /// These are stored.
    pub fn acknowledge(&self, stored: &[Enqueued]) {
        self.lock().acknowledged.extend(stored.iter().map(Enqueued::job));
    }

    /// The request of this key is stored as this job, which was there before if `found`.
    pub fn acknowledge_key(&self, key: &str, job: JobId, found: bool) {
        let mut told = self.lock();
        told.repeated += usize::from(found);
        match told.by_key.insert(key.to_owned(), job) {
            None => told.acknowledged.push(job),
            Some(before) => assert_eq!(before, job, "one key, one job: {key}"),
        }
    }

    /// An answer did not come.
    pub fn unknown(&self) {
        self.lock().unknown += 1;
    }

    /// Every job that somebody was told of.
    pub fn acknowledged(&self) -> Vec<JobId> {
        self.lock().acknowledged.clone()
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.lock().acknowledged.len()
    }

    /// Answers that did not come.
    pub fn unknowns(&self) -> usize {
        self.lock().unknown
    }

    /// Enqueues that were sent again and found what the first one had stored.
    pub fn repeated(&self) -> usize {
        self.lock().repeated
    }

    /// Stores one job, however often that has to be asked.
    pub async fn enqueue<J: Job + Clone>(&self, client: &Client, job: J) -> JobId {
        let key = unique();
        loop {
            match client.enqueue(job.clone()).idempotency_key(&key).await {
                Ok(stored) => {
                    self.acknowledge_key(&key, stored.job(), matches!(stored, Enqueued::Found { .. }));
                    return stored.job();
                }
                Err(StoreError::Unavailable(..)) => self.unknown(),
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap()
    }
}

/// Producers that enqueue one job after the other until they are stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    producers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    /// Starts so many, each with jobs of this kind.
    pub fn start(history: &History, client: &Client, producers: usize, act: &Act) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let one = || {
            let (history, client, act, stop) = (history.clone(), client.clone(), act.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    history.enqueue(&client, act.clone()).await;
                    tokio::time::sleep(BETWEEN).await;
                }
            })
        };
        let producers = (0..producers).map(|_| one()).collect();
        Self { stop, producers }
    }

    /// Stops them and waits until the last enqueue of each was answered.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        for producer in self.producers {
            producer.await.unwrap();
        }
    }
}
