//! Tenure over HTTP: the API `/v1`, and workers in any language.
//!
//! The server knows stores and JSON: whatever it answers it asks the store. It reads nobody's headers or
//! body longer than it said it would, tells nobody about another tenant, and refuses to listen beyond loopback without
//! keys.
//!
//! # Layout
//! - [`server`]: binds, serves, stops; [`accept`](mod@accept): connections, their limits and times
//! - [`options`]: what can be set
//! - `waiters`: claims that wait, and how they share looks
//! - [`caller`]: who calls and what they may do; `keyring`: keys as the store knows them, remembered for seconds
//! - `metrics`: figures for Prometheus
//! - [`api`]: one file per resource, and the OpenAPI document they add up to
//! - [`wire`], [`new_job`]: JSON out, and jobs in
//! - `trace`: the trace of a request goes on in its jobs
//! - [`operation`]: one act on many jobs, done by a worker; [`dead`]: dead letters by what killed them
//! - [`moment`], [`pretty`], [`gate_words`]: what people read, on the command line and on pages
//! - [`problem`]: every error, its code and its page; `body`, `query`, `cursor`: what callers send

mod right;
pub mod server;

pub mod accept;
pub mod options;

pub mod api;
mod app;
pub mod caller;
mod keyring;
mod metrics;
mod waiters;

mod bodies;
mod body;
mod cursor;
pub mod problem;
mod query;

pub mod new_job;
mod trace;
pub mod wire;

pub mod dead;
pub mod operation;

pub mod gate_words;
pub mod moment;
pub mod pretty;

pub use app::App;
pub use options::{Auth, Options};
pub use server::Server;
