//! The project keeps its own rules.

mod arrows;
mod faults;
mod files;
mod guarantees;
mod readme;
mod sql;
