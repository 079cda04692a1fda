//! The proof, run.

mod model;
mod sim;
mod sim_breakages;
