//! Webhooks out: whom they may reach, how one is sent, signed and tried again.
//!
//! Whoever registers an endpoint chooses where a server inside somebody's network will connect to, and what answers
//! there may be anything: the guard decides the first, limits on time and bytes bear the second. What is told comes from
//! the sealed journal, each delivery is a job, and the store keeps the log.
//!
//! ```text
//!   url ──check_url──► Target ──resolve──► addresses ──check_addresses──► connect ──check the peer──► TLS ──► HTTP/1.1
//!                                                                                                            │
//!   Next: delivered, retry in …, disable, dead ◄──schedule::after── Sent or SendError ◄──at most 16 KiB──────┘
//! ```
//!
//! ```no_run
//! # use bytes::Bytes;
//! # use tenure_core::{Timestamp, backoff::Roll};
//! # use tenure_webhooks::*;
//! # async fn deliver(url: &str, secret: Secret, body: Bytes, at: Timestamp) -> Result<Next, Box<dyn std::error::Error>> {
//! let sender = Sender::new(Guard::default(), SystemResolver, SendOptions::default())?; // once in a process
//! let target = sender.guard().check_url(url)?;
//! let delivery = Delivery { id: "evt_1", delivery_id: "dlv_1", event_type: "job.succeeded", at, body: &body };
//! let headers = sign::headers(&delivery, &[secret], &Prefix::default())?;
//! let result = sender.send(&target, &headers, body).await;
//! Ok(schedule::after(1, Outcome::from(&result), Roll(0)))
//! # }
//! ```
//!
//! # Layout
//! - [`teller`], [`event`]: from the journal to deliveries
//! - [`deliver`](mod@deliver): the handler of the jobs that send them
//! - [`endpoints`]: making endpoints, and giving them other secrets; [`resend`]: sending again
//! - [`guard`]: which URLs and which addresses may be called
//! - [`resolve`]: from a name to addresses
//! - [`send`]: one request, within a deadline and a number of bytes
//! - [`sent`]: what is kept of an answer
//! - [`schedule`]: what follows from an answer or an error
//! - [`sign`], [`prefix`], [`verify`]: the headers of a delivery, and the receiver's check of them
//! - [`secret`], [`seal`](mod@seal): an endpoint's secret, and how it is kept in a database

pub mod deliver;
pub mod endpoints;
pub mod event;
pub mod resend;
pub mod teller;

mod failing;
mod ids;

pub mod guard;
pub mod resolve;

pub mod send;
pub mod sent;

pub mod schedule;

pub mod prefix;
pub mod sign;
pub mod verify;

pub mod seal;
pub mod secret;

pub use deliver::{DeliverWebhook, Deliverer, deliver};
pub use endpoints::{EndpointError, Endpoints, Wish};
pub use guard::{Cidr, Guard, GuardOptions, HostRule, Refused, Target};
pub use prefix::Prefix;
pub use resolve::{Resolve, SystemResolver};
pub use schedule::{Next, Outcome};
pub use seal::{MasterKeys, Owner, SealedSecret};
pub use secret::Secret;
pub use send::{Outgoing, Roots, SendError, SendOptions, Sender, Stage, is_reserved};
pub use sent::{Answer, Sent};
pub use sign::Delivery;
pub use teller::Teller;
