//! The words and rules of Tenure, pure.
//!
//! Nothing here reads a clock, draws a random number, opens a file or knows a wire format: time and random bits
//! arrive as arguments, decisions leave as data. Both stores and the worker obey what stands here, and the same
//! text scripts run against this crate, SQLite and Postgres.
//!
//! # Layout
//! - [`lifecycle`]: the states of a job and the one table of its transitions
//! - [`apply`](mod@apply): what an event does to a job, and the effects a store must write
//! - [`backoff`], [`classify`], [`failure`], [`preset`]: when to try again, what an error means, what is kept of it, the
//!   seeds' five policies
//! - [`cron`]: when a schedule fires, in which time zone, and what becomes of a missed fire
//! - [`unique`]: which enqueue finds an earlier job instead of creating one
//! - [`gate`]: what a shared resource lets through: rate, concurrency, breaker, pause
//! - [`line`](mod@line), [`turns`]: the lines inside a queue, and whose turn it is
//! - [`run`]: many jobs with one goal, their counts, and when the last one may begin
//! - [`dedupe`], [`fold`]: when two things that were collected are one, and which of them stays
//! - [`seal`]: the hash chain over the journal
//! - [`histogram`]: how long things took, by fixed bounds
//! - [`key`]: API keys and worker tokens, and what they allow
//! - [`webhook`]: what may be told to others, and how an endpoint chooses
//! - [`worker_loop`], [`slot`]: the two state machines of a worker process
//! - [`new_job`], [`name`], [`json`], [`priority`], [`invalid`]: every input, checked once
//! - [`text`]: text from outside, made visible before it is shown
//! - [`trace`]: the trace that a job belongs to
//! - [`id`], [`time`]: the newtypes underneath

pub mod lifecycle;
pub mod lifecycle_doc;

pub mod apply;
pub mod backoff;
pub mod classify;
pub mod cron;
pub mod failure;
pub mod preset;
pub mod unique;

pub mod gate;
pub mod line;
pub mod turns;

pub mod run;

pub mod dedupe;
pub mod fold;

pub mod histogram;
pub mod journal;
pub mod seal;

pub mod key;
pub mod webhook;

pub mod slot;
pub mod worker_loop;

pub mod invalid;
pub mod json;
pub mod name;
pub mod new_job;
pub mod priority;
pub mod text;

pub mod duration;
pub mod id;
pub mod time;
pub mod trace;
pub mod when;

pub use apply::{Applied, Effect, Event, Job, Refused, Rules, apply};
pub use backoff::Backoff;
pub use classify::Class;
pub use cron::{Cron, Timing, Zone};
pub use dedupe::DedupeKey;
pub use fold::fold_strongest;
pub use gate::{Gate, GateRule, Health};
pub use histogram::Histogram;
pub use id::{JobId, LeaseNo, WorkerId};
pub use invalid::Invalid;
pub use json::Json;
pub use key::{Credential, KeyId, Scope, Scopes};
pub use lifecycle::{EventKind, How, State};
pub use line::Line;
pub use name::{GateName, KindName, PartitionName, QueueName, ScheduleName, TenantName};
pub use new_job::NewJob;
pub use priority::Priority;
pub use run::{Part, RunId, RunState};
pub use time::Timestamp;
pub use trace::Traceparent;
pub use unique::Unique;
pub use webhook::{EndpointId, Events};
pub use when::When;
