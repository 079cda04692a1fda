//! The real binary: on a fresh SQLite store in a temporary directory, and on a Postgres database of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod access;
mod audit;
mod bad_input;
mod bench;
mod broker;
mod canary;
mod completions;
mod config;
mod counting;
mod dead;
mod demo;
mod enqueue;
mod enqueue_file;
mod following;
mod gates;
mod help;
mod hostile_text;
mod jobs;
mod kills;
mod kinds;
mod log;
mod measure;
mod partitions;
mod place;
mod postgres;
mod precedence;
mod products;
mod queues;
mod receiver;
mod run;
mod running;
mod runs;
mod schedules;
mod secrets;
mod sentry;
mod server;
mod signals;
mod stats;
mod traces;
mod unavailable;
mod walk;
mod watch;
mod worker;
mod workers;
