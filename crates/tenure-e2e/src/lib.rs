//! Whole processes against whole faults. For tests only.
//!
//! A row of the fault matrix starts worker processes, does to them and to their database what happens to processes and
//! databases, and holds the store's record against a [`ledger`] that knows nothing of the store. The same rows run small
//! in `./x test` and full in `./x chaos`, which writes docs/FAULTS.md.
//!
//! # Layout
//! - [`rows`]: the rows, a file for each fault or family of faults, and the one list of them
//! - [`report`]: what a row is and what a run of it says; [`pass_line`]: what every row has to show; [`table`]: docs/FAULTS.md
//! - [`stage`], [`process`], [`proxy`], [`skew`], [`watch`]: an empty store, processes on it, faults on the wire, wrong clocks, waiting
//! - [`history`], [`record`]: what producers were told, what the store says
//! - [`act`], [`sink`], [`gate`], [`source`], [`ledger`]: what handlers do, write, wait for, call and leave behind
//! - [`place`]: a store by its URL or path
//! - `main.rs`: the process `tenure-e2e-worker`; `chaos.rs`: `tenure-chaos`; `tests/it`: each row, small

#![expect(clippy::unwrap_used, reason = "a row that cannot go on panics, and has failed")]

pub mod rows;

pub mod pass_line;
pub mod report;
pub mod table;

pub mod process;
pub mod proxy;
pub mod skew;
pub mod stage;
pub mod watch;

pub mod history;
pub mod ingest;
pub mod record;

pub mod act;
pub mod gate;
pub mod ledger;
pub mod place;
pub mod sink;
pub mod source;

pub use act::Act;
pub use gate::Gates;
pub use ledger::{Entry, Ledger, Reader};
pub use place::Place;
pub use report::{Report, Row, Size};
