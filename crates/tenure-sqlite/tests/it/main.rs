//! The SQLite store's own tests. What both stores promise is in `tenure-contract`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod fixture;

mod additions;
mod against_core;
mod attack;
mod contract;
mod faults;
mod fences;
mod fences_in_contract;
mod files;
mod full_disk;
mod home;
mod invariants;
mod keys;
mod large;
mod limits;
mod migrations;
mod old_sqlite;
mod open;
mod plans;
mod process;
mod processes;
mod sink;
mod statements;
mod tampering;
mod transactions;
mod wake;
mod writer;
