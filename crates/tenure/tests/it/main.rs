//! The crate as its users see it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod database;
mod derive;
mod metrics;
mod quickstart;
mod testing;
mod ui;
mod user_crate;
