//! The task runner on both stores, against its simulated world; as whole processes where they are killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod outage;
mod scene;

mod audit;
mod callbacks;
mod claims;
mod commands;
mod error_wait;
mod processes;
mod recovery;
mod rests;
mod steps;
mod story;
mod watch;
mod work;
