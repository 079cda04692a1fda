//! The proof, run.

mod sim;
mod sim_breakages;
