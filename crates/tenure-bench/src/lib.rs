//! What `tenure bench` measures: Tenure beside the raw floor of its own layout, in one run.
//!
//! Machines differ and so do hours, so a rate says little; **the ratio** to what plain SQL on the same tables reaches in
//! the same minute says how much Tenure costs. Every measure runs its floor first or second in turn, a few rounds, and
//! tells the medians.
//!
//! # Layout
//! - [`measure`]: the measures, one file each
//! - [`floor`]: the raw statements they are held against
//! - [`arena`]: the store that is measured, a fresh one for every round
//! - [`crew`], [`load`]: a worker that runs until everything is done, and the jobs it is given
//! - [`line`](mod@line): what a measure answers, as JSON; [`page`]: the same as a page with plots

pub mod arena;
pub mod floor;
pub mod measure;

pub mod crew;
pub mod line;
pub mod load;
pub mod page;

pub use arena::{Arena, Place};
pub use line::Line;
pub use measure::{MEASURES, Measure, Size};
