//! Durable jobs on the Postgres you already run, or on one embedded file: enqueue in your transaction, run under a
//! fenced lease, see every attempt.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tenure::{Client, Ctx, Fail, Job, SqliteOptions, SqliteStore, State, Worker};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(kind = "invoice.send", queue = "mail", max_attempts = 5)]
//! struct SendInvoice {
//!     order: u64,
//! }
//!
//! /// An `async fn`: the job, then whatever it needs of the worker's state and of the attempt it is.
//! async fn send(job: SendInvoice, State(mailer): State<Mailer>, ctx: Ctx) -> Result<(), Fail> {
//!     // Any error is an answer: `?` lets the worker's rules decide whether it is tried again.
//!     Ok(mailer.send(job.order, ctx.job_id().to_string())?)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let store = SqliteStore::in_memory(SqliteOptions::default())?; // or a file, or PgStore::connect(…)
//!     tenure::migrate(&store).await?;
//!
//!     let client = Client::new(&store);
//!     let stored = client.enqueue(SendInvoice { order: 42 }).unique("invoice:42").await?;
//!
//!     let worker = Worker::builder(&store).state(Mailer).queue("mail", 16).handle(send).build()?;
//!     let summary = worker.run_until_idle().await?; // a service calls `worker.run().await?` instead
//!
//!     assert_eq!(summary.succeeded, 1);
//!     assert_eq!(client.show(stored.job()).await?.summary.state, tenure::JobState::Succeeded);
//!     Ok(())
//! }
//! # #[derive(Clone)]
//! # struct Mailer;
//! # impl Mailer {
//! #     fn send(&self, _order: u64, _idempotency_key: String) -> std::io::Result<()> { Ok(()) }
//! # }
//! ```
//!
//! # The map
//! - **Define**: [`#[derive(Job)]`](derive@Job) on a serde type.
//! - **Enqueue**: [`Client::enqueue`], then what differs ([`Enqueue`]: `delay`, `priority`, `unique`, …), then `.await`, or
//!   [`within`](Enqueue::within) your own transaction: the job exists if and only if that commits.
//! - **Handle**: an `async fn(job, …) -> Result<(), Fail>`. It may take [`State`], [`Ctx`], [`Attempt`] or a type of yours
//!   with [`FromContext`]; it may return a result ([`Returned`]) or the proof that it completed its job inside of its own
//!   transaction ([`Attempt::complete_in`], [`Completed`]); a [`Fail`] says what is to become of the job.
//! - **Ingest**: [`Client::new_run`] for many jobs with one goal; a handler that takes a [`Page`] commits its rows with its
//!   partition's progress, and [`sink`] writes them by one statement.
//! - **Govern**: [`Client::set_gate`] and [`Enqueue::gate`] for what jobs share, [`Ctx::gate`] inside a handler; a [`Cache`]
//!   keeps what a source answered.
//! - **Repeat**: [`Client::set_schedule`] with a [`Schedule`].
//! - **Run**: [`Worker::builder`], and [`Worker::run`] until SIGTERM.
//! - **Both stores**: [`Database`], where jobs and your own tables live by the same code on a file and on Postgres.
//! - **Test**: `tenure::testing`, with the feature `testing` in your dev-dependencies.
//!
//! # Features
//! `postgres`, `sqlite` and `macros` are on; `sqlx` takes transactions of sqlx too; `otel` makes a job one trace,
//! `metrics` counts claims and attempts; `webhooks` signs and delivers calls to others, `rabbitmq` lets a broker wake
//! workers, `sentry` reports jobs that failed for good; `testing` is for dev-dependencies.
//! The drivers are here as well ([`tokio_postgres`], [`deadpool_postgres`], [`rusqlite`]), since a transaction of yours
//! must be of the version that Tenure knows.
//!
//! # Promises
//! At least once, under one live lease per job; a worker that lost its lease is refused, in your transaction too. Effects
//! outside of your database can happen twice: send [`Ctx::job_id`] or [`Ctx::fence`] along, so that the receiver can tell.

#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod database;
mod migrate;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use database::{Database, Tx};
pub use migrate::migrate;

// Define and enqueue.
#[doc(inline)]
pub use tenure_core::unique::{Policy, Unique};
#[doc(inline)]
pub use tenure_core::{Backoff, JobId, KindName, PartitionName, Priority, QueueName, RunId, TenantName, Timestamp};
#[cfg(feature = "macros")]
#[doc(inline)]
#[doc = include_str!("job.md")]
pub use tenure_macros::Job;
#[doc(inline)]
pub use tenure_store::enqueue::Enqueued;
#[doc(inline)]
pub use tenure_worker::{AddTo, Client, Defaults, Job, NewRun, Schedule, enqueue::Enqueue, enqueue::EnqueueMany};

// Handle.
#[doc(inline)]
pub use tenure_core::LeaseNo;
#[doc(inline)]
pub use tenure_worker::{
    Attempt, Cache, CacheCounts, Completed, Ctx, Fail, FromContext, FromRef, GatePass, Handler, IntoAnswer, Page,
    Returned, State, Stop,
};

// Run, and say what errors mean.
#[doc(inline)]
pub use tenure_core::classify::{Class, Pattern, Rule, RuleTable};
#[doc(inline)]
pub use tenure_core::preset;
#[doc(inline)]
pub use tenure_worker::{AttemptEnded, Builder, HandleOptions, KeeperPlace, Observer, Summary, Worker};

// Govern shared resources.
#[doc(inline)]
pub use tenure_core::gate::{Breaker, GateRule, Rate};

// Look.
#[doc(inline)]
pub use tenure_core::RunState;
#[doc(inline)]
pub use tenure_core::{How, Invalid, State as JobState};
#[doc(inline)]
pub use tenure_store::StoreError;
#[doc(inline)]
pub use tenure_store::record::{AttemptRecord, JobFilter, JobRecord, JobSummary, Sight};
#[doc(inline)]
pub use tenure_store::run::{PartitionRecord, RunRecord};
#[doc(inline)]
pub use tenure_store::{row, sink, table::Record};

// The stores with their drivers, and the port for everything else.
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use tenure_postgres::{Mode, PgOptions, PgStore};
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use tenure_sqlite::{SqliteOptions, SqliteStore, Transaction as SqliteTransaction};
#[doc(inline)]
pub use tenure_store::{
    AdminStore, CacheStore, GateStore, IntoStore, JobStore, JournalStore, LeaseStore, RunStore, ScheduleStore, Store,
    UserTx,
};

#[cfg(feature = "postgres")]
pub use tenure_postgres::{deadpool_postgres, tokio_postgres};
#[cfg(feature = "rabbitmq")]
pub use tenure_rabbitmq as rabbitmq;
#[cfg(feature = "sqlite")]
pub use tenure_sqlite::rusqlite;
#[cfg(feature = "sentry")]
pub use tenure_telemetry as telemetry;
#[cfg(feature = "webhooks")]
pub use tenure_webhooks as webhooks;
pub use {tenure_core as core, tenure_store as store};

/// The examples of docs/GATES.md, compiled and run.
#[cfg(doctest)]
#[cfg(all(feature = "macros", feature = "sqlite"))]
#[doc = include_str!("../../../docs/GATES.md")]
pub struct GatesPage;

/// The examples of docs/SCHEDULES.md, compiled and run.
#[cfg(doctest)]
#[cfg(all(feature = "macros", feature = "sqlite"))]
#[doc = include_str!("../../../docs/SCHEDULES.md")]
pub struct SchedulesPage;

/// The examples of docs/RUNS.md, compiled and run.
#[cfg(doctest)]
#[cfg(all(feature = "macros", feature = "sqlite"))]
#[doc = include_str!("../../../docs/RUNS.md")]
pub struct RunsPage;
