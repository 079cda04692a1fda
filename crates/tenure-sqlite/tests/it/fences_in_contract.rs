//! Each fence, dropped one at a time: named cases of the contract suite turn red. They are green on the real statements,
//! where they are part of `contract`.

use std::sync::Arc;

use tenure_contract::{Fixture, clock_at_start, run_case};
use tenure_sqlite::{FENCES, Mutation, SqliteOptions, SqliteStore};
use tenure_store::AdminStore;

use crate::fixture::options;

/// What misses each fence of [`FENCES`]. One has no verb that leads to it while there is a single writer: a request that
/// passes a put-back unseen is met at the claim. `fences` writes that row itself.
#[rustfmt::skip] // one fence a line
const MISSED_BY: &[(&str, &[&str])] = &[
    ("a lease is its worker's", &["a_worker_cannot_complete_under_the_lease_of_another", "a_worker_cannot_renew_the_lease_of_another"]),
    ("an ended attempt is its worker's", &["an_answer_belongs_to_its_own_worker", "a_worker_does_not_find_the_endings_of_another"]),
    ("a grant ends once", &["a_completion_sent_twice_is_answered_as_done_before", "a_failure_after_a_forced_cancel_changes_nothing"]),
    ("a future job is not claimed", &["a_transient_error_is_tried_again", "a_job_is_not_claimed_before_its_time"]),
    ("a paused queue hands out nothing", &["a_paused_queue_hands_out_nothing"]),
    ("only an expired lease is reclaimed", &["a_good_lease_is_not_taken_back", "a_reclaim_does_not_touch_the_successor"]),
    ("a renewal pushes the deadline", &["a_renewal_pushes_the_deadline_out"]),
    ("only unknown leases are released", &["a_claim_whose_reply_was_lost_is_given_back_uncharged"]),
    ("a late sweep leaves newer leases alone", &["a_sweep_that_comes_late_leaves_the_next_claim_alone"]),
    ("a requested cancel is met", &[]),
    ("a requested cancel wins over putting back", &["a_requested_cancel_wins_over_a_retry", "a_requested_cancel_ends_with_the_lease"]),
    ("a tenant sees its own", &["a_job_of_another_tenant_cannot_be_canceled", "a_job_of_another_tenant_cannot_be_shown"]),
    ("a lease in use is kept", &["a_lease_that_still_holds_a_job_is_not_dropped"]),
    ("a job is pruned after its leases", &["a_job_is_not_pruned_while_a_lease_it_ran_under_exists"]),
    ("a page moves its own partition, from where it is", &["a_page_that_is_repeated_or_out_of_order_moves_nothing"]),
    ("a page of an ended partition moves nothing", &["the_first_that_fails_may_end_the_others"]),
    ("what a run may revive is kept", &["what_a_run_may_revive_is_not_pruned"]),
    ("what a gate has counted is gone", &["a_gate_lets_so_many_in_at_once", "a_late_report_gives_nothing_back"]),
    ("a quota is its tenant's", &["each_tenant_of_a_fair_queue_has_a_quota_of_its_own"]),
    ("a schedule moves on from where it was read", &["of_two_that_make_up_different_fires_one_wins", "a_fire_of_an_old_timing_comes_too_late"]),
    ("a fire time has one job", &["a_fire_time_has_one_job_whatever_is_asked", "a_clock_that_is_set_back_fires_nothing_twice"]),
    ("a paused schedule fires nothing", &["a_paused_schedule_fires_nothing_and_goes_on_from_now", "a_paused_schedule_cannot_be_fired_by_hand"]),
    ("a fire is not before its time", &["a_schedule_is_not_fired_before_its_time"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fence_is_missed_by_a_named_case() {
    let named: Vec<&str> = MISSED_BY.iter().map(|(fence, _)| *fence).collect();
    let all: Vec<&str> = FENCES.iter().map(|(fence, ..)| *fence).collect();
    assert_eq!(named, all, "every fence has its cases");
    for ((fence, find, replace), (_, cases)) in FENCES.iter().zip(MISSED_BY) {
        for case in *cases {
            let noticed = run_case(case, without(Mutation { find, replace }).await).await.is_err();
            assert!(noticed, "{case} did not notice that it is gone: {fence}");
        }
    }
}

/// A fresh store whose statements are changed so.
async fn without(mutation: Mutation) -> Fixture {
    let clock = clock_at_start();
    let options = SqliteOptions { mutation: Some(mutation), ..options(&clock) };
    let store = SqliteStore::in_memory(options).unwrap();
    store.migrate().await.unwrap();
    Fixture::new("sqlite without a fence", Arc::new(store), clock)
}
