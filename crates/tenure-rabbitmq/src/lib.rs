//! Wake-ups by RabbitMQ. Polling is the truth; a message only makes it faster, and one that is lost costs a poll.
//!
//! Whoever has committed a job publishes its id; whoever waits for jobs is woken and claims as always. What a message
//! says is never trusted: it only causes a claim, which finds what the store has.
//!
//! ```text
//!   enqueue, commit ──publish(job)──► bounded line ──► exchange `tenure` ──`jobs.trigger`──► a queue per process
//!                                     full or down: dropped, counted                              │
//!   claim ◄── woken(): at most one waits, at least 10 ms apart ◄── {"job_id":"…"}, else ignored ◄─┘
//! ```
//!
//! A broker that is down costs one warning, then polling goes on as if there were none; connecting is tried again after
//! one second, then two, up to thirty, and coming back is told once and wakes everybody once, because what was said
//! meanwhile is lost. Nothing here waits for the broker but the task that talks to it.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use tenure_core::JobId;
//! # use tenure_rabbitmq::{Broker, Options};
//! # async fn claim() {}
//! # async fn example(committed: JobId) -> Result<(), tenure_core::Invalid> {
//! let broker = Broker::start(Options { publish: true, ..Options::new("amqp://tenure:secret@broker/jobs") })?;
//! broker.publish(committed); // after the commit
//! loop {
//!     claim().await;
//!     tokio::select! {
//!         () = broker.woken() => {}
//!         () = tokio::time::sleep(Duration::from_secs(1)) => {}
//!     }
//! }
//! # }
//! ```
//!
//! # Layout
//! - [`options`]: where the broker is and what is declared there, checked once
//! - [`broker`]: the handle; `waker`: as workers and servers know it
//! - `message`: what counts as a wake-up
//! - `keeper`: connects, and connects again
//! - `session`: one connection to consume and one to publish, from the first word to the last
//! - `stream`, `kit`: the socket below the driver, and the runtime that the driver runs on

pub mod broker;
pub mod options;

mod keeper;
mod message;
mod session;
mod waker;

mod kit;
mod stream;

pub use broker::{Broker, BrokerCounts};
pub use options::Options;
