//! Every row by name.

use tenure_e2e::Size;
use tenure_e2e::report::{Row, Verdict, run};
use tenure_e2e::rows::{ROWS, hold, hold_report, kills};
use tenure_e2e::stage::Stage;

/// This file, which has to name every row.
const HERE: &str = include_str!("rows.rs");

#[test]
fn every_row_has_a_test() {
    for row in ROWS {
        assert!(HERE.contains(&format!("\"{}\"", row.id)), "{} has no test", row.id);
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
fn of_a_completion_and_a_reclaim_one_is_written() {
    hold("F4");
}

#[test]
fn a_job_that_kills_its_process_is_buried_and_others_go_on() {
    hold("F5");
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
fn wrong_and_jumping_clocks_of_workers_change_nothing() {
    hold("F8");
}

#[test]
fn a_jump_of_the_databases_clock_is_survived_and_nothing_stale_is_accepted() {
    hold("F9");
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
fn a_dropped_call_leaves_no_session_in_a_transaction() {
    hold("F15");
}

#[test]
fn sessions_ended_by_the_server_are_replaced() {
    hold("F16");
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

/// Only root may mount a small disk: elsewhere the row is void, and says so.
#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let row = ROWS.iter().find(|row| row.id == "F22").expect("the row");
    let (report, _) = run(row, Size::Small);
    match report.verdict() {
        Verdict::Void(why) if why.contains("no small disk") => println!("void: {why}"),
        _ => hold_report(&report),
    }
}

#[test]
fn a_statement_that_gives_way_is_tried_again_unseen() {
    hold("F25");
}

#[test]
fn an_old_snapshot_does_not_sink_the_throughput() {
    hold("F26");
}

#[test]
fn a_claim_beside_a_backlog_comes_upon_no_row_in_vain() {
    hold("F27");
}

#[test]
fn no_planner_setting_makes_a_claim_take_too_many() {
    hold("F28");
}

#[test]
fn a_claim_without_statistics_comes_upon_no_row_in_vain() {
    hold("F29");
}

#[test]
fn work_is_found_when_nobody_can_listen() {
    hold("F30");
}

#[test]
fn a_panicking_exiting_or_unknown_job_harms_nobody() {
    hold("F33");
}

#[test]
fn results_and_errors_that_cannot_be_stored_become_failures() {
    hold("F34");
}

#[test]
fn a_herd_is_held_by_slots_and_comes_back_spread_out() {
    hold("F35");
}

#[test]
fn a_limit_per_domain_holds_while_workers_sleep_and_wake() {
    hold("F39");
}

#[test]
fn an_open_breaker_lets_probes_through_and_outlives_every_worker() {
    hold("F40");
}

#[test]
fn four_processes_share_a_rate_and_one_is_killed() {
    hold("F38");
}

#[test]
fn a_flood_of_one_tenant_keeps_no_other_waiting() {
    hold("F36");
}

#[test]
fn pages_survive_kills_freezes_and_lost_replies() {
    hold("E2");
}

#[test]
fn a_broker_that_goes_away_under_load_costs_polls_and_no_job() {
    hold("F49");
}

#[test]
fn a_consolidate_runs_once_after_thousands_of_partitions() {
    hold("F41");
}

#[test]
fn a_repeat_is_not_acknowledged_before_the_standby_has_it() {
    hold("F51");
}

#[test]
fn values_that_grow_in_the_database_are_refused_and_slow_no_other_tenant() {
    hold("F55");
}

#[test]
fn one_statement_that_cancels_very_many_jobs_is_sealed_in_parts() {
    hold("F57");
}

#[test]
fn a_name_that_an_open_transaction_brings_holds_up_no_enqueue() {
    hold("F58");
}

#[test]
fn fences_grow_across_failovers_recoveries_and_clones() {
    hold("F52");
}

#[test]
fn a_restored_dump_goes_on_with_every_feature() {
    hold("F53");
}
