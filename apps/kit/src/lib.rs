//! What the products in `apps/` share. Each of them is a small application on the crate `tenure` alone; this is the rest
//! that a small application needs, and the outside world that theirs is simulated by.
//!
//! # Layout
//! - [`site`]: a web site on this machine, and what it has seen; [`traffic`]: calls counted as they come and go;
//!   [`valve`]: what holds them until a test or a story lets them go
//! - [`http`]: calls to the outside, and what their answers mean to a job
//! - [`env`](mod@env): settings from the environment, by the names of the seeds
//! - [`product`]: how `tenure demo` shows a product; [`check`]: what it has to show at the end
//! - [`program`]: the `main` of each product; [`server`]: its API; [`running`]: a worker in a task of its own, and waiting for a fact
//! - `testing`: a fresh database of each kind (the feature `testing`)

pub mod site;
pub mod traffic;
pub mod valve;

pub mod http;

pub mod env;

pub mod check;
pub mod product;

pub mod program;
pub mod running;
pub mod server;

#[cfg(feature = "testing")]
pub mod testing;

pub use check::Check;
pub use env::Env;
pub use http::{Answer, Http};
pub use product::{Product, Show, Showing, Stage};
pub use running::{Running, until};
pub use server::serve;
pub use site::Site;
pub use traffic::Traffic;
pub use valve::Valve;

/// What goes wrong outside of handlers.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
