//! Tenure on the Postgres a team already runs.
//!
//! The rules are in `tenure-core`; here they are SQL, held equal by the contract suite. Statements of our own are files
//! in `src/sql`, one each; what must run inside a user's transaction or be callable from any language is a function,
//! made by the migrations in `src/migrations`.
//!
//! ```no_run
//! # use tenure_core::{QueueName, WorkerId};
//! use tenure_postgres::{PgOptions, PgStore, tx::complete_in};
//! use tenure_store::{LeaseStore, lease::ClaimJobs, user_tx::CompleteJob};
//!
//! # async fn f(client: &mut tokio_postgres::Client, worker: WorkerId, queue: QueueName) -> Result<(), Box<dyn std::error::Error>> {
//! let store = PgStore::connect("postgres://localhost/app", PgOptions::default()).await?;
//! while let Some(claimed) = store.claim_jobs(ClaimJobs::new(worker, queue.clone(), 10)).await? {
//!     for job in &claimed.jobs {
//!         let tx = client.transaction().await?;
//!         tx.execute("insert into sent (job) values ($1)", &[&job.id.as_uuid()]).await?;
//!         complete_in(&tx, &CompleteJob::new(worker, claimed.lease, job.id)).await?; // a stale lease aborts the transaction
//!         tx.commit().await?;                                                        // your rows and the completion, or neither
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! # Layout
//! - [`store`]: [`PgStore`], how it is opened
//! - [`options`]: everything that can be set
//! - `jobs`, `lease`, `schedule`, `journal`, `webhook`, `admin`, `worker`, `wake`: the verbs, by noun
//! - [`tx`]: `within` and `complete_in`, inside a user's own transaction (`sqlx_tx`: the same for sqlx); `user_tx`: both
//!   behind the port's [`UserTx`](tenure_store::UserTx)
//! - [`sink`]: pages of rows into tables of the user's own; [`own`]: statements and transactions of theirs through the store
//! - `floor`: where a claim begins to look; `claimed`: how its answer is read
//! - `gather`: enqueues that come at the same time share a transaction; `held_keys`: enqueues that wait for a key
//! - `call`, `pool`, `tls`: one round trip, with a deadline; `connect`, `password`: how a connection is opened, and why not;
//!   `pooler`: how a transaction pooler is found and refused
//! - `error`, `value`: what the server says, in our words
//! - [`migrate`](mod@migrate): bringing the schema up, safely; [`roles`]: who may do what in it; `wall`: what tenants ask
//!   for runs as one of them

pub mod options;
pub mod own;
pub mod sink;
#[cfg(feature = "sqlx")]
pub mod sqlx_tx;
pub mod store;
pub mod tx;
mod usage;
mod user_tx;

mod admin;
mod claimed;
mod enqueue;
mod jobs;
mod journal;
mod lease;
mod lines;
mod list;
mod page;
mod run;
mod schedule;
mod wake;
mod webhook;
mod worker;

mod floor;
mod fold;
mod gate;
mod gather;
mod held_keys;
pub mod migrate;
mod operation;
pub mod roles;
mod rollup;

mod access;
mod cache;
mod call;
mod careful;
mod complete;
mod connect;
mod error;
mod password;
mod peer;
mod pool;
mod pooler;
mod table;
mod tls;
mod value;
mod wall;

#[cfg(feature = "mutants")]
pub mod mutant;
pub mod statement;

pub use options::{Mode, PgOptions};
pub use store::PgStore;

// A user's own transactions must be of the very versions that are known here.
pub use {deadpool_postgres, tokio_postgres};
