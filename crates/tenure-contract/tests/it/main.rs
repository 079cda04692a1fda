//! The suite on its own model, and the suite itself put to the test.

mod matrix;
mod model;
mod mutants;
mod script;
mod servers;
