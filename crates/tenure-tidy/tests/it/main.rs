//! The project keeps its own rules.

mod arrows;
mod files;
mod sql;
