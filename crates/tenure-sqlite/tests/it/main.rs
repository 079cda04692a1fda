//! The SQLite store's own tests. What both stores promise is in `tenure-contract`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod fixture;

mod against_core;
mod contract;
mod fences;
mod files;
mod invariants;
mod keys;
mod open;
mod plans;
mod statements;
mod transactions;
mod wake;
mod writer;
