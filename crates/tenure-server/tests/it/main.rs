//! The server over real sockets, on both stores. Every answer is held against the OpenAPI document.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod access;
mod conform;
mod connections;
mod documents;
mod hostile;
mod http;
mod jobs;
mod leases;
mod metrics;
mod operate;
mod operations;
mod place;
mod routes;
mod wakes;
mod webhooks;
