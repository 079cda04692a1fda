//! The cells of the [matrix](crate::matrix), one function each, and what scripts alone cannot say.
//!
//! A worker's stale report is always sent while its successor runs: sent later it would be refused for another reason
//! and prove nothing.

mod situation;

mod end_leases;
mod enqueue;

mod claim;
mod renew;

mod acknowledge;
mod complete;
mod fail;
mod release;
mod snooze;
mod webhook;

mod cancel;
mod force_cancel;
mod hasten;
mod open;
mod operation;
mod requeue;

mod drop_leases;
mod find_endings;
mod reclaim;
mod release_unknown;

mod prune;
mod show;

mod access;
mod admin;
mod cache;
mod count;
mod gate_rule;
mod job_rows;
mod journal;
mod list_journal;
mod refuse;
mod registry;
mod rollup;
mod schedule;
mod search;
mod session;

mod against_model;

pub use self::end_leases::*;
pub use self::enqueue::*;

pub use self::claim::*;
pub use self::renew::*;

pub use self::acknowledge::*;
pub use self::complete::*;
pub use self::fail::*;
pub use self::release::*;
pub use self::snooze::*;

pub use self::cancel::*;
pub use self::force_cancel::*;
pub use self::hasten::*;
pub use self::open::*;
pub use self::requeue::*;

pub use self::drop_leases::*;
pub use self::find_endings::*;
pub use self::reclaim::*;
pub use self::release_unknown::*;

pub use self::prune::*;
pub use self::show::*;

pub use self::access::*;
pub use self::admin::*;
pub use self::cache::*;
pub use self::count::*;
pub use self::gate_rule::*;
pub use self::job_rows::*;
pub use self::journal::*;
pub use self::list_journal::*;
pub use self::operation::*;
pub use self::refuse::*;
pub use self::registry::*;
pub use self::rollup::*;
pub use self::schedule::*;
pub use self::search::*;
pub use self::session::*;
pub use self::webhook::*;

pub use self::against_model::*;
