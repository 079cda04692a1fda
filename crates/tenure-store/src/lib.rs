//! The port between Tenure and its stores.
//!
//! A store is Postgres or SQLite; both pass the suite in `tenure-contract`. The verbs are coarse (many jobs at once,
//! one transaction each) and split by noun. Nobody above this line knows SQL, nobody below it decides a rule.
//!
//! # Layout
//! - [`store`]: the traits, all verbs on one page
//! - [`error`]: what can go wrong, grouped by what the caller does next
//! - [`enqueue`], [`lease`], [`gate`], [`schedule`], [`run`], [`operate`], [`record`], [`journal`], [`usage`], [`worker`]: requests
//!   and replies
//! - [`access`]: who may do what: tenants, keys, tokens of workers that come over HTTP
//! - [`webhook`]: who is told what, and what came of it
//! - [`operation`]: one act on many jobs, in the background
//! - [`rollup`]: sums over time, for charts and counters
//! - [`cache`]: answers that are kept for a while
//! - [`lines`]: which lines of a queue have work, and whose turn it is
//! - [`user_tx`]: a user's own open transaction, of any driver; [`sink`]: pages of rows that go into it; [`table`]: rows
//!   that come out of it
//! - [`audit`]: recomputes the sealed journal and replays it through the lifecycle
//! - [`clock`]: whose time it is
//! - [`waker`]: wake-ups by somebody else than the store

pub mod store;

mod forward;
mod into_store;

pub mod error;

pub mod access;
pub mod cache;
pub mod enqueue;
pub mod gate;
pub mod journal;
pub mod lease;
pub mod operate;
pub mod operation;
pub mod record;
pub mod rollup;
pub mod run;
pub mod schedule;
pub mod usage;
pub mod webhook;
pub mod worker;

pub mod lines;
pub mod sink;
pub mod table;
pub mod user_tx;

pub mod audit;
pub mod clock;
pub mod waker;

pub use error::StoreError;
pub use into_store::IntoStore;
pub use store::{
    AccessStore, AdminStore, CacheStore, GateStore, JobStore, JournalStore, LeaseStore, OperationStore, RollupStore,
    RunStore, ScheduleStore, Store, WakeStore, WebhookStore,
};
pub use user_tx::UserTx;
pub use waker::Waker;
