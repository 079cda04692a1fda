//! Links: a user imports the bookmarks of Chrome, and every link gets its title, description, canonical address and
//! language.
//!
//! A link is enriched once, for ever, in however many folders and with however many users it stands. Whoever does not want
//! to be read is left alone and put forward for blocking. No screenshot is taken and no text of a page is kept.
//!
//! ```text
//!   export of Chrome ──► import ──► placements ──► canonical links ──► one job each ──► gate domain:<site> ──► worker
//!                          │                                                             k = 2                  │
//!                          └── a run: total, processed, failed ◄── enriched, or dead ◄── robots.txt, page ◄─────┘
//! ```
//!
//! # Layout
//! - [`bookmarks`]: what stands in an export of Chrome, and how to write one
//! - [`canonical`]: when two links are one, and which domain they belong to; [`link`]: what it is called
//! - [`import`]: a user's file on its way in, its state and its counts; [`begin`], [`settle`]: the handlers of its run
//! - [`enrich`]: the handler of a link; [`web`]: one polite look at it; [`failure`]: what is written down when it failed
//! - [`robots`]: whether a site lets us read a page
//! - [`page`]: what is kept of a page, and whether it is a captcha instead
//! - [`verdict`]: what becomes of a job by what it met, and who becomes a candidate for blocking
//! - [`settings`], [`worker`]: a worker as the seed has it; [`api`]: what users ask; [`report`]: what operators read
//! - [`world`]: the simulated web; [`story`]: the show
//! - `markup`, `entity`, `text`: the little of HTML that bookmarks and pages share

pub mod bookmarks;
pub mod canonical;
pub mod link;

pub mod begin;
pub mod import;
pub mod settle;
mod tend;

pub mod enrich;
pub mod failure;
pub mod web;

pub mod page;
pub mod robots;
pub mod verdict;

pub mod api;
pub mod report;
pub mod settings;
pub mod worker;

pub mod story;
pub mod world;

mod entity;
mod markup;
mod text;

pub use bookmarks::Bookmarks;
pub use canonical::CanonicalUrl;
pub use page::Page;
pub use robots::Robots;
pub use settings::Settings;
pub use worker::Links;

/// The tables, for [`tenure::Database::make_tables`].
pub const TABLES: &str = include_str!("schema.sql");
