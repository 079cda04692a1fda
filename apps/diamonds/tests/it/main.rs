//! The product on both stores, with real HTTP between it and its supplier.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bed;
mod bulk;
mod claim;
mod command;
mod errors;
mod guard;
mod log;
mod progress;
mod publish;
mod run;
mod story;
mod workers;
