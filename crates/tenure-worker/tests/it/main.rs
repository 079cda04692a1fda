//! The worker on the embedded store, and on one that fails at will.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bench;
mod cache;
mod cancel;
mod drain;
mod flaky;
mod gates;
mod handlers;
mod lines;
mod looper;
mod outcomes;
mod reports;
mod runs;
mod schedules;
mod slots;
mod trace;
mod wakes;
