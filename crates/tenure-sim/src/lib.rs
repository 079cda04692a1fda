//! The proof that ships with the product.
//!
//! # Layout
//! - [`model`]: the lease protocol as a small state machine, every interleaving of it searched, and mutants that must fail
//! - [`sim`]: the real worker on a real store in paused time, with seeded faults

pub mod model;
pub mod sim;
