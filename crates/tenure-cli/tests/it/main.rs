//! The real binary on a fresh SQLite store in a temporary directory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod audit;
mod bad_input;
mod demo;
mod enqueue;
mod enqueue_file;
mod help;
mod jobs;
mod place;
mod precedence;
mod queues;
mod unavailable;
mod worker;
