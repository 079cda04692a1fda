//! Diamonds: a supplier's catalogue, fetched page by page and published once.
//!
//! A supplier lists some 200,000 stones, and prices them anew all day. A scheduler splits the catalogue by price into
//! partitions of about one size and creates a run; each partition is a stream of pages, one job a page; a page's stones
//! go into the raw table by one statement, together with the partition's progress. When all partitions are done the raw
//! stones are consolidated into the clean table, once, with our markup on their prices. When one has failed they are not.
//!
//! ```text
//!   schedule ── latest revision, counts ──► partitions of at most 5,000 stones ──► run
//!                                                                                   │
//!      ┌─────────────── page 0 ─► page 30 ─► page 60 ─► … ─► the last ─► WORK_DONE ◄┘  for each partition
//!      │  one transaction: 30 raw stones · offset · next page · this one's end
//!      ▼
//!   all of them are done ──► consolidate, once ──► the stones we sell          one has failed ──► nothing is published
//! ```
//!
//! # Layout
//! - [`stone`]: a stone as the supplier tells it, with its [`grade`]s and its limits; [`price_range`]: from so many cents
//!   to below so many
//! - [`split`]: from counts to partitions; [`markup`]: what is added to a price
//! - [`work_item`], [`work_done`]: the messages, as the old system wrote them
//! - [`mod@nightly`], [`mod@schedule`], [`mod@ingest`], [`mod@consolidate`]: the handlers of a run, in its order;
//!   [`claim`]: one run at a time
//! - [`mod@tell`], [`mod@deliver`]: WORK_DONE of what failed; messages that come from outside
//! - [`supplier`]: how the supplier is called; [`settings`], [`worker`], [`monitor`]
//! - [`catalogue`], [`world`]: the simulated supplier, pure and as a web site; [`story`]: the show

mod fields;

pub mod grade;
pub mod price_range;
pub mod stone;

pub mod markup;
pub mod split;

pub mod work_done;
pub mod work_item;

pub mod claim;
pub mod consolidate;
pub mod ingest;
pub mod nightly;
pub mod schedule;

pub mod deliver;
pub mod tell;

pub mod monitor;
pub mod settings;
pub mod supplier;
pub mod worker;

pub mod catalogue;
pub mod story;
pub mod world;

/// The tables, for [`tenure::Database::make_tables`].
pub const TABLES: &str = include_str!("schema.sql");

/// Where pages wait.
pub const PAGES_QUEUE: &str = "diamonds.pages";
/// Where everything else waits, so that it is not behind the pages.
pub const QUEUE: &str = "diamonds";
/// What a run is fed from.
pub const SOURCE: &str = "catalogue";
/// Whoever calls the supplier passes this gate: a `Retry-After` is heard by all.
pub const GATE: &str = "supplier:catalogue";
