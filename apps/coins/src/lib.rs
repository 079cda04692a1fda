//! What is this coin worth? An intake is a coin that somebody brought; each source that sells, bids or asks is called for
//! it, within the source's limits, and what it says becomes price points, each known once. From them comes one valuation.
//!
//! ```text
//!   intake ──scrape──► one job for each source ──► gate source:<id> ──► worker ──► adapter ──► price points ─┐
//!                      (intake, source)            rate, breaker,      cache 1 h             keep the stronger│
//!                                                  enabled                                                   ▼
//!                                     one transaction: points, valuation, the end of the job ◄────────── valuation
//! ```
//!
//! # Layout
//! - [`intake`], [`source`]: coins and sources; [`scrape`]: asking sources about a coin
//! - [`collect`]: the handler, one attempt at one source
//! - [`adapter`]: three sources, three shapes; [`point`]: what they all become; [`valuation`]: what follows from it
//! - [`settings`], [`worker`]: a worker as the seed has it; [`monitor`]: the three questions of its operators, [`report`]:
//!   the answers as text
//! - [`world`]: the simulated sources; [`story`]: the show

pub mod intake;
pub mod scrape;
pub mod source;

pub mod collect;

pub mod adapter;
pub mod point;
pub mod valuation;

pub mod monitor;
pub mod report;
pub mod settings;
pub mod worker;

pub mod story;
pub mod world;

/// The tables, for [`tenure::Database::make_tables`].
pub const TABLES: &str = include_str!("schema.sql");

/// Where the jobs wait.
pub const QUEUE: &str = "coins";
