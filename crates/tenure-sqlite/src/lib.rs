//! Tenure on one embedded SQLite file, or in memory.
//!
//! The same tables, verbs and answers as on Postgres. A file has one writer thread per process and may be shared by
//! several processes; in memory everything runs inline on the caller's thread, which is what simulations and users'
//! unit tests want.
//!
//! ```
//! use tenure_sqlite::{SqliteOptions, SqliteStore};
//! use tenure_store::AdminStore;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = SqliteStore::in_memory(SqliteOptions::default())?;
//! store.migrate().await?;
//! assert!(store.list_queues().await?.is_empty());
//! # Ok::<(), tenure_store::StoreError>(()) }).unwrap();
//! ```
//!
//! # Layout
//! - `store`: [`SqliteStore`], its options, and the verbs of the port, each handed to its file
//! - `transaction`: [`Transaction`], Tenure's verbs inside a transaction of the user's own; `user_tx`: behind the port
//! - [`sink`]: pages of rows into tables of the user's own; `table`: statements of theirs
//! - `engine`, `lane`, `turn`: who runs a verb, in which order, and what is committed together
//! - `tx`, `fault`, `row`: a statement's way to SQLite and back
//! - `enqueue`, `keys`, `show`, `list`, `cancel`, `requeue`: verbs of producers and operators
//! - `claim`, `renew`, `end`, `reclaim`, `ending`: verbs of workers, and what every ending shares
//! - `gate`, `lines`: what shared resources let through, and the lines inside a queue
//! - `schedule`: what asks for a job again and again
//! - `journal`, `queue`, `worker`, `cache`, `prune`, `migrate`, `violations`, `wake`: the record, upkeep and wake-ups
//! - `home`: a copied or restored file goes on with numbers of its own
//! - `mutants`: the fence predicates that a test may drop (feature `mutants`)

pub mod sink;
mod store;
mod table;
mod transaction;
mod user_tx;

mod engine;
mod lane;
mod turn;

mod fault;
mod row;
mod tx;

mod cancel;
mod enqueue;
mod keys;
mod list;
mod requeue;
mod show;

mod claim;
mod end;
mod ending;
mod reclaim;
mod renew;

mod gate;
mod gate_rule;
mod lines;

mod fold;
mod page;
mod run;
mod run_store;
mod schedule;

mod access;
mod admin;
mod cache;
mod delivery;
mod home;
mod journal;
mod migrate;
mod operation;
mod prune;
mod queue;
mod rollup;
mod usage;
mod violations;
mod wake;
mod webhook;
mod worker;

#[cfg(feature = "mutants")]
mod mutants;

#[cfg(feature = "mutants")]
pub use mutants::{FENCES, Mutation};
pub use store::{SqliteOptions, SqliteStore};
pub use transaction::Transaction;

// A user's own statements must be of the very version that is known here.
pub use rusqlite;
