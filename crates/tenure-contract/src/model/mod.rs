//! The oracle: a store in memory, small and obviously right.
//!
//! Every rule comes from `tenure_core::apply`; what stands here is only bookkeeping. A verb works on a copy of the
//! tables and puts it in place when it succeeds, so a transaction happened whole or not at all, and one lock makes
//! concurrent verbs take turns. Real stores must be indistinguishable from it by the suite.
//!
//! # Layout
//! - `tables`: the rows, and the one function that lets core decide and writes what it says
//! - `jobs`, `leases`, `gates`, `schedules`, `runs`, `cache`, `access`, `webhooks`, `operations`, `rollups`, `journal`, `admin`: the verbs by noun
//! - [`mutant`]: ways to break it on purpose, to see that the suite notices

mod access;
mod admin;
mod cache;
mod gates;
mod jobs;
mod journal;
mod leases;
mod operations;
mod rollups;
mod run_steps;
mod runs;
mod schedules;
mod tables;
mod webhooks;

pub mod mutant;

use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::Timestamp;
use tenure_store::StoreError;
use tenure_store::clock::ManualClock;
use tenure_store::lines::Lines;
use tokio::sync::Notify;

use self::mutant::Mutant;
use self::tables::Tables;

/// A store in memory on top of the rules. Clones are handles of the same store.
#[derive(Clone)]
pub struct ModelStore {
    clock: ManualClock,
    mutant: Option<Mutant>,
    tables: Arc<Mutex<Tables>>,
    lines: Arc<Lines>,
    work: Arc<Notify>,
}

impl ModelStore {
    /// An empty store whose time is `clock`.
    pub fn new(clock: ManualClock) -> Self {
        Self { clock, mutant: None, tables: Arc::default(), lines: Arc::new(Lines::new(true)), work: Arc::default() }
    }

    /// An empty store that is broken in one way.
    pub fn broken(clock: ManualClock, mutant: Mutant) -> Self {
        Self { mutant: Some(mutant), ..Self::new(clock) }
    }

    fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Runs a verb: its writes stay only when it answers `Ok`.
    fn transact<T>(&self, verb: impl FnOnce(&mut Tables, Timestamp) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copy = tables.clone();
        let answer = verb(&mut copy, self.clock.now())?;
        *tables = copy;
        Ok(answer)
    }

    /// Runs a verb that only looks.
    fn look<T>(&self, verb: impl FnOnce(&Tables, Timestamp) -> Result<T, StoreError>) -> Result<T, StoreError> {
        verb(&self.tables.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now())
    }
}
