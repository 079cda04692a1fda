//! The real binary: on a fresh SQLite store in a temporary directory, and on a Postgres database of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod audit;
mod bad_input;
mod demo;
mod enqueue;
mod enqueue_file;
mod help;
mod jobs;
mod place;
mod postgres;
mod precedence;
mod queues;
mod unavailable;
mod worker;
