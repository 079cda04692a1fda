//! The proof, run: the model searched, the model beside the real stores, and the worker in simulated worlds.

#[path = "../../../tenure-postgres/tests/it/database.rs"]
#[expect(dead_code, reason = "shared with the contract suite, which uses the rest")]
mod database;

mod beside;
mod model;
mod replay;
mod sim;
mod sim_breakages;
mod stage;
mod walk;
