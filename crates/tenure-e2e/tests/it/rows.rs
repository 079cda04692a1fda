//! Every row by name.

use tenure_e2e::Size;
use tenure_e2e::report::{Row, run};
use tenure_e2e::rows::{ROWS, hold, hold_report, kills};
use tenure_e2e::stage::Stage;

/// This file, which has to name every row.
const HERE: &str = include_str!("rows.rs");

#[test]
fn every_row_has_a_test() {
    for row in ROWS {
        assert!(HERE.contains(&format!("hold(\"{}\")", row.id)), "{} has no test", row.id);
    }
}

#[test]
fn two_workers_and_five_kills_on_postgres() {
    hold("F1");
}

#[test]
fn two_workers_and_five_kills_on_sqlite() {
    let embedded =
        Row { run: |size| Box::pin(async move { kills::attack(Stage::sqlite().await, size).await }), ..kills::ROW };
    hold_report(&run(&embedded, Size::Small).0);
}

#[test]
fn frozen_worker_is_refused() {
    hold("F2");
}

#[test]
fn a_worker_frozen_past_its_successors_end_changes_nothing() {
    hold("F3");
}

#[test]
fn blocked_runtime_is_not_reclaimed() {
    hold("F6");
}

#[test]
fn frozen_keeper_connection_fences_in_time() {
    hold("F7");
}

#[test]
fn rolling_sigterm() {
    hold("F10");
}

#[test]
fn sigterm_ends_a_process_in_time_without_a_database_and_at_once_when_told_twice() {
    hold("F11");
}

#[test]
fn a_claim_whose_reply_is_lost_comes_back_uncharged() {
    hold("F12");
}

#[test]
fn an_ending_whose_reply_is_lost_is_answered_as_done() {
    hold("F13");
}

#[test]
fn an_enqueue_whose_reply_is_lost_is_one_job() {
    hold("F14");
}

#[test]
fn postgres_restarts() {
    hold("F17");
}

#[test]
fn postgres_is_away_for_a_while() {
    hold("F18");
}

#[test]
fn a_frozen_database_is_survived() {
    hold("F19");
}

#[test]
fn a_panicking_exiting_or_unknown_job_harms_nobody() {
    hold("F33");
}

#[test]
fn results_and_errors_that_cannot_be_stored_become_failures() {
    hold("F34");
}
