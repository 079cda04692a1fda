//! The rows of the fault matrix. Adding one is a file and a line.

mod backlog;
mod blocked;
mod broker;
mod bulk_act;
mod cancels;
mod database_clock;
mod disk;
mod failover;
mod first_names;
mod frozen;
mod gates;
mod giving_way;
mod harm;
mod herd;
mod keeper;
pub mod kills;
mod planner;
mod poison;
mod race;
mod replies;
mod restarts;
mod restore;
mod runs;
mod session;
mod sigterm;
mod sigterm_no_store;
mod silence;
mod snapshot;
mod terminations;
mod unconfirmed;
mod values;
mod wakeups;
mod worker_clocks;

use crate::report::{Report, Row, Size, Verdict, run};

/// Every row, in the order of the matrix.
pub const ROWS: &[Row] = &[
    kills::ROW,
    frozen::WHILE_THE_SUCCESSOR_RUNS,
    frozen::AFTER_THE_SUCCESSOR,
    race::ROW,
    poison::ROW,
    blocked::ROW,
    keeper::ROW,
    worker_clocks::ROW,
    database_clock::ROW,
    sigterm::ROW,
    sigterm_no_store::ROW,
    replies::OF_CLAIMS,
    replies::OF_ENDINGS,
    replies::OF_ENQUEUES,
    cancels::ROW,
    terminations::ROW,
    restarts::RESTARTS,
    restarts::OUTAGE,
    silence::ROW,
    disk::ROW,
    giving_way::ROW,
    snapshot::ROW,
    backlog::WITH_STATISTICS,
    planner::ROW,
    backlog::WITHOUT_STATISTICS,
    wakeups::ROW,
    harm::OF_PROCESSES,
    harm::OF_RESULTS,
    herd::ROW,
    gates::FAIRNESS,
    gates::RATE,
    gates::LIMIT,
    gates::BREAKER,
    runs::FAN_IN,
    broker::ROW,
    unconfirmed::ROW,
    failover::ROW,
    restore::ROW,
    values::ROW,
    runs::PAGES,
    bulk_act::ROW,
    first_names::ROW,
];

/// Runs a row small, prints what it says, and panics unless it held: a test.
pub fn hold(id: &str) {
    let row = ROWS.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("there is no row {id}"));
    hold_report(&run(row, Size::Small).0);
}

/// The same for a run that was made already.
pub fn hold_report(report: &Report) {
    println!("{}\n{}\n{}", report.numbers(), report.bitten(), report.pass_line());
    assert_eq!(report.verdict(), Verdict::Held);
}
