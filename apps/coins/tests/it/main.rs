//! The product on both stores, with real HTTP between it and its sources.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod answers;
mod collect;
mod govern;
mod program;
mod questions;
mod retry;
mod rhythm;
mod shop;
mod story;
mod workers;
