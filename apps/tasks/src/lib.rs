//! Tasks: a task runner whose worker loop is seen at work.
//!
//! Tasks fetch documents, digest them and report on each other. A worker's loop goes through the states of its seed, and
//! every step of it can be watched; a task says what it used; an API is told how it ended; tasks of a worker that died are
//! run again by another; and the record of all that is checked for being whole.
//!
//! # Layout
//! - [`state`]: the loop's states and steps, as the seed lists them; [`trace`]: hears them; [`path`]: the worker's and its
//!   task's as one; [`traced`]: a worker that is heard alone
//! - [`task`]: the kinds of tasks; `fetch`, `digest`, [`report`]: their handlers; [`usage`]: what they use; `finish`: how
//!   they end well; [`app`]: what they share
//! - [`callbacks`]: tells the API; [`audit`](mod@audit): checks the record; [`watch`]: what there is to see
//! - [`settings`], [`worker`](mod@worker): the task runner put together
//! - [`world`]: the simulated outside; [`story`]: all of it in a few seconds

pub mod path;
pub mod state;
pub mod trace;
pub mod traced;

pub mod app;
mod digest;
mod fetch;
mod finish;
pub mod report;
pub mod task;
pub mod usage;

pub mod audit;
pub mod callbacks;
pub mod watch;

pub mod settings;
pub mod worker;

pub mod story;
pub mod world;

pub use audit::audit;
pub use settings::Settings;
pub use worker::worker;
pub use world::World;

/// Our own tables.
pub const TABLES: &str = include_str!("schema.sql");
