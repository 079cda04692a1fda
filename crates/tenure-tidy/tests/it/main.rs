//! The project keeps its own rules.

mod alerts;
mod arrows;
mod faults;
mod files;
mod guarantees;
mod readme;
mod seeds;
mod sql;
