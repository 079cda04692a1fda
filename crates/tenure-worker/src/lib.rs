//! Typed jobs, handlers with extractors, and the worker process that runs them.
//!
//! Users take all of this from the crate `tenure`. Nothing here names a database: a store is whatever implements the
//! port in `tenure-store`.
//!
//! # Layout
//! - [`job`], [`client`], [`enqueue`]: define a job, put it into a store; [`schedule`]: again and again; [`runs`]: many
//!   with one goal
//! - [`handler`], [`extract`], [`ctx`], [`attempt`], [`page`], [`answer`], [`fail`]: handle it
//! - [`worker`], [`options`]: put a worker together
//! - [`observe`], [`trace`], `measure`, `minute`: who hears how attempts end, spans, figures, and a line a minute
//! - `run`: a process from start to end; `looper` and `slot` drive the two tables of core; `lane`, `runner`: between them
//! - `held`, `keeper`: what is held, and until when; `reporter`: endings on their way to the store
//! - `duty`: what every worker does besides, one file each
//! - `inline`: a worker without a process, for tests
//! - [`machine`], [`random`]: where a simulation takes hold of a worker's tasks and of its randomness

pub mod cache;
pub mod client;
pub mod enqueue;
pub mod job;
pub mod runs;
pub mod schedule;

pub mod answer;
pub mod attempt;
pub mod ctx;
pub mod extract;
pub mod fail;
pub mod gate;
pub mod handler;
mod judge;
pub mod page;
mod route;

pub mod observe;
pub mod options;
pub mod trace;
pub mod worker;

mod inline;
mod looper;
mod run;
mod runner;
mod slot;

mod held;
mod keeper;
mod lane;
mod measure;
mod minute;
mod reporter;

mod duty;

pub mod machine;
pub mod random;

mod flag;
mod flight;
mod idle;
mod name;
mod shared;
pub mod signal;
mod trouble;

pub use answer::{Completed, IntoAnswer, Returned};
pub use attempt::Attempt;
pub use cache::{Cache, CacheCounts};
pub use client::Client;
pub use ctx::{Ctx, Stop};
pub use extract::{FromContext, FromRef, State};
pub use fail::Fail;
pub use gate::GatePass;
pub use handler::Handler;
pub use job::{Defaults, Job};
pub use observe::{AttemptEnded, Observer};
pub use options::KeeperPlace;
pub use page::Page;
pub use route::HandleOptions;
pub use runs::{AddTo, NewRun};
pub use schedule::Schedule;
pub use shared::Summary;
pub use worker::{Builder, Worker};
