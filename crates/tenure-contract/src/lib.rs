//! The conformance suite that every store of Tenure passes.
//!
//! A store wires it in with one line in its `tests/it`:
//!
//! ```
//! use std::sync::Arc;
//! use tenure_contract::{Fixture, model::ModelStore};
//! use tenure_store::clock::ManualClock;
//!
//! /// A fresh, migrated store that reads `clock`; `.keeping(…)` holds a temporary directory until the case is over.
//! async fn open(clock: ManualClock) -> Fixture {
//!     Fixture::new("model", Arc::new(ModelStore::new(clock.clone())), clock)
//! }
//! tenure_contract::store_contract! { open }
//! ```
//!
//! and gets one named test for each case and each scenario.
//!
//! # Layout
//! - [`fixture`]: what a case gets, [`harness`]: how it is run and what is looked at after it; [`dice`] for random cases
//! - [`script`]: stories as text, [`scenarios`]: those of the suite
//! - [`cases`]: one function for each cell of the [`matrix`], and what scripts cannot say (races, the journal)
//! - [`list`]: the one list of all of them, and the macro; [`stories`]: the scenarios in it
//! - [`model`]: the oracle, and ways to break it
//! - [`sink`]: pages for sinks, and what a table holds after them
//! - [`postgres_server`], [`pgbouncer`]: the private servers of `tenure-cluster`, for the cases on Postgres

pub mod dice;
pub mod fixture;
pub mod harness;

pub mod script;

pub mod cases;
pub mod list;
pub mod matrix;
pub mod scenarios;
pub mod stories;

pub mod model;
pub mod sink;

pub use tenure_cluster::{pgbouncer, postgres_backup, postgres_server, test_database};

pub use fixture::Fixture;
pub use harness::{CaseFn, clock_at_start, run_case};
pub use list::CASES;
