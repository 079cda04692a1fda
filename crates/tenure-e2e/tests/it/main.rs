//! Whole worker processes, and what happens to processes. Each test prints its numbers, and fails when its fault did not
//! really hit: a run in which nothing was killed, frozen or refused proves nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod blocked;
mod frozen;
mod harm;
mod keeper;
mod kills;
mod restarts;
mod sigterm;
mod sigterm_no_store;
mod silence;

mod process;
mod proxy;
mod record;
mod stage;
mod watch;
