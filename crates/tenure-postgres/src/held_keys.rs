//! Unique keys that an open transaction holds.
//!
//! An enqueue that meets such a key waits for that transaction on a connection of the pool, until the lock timeout. Many
//! enqueues of one held key would take every connection, and nothing else could be stored, claimed or reported. So a key
//! that was waited for in vain is remembered, and enqueues that name a remembered key wait one behind the other, until
//! one of them is answered.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::NewJob;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::call::late;
use crate::error::met_a_lock;
use crate::store::PgStore;

/// Keys that are remembered. Beyond that all are forgotten, and waited for side by side once more.
const KEYS_MAX: usize = 10_000;

/// Tenant, scope and key; an idempotency key has no scope.
type Key = (String, Option<String>, String);

pub(crate) struct HeldKeys {
    keys: Mutex<HashSet<Key>>,
    turn: Semaphore,
}

impl Default for HeldKeys {
    fn default() -> Self {
        Self { keys: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl PgStore {
    /// Stores jobs in one call of their own, after those that wait for the same held key.
    pub(crate) async fn enqueue_by_key(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let _turn = self.turn_for_held_key(jobs).await?;
        let answer = self.enqueue_now(jobs).await;
        self.held_keys().learn(jobs, &answer);
        answer
    }

    async fn turn_for_held_key(&self, jobs: &[NewJob]) -> Result<Option<SemaphorePermit<'_>>, StoreError> {
        if !self.held_keys().has_one_of(jobs) {
            return Ok(None);
        }
        let deadline = self.options().deadline;
        let turn = tokio::time::timeout(deadline, self.held_keys().turn.acquire()).await;
        Ok(turn.map_err(|_| late(deadline))?.ok())
    }
}

impl HeldKeys {
    fn has_one_of(&self, jobs: &[NewJob]) -> bool {
        let held = self.lock();
        !held.is_empty() && jobs.iter().flat_map(keys).any(|key| held.contains(&key))
    }

    fn learn(&self, jobs: &[NewJob], answer: &Result<Vec<Enqueued>, StoreError>) {
        let mut held = self.lock();
        match answer {
            Err(error) if met_a_lock(error) => {
                if held.len() >= KEYS_MAX {
                    held.clear();
                }
                held.extend(jobs.iter().flat_map(keys));
            }
            Ok(_) if !held.is_empty() => {
                for key in jobs.iter().flat_map(keys) {
                    held.remove(&key);
                }
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        // A set is whole after every operation, also after one that panicked.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keys(job: &NewJob) -> impl Iterator<Item = Key> {
    let tenant = job.tenant.as_str();
    let unique = job.unique.as_ref().map(|unique| {
        let scope = unique.scope.as_deref().unwrap_or(job.kind.as_str());
        (tenant.to_owned(), Some(scope.to_owned()), unique.key.clone())
    });
    let idempotency = job.idempotency_key.as_ref().map(|key| (tenant.to_owned(), None, key.clone()));
    unique.into_iter().chain(idempotency)
}
