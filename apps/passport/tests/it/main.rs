//! The product on both stores, with real HTTP between it and whom it tells.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod broker;
mod leases;
mod pipeline;
mod plant;
mod process;
mod program;
mod refusals;
mod schema;
mod story;
mod tenants;
mod webhooks;
mod workers;
