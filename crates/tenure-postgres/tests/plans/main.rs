//! What the planner makes of our statements: the right rows under every plan, flat costs, known shapes, and the raw floor.
//!
//! No test here asserts a time. `switches` counts rows, `flat` counts rows and buffers, `snapshot` compares plans and
//! the schema with files (`./x generate` writes them again), `floor` compares two rates on the same server.

#[path = "../it/database.rs"]
#[expect(dead_code, reason = "shared with the contract suite's binary, which uses more of it")]
mod database;

mod explain;
mod session;

mod switches;
mod switches_endings;

mod flat;
mod flat_counts;
mod flat_journal;
mod flat_lists;
mod flat_upkeep;

mod snapshot;
mod snapshot_functions;

mod floor;
