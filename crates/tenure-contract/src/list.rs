//! The one list of cases, and the macro that makes a test of each of them and of each scenario.

use crate::harness::CaseFn;

/// Makes one named test for each case and each scenario. The argument opens a fresh, migrated store on a clock:
/// `async fn open(clock: ManualClock) -> Fixture`.
#[macro_export]
macro_rules! store_contract {
    ($open:expr) => {
        $crate::each_case! { contract_tests ($open) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_tests {
    (($open:expr) cases { $($case:ident,)* } scenarios { $($story:ident,)* }) => {
        $(#[test]
        fn $case() {
            $crate::harness::test(stringify!($case), $open);
        })*
        $(#[test]
        fn $story() {
            $crate::harness::test(stringify!($story), $open);
        })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_table {
    (() cases { $($case:ident,)* } scenarios { $($story:ident,)* }) => {
        /// Every case and scenario by name, to be run one by one with [`crate::run_case`].
        pub const CASES: &[(&str, CaseFn)] = &[
            $((stringify!($case), |t| Box::pin($crate::cases::$case(t))),)*
            $((stringify!($story), |t| Box::pin($crate::scenarios::run(stringify!($story), t))),)*
        ];
    };
}

/// Hands every name to a macro of this crate, the scenarios of `stories` too. A new case is a function in
/// [`crate::cases`] and a line here.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip] // one name a line
macro_rules! each_case {
    ($then:ident $open:tt) => { $crate::each_scenario! { $then $open
        cases {
            // enqueue
            a_new_job_is_stored_with_everything_it_said,
            a_key_is_held_by_a_job_whose_lease_expired,
            a_canceled_job_lets_its_key_go_but_not_its_id,
            an_id_off_the_clock_is_refused_with_its_whole_batch,
            a_tenant_does_not_meet_the_keys_of_another,
            an_id_that_another_tenant_uses_is_refused,
            of_two_enqueues_of_one_key_one_creates,
            an_enqueue_sent_twice_at_once_is_one_job,
            a_job_named_twice_in_one_call_has_one_answer,
            a_pruned_job_with_a_key_for_ever_is_not_stored_again,
            a_batch_with_a_new_name_in_it_is_stored_whole,
            bulk_enqueues_in_opposite_order_both_end,
            // claim
            a_claim_hands_out_a_due_job_with_all_it_needs,
            a_stale_worker_does_not_get_the_job_its_successor_runs,
            an_expired_lease_is_not_claimed_before_it_is_reclaimed,
            a_canceled_job_is_not_handed_out,
            a_claim_of_an_unknown_queue_gets_nothing,
            a_claim_sent_twice_gets_other_jobs,
            a_clock_that_goes_back_hides_no_job,
            concurrent_claims_share_no_job,
            a_claim_is_bounded_by_the_bytes_of_its_payloads,
            // renew
            a_renewal_pushes_the_deadline_out,
            a_stale_worker_cannot_renew_while_its_successor_runs,
            an_expired_lease_can_be_renewed_until_it_is_reclaimed,
            every_renewal_tells_of_a_requested_cancel,
            an_unknown_lease_is_not_renewed,
            a_renewal_sent_twice_is_renewed_twice,
            a_worker_cannot_renew_the_lease_of_another,
            a_renewal_and_a_reclaim_cannot_both_win,
            concurrent_renewals_leave_a_good_lease,
            // acknowledge
            a_holder_cancels_its_own_job,
            a_stale_worker_cannot_acknowledge_while_its_successor_runs,
            an_expired_lease_may_still_acknowledge,
            an_acknowledgement_after_a_forced_cancel_was_done_before,
            an_acknowledgement_of_a_job_the_lease_does_not_list_is_lost,
            an_acknowledgement_sent_twice_is_written_once,
            a_worker_cannot_acknowledge_under_the_lease_of_another,
            of_two_acknowledgements_one_is_written,
            // complete
            a_holder_completes_its_job,
            a_stale_worker_cannot_complete_while_its_successor_runs,
            an_expired_lease_may_still_complete,
            a_completion_after_a_forced_cancel_is_lost,
            a_completion_of_a_job_the_lease_does_not_list_is_lost,
            a_completion_sent_twice_is_answered_as_done_before,
            a_worker_cannot_complete_under_the_lease_of_another,
            of_two_completions_one_is_written,
            a_completion_and_a_failure_cannot_both_win,
            a_completion_and_a_reclaim_cannot_both_win,
            leases_reported_together_are_answered_each_by_itself,
            leases_reported_together_may_end_differently,
            leases_of_two_workers_may_be_reported_together,
            a_lease_may_be_reported_in_parts_together,
            // fail
            a_holder_fails_its_job,
            a_stale_worker_cannot_fail_while_its_successor_runs,
            an_expired_lease_may_still_fail,
            a_failure_after_a_forced_cancel_changes_nothing,
            a_failure_of_a_job_the_lease_does_not_list_is_lost,
            a_failure_sent_twice_is_charged_once,
            a_worker_cannot_fail_under_the_lease_of_another,
            of_two_failures_one_is_written,
            // release
            a_holder_releases_its_job,
            a_stale_worker_cannot_release_while_its_successor_runs,
            an_expired_lease_may_still_release,
            a_release_after_a_forced_cancel_changes_nothing,
            a_release_of_a_job_the_lease_does_not_list_is_lost,
            a_release_sent_twice_is_put_back_once,
            a_worker_cannot_release_under_the_lease_of_another,
            of_two_releases_one_is_written,
            // snooze
            a_holder_snoozes_its_job,
            a_stale_worker_cannot_snooze_while_its_successor_runs,
            an_expired_lease_may_still_snooze,
            a_snooze_after_a_forced_cancel_changes_nothing,
            a_snooze_of_a_job_the_lease_does_not_list_is_lost,
            a_snooze_sent_twice_is_put_back_once,
            a_worker_cannot_snooze_under_the_lease_of_another,
            of_two_snoozes_one_is_written,
            // cancel
            cancel_requests_are_found_by_job,
            a_cancel_request_is_the_successors_to_meet,
            a_job_under_an_expired_lease_is_canceled_by_request,
            a_canceled_job_was_canceled_before,
            an_unknown_job_cannot_be_canceled,
            a_cancel_sent_twice_is_written_once,
            a_job_of_another_tenant_cannot_be_canceled,
            of_two_cancels_one_ends_the_job,
            a_cancel_that_passes_a_retry_still_ends_the_job,
            a_cancel_that_meets_a_claim_is_never_forgotten,
            // force_cancel
            a_forced_cancel_fences_the_successor,
            a_forced_cancel_leaves_an_expired_lease_nothing_to_return,
            a_canceled_job_cannot_be_fenced_again,
            an_unknown_job_cannot_be_fenced,
            a_forced_cancel_sent_twice_is_written_once,
            a_job_of_another_tenant_cannot_be_fenced,
            a_forced_cancel_and_a_completion_cannot_both_win,
            // hasten
            a_hastened_job_is_due_now,
            a_job_that_is_due_is_not_hastened,
            a_running_job_cannot_be_hastened,
            a_job_under_an_expired_lease_cannot_be_hastened,
            a_job_that_has_ended_cannot_be_hastened,
            an_unknown_job_cannot_be_hastened,
            a_job_hastened_twice_is_written_once,
            a_job_of_another_tenant_cannot_be_hastened,
            of_two_that_hasten_a_job_one_is_written,
            // open
            an_opened_job_is_due_now,
            a_canceled_waiting_job_cannot_be_opened,
            an_unknown_job_cannot_be_opened,
            an_opening_sent_twice_is_written_once,
            a_job_of_another_tenant_cannot_be_opened,
            of_two_openings_one_wins,
            an_opening_that_meets_a_cancel_does_not_revive_the_job,
            // requeue
            a_dead_job_is_requeued_with_its_attempts_reset,
            a_requeue_does_not_revive_the_old_lease,
            a_requeued_job_is_not_lost_with_its_old_lease,
            a_job_under_an_expired_lease_cannot_be_requeued,
            a_canceled_job_is_requeued,
            an_unknown_job_cannot_be_requeued,
            a_requeue_sent_twice_is_written_once,
            a_job_of_another_tenant_cannot_be_requeued,
            of_two_requeues_one_wins,
            a_requeue_and_a_takeover_of_its_key_cannot_both_win,
            // find_endings
            endings_are_found_in_the_order_asked,
            a_stale_worker_finds_its_own_ending,
            an_expired_lease_has_no_ending_before_it_is_reclaimed,
            a_forced_cancel_is_found_as_the_ending,
            an_unknown_job_or_lease_has_no_ending,
            a_worker_does_not_find_the_endings_of_another,
            // drop_leases
            an_emptied_lease_is_dropped,
            a_stale_worker_cannot_drop_the_lease_of_its_successor,
            a_lease_that_still_holds_a_job_is_not_dropped,
            a_lease_emptied_by_a_forced_cancel_is_dropped,
            an_unknown_lease_is_gone,
            a_drop_sent_twice_answers_twice,
            a_worker_cannot_drop_the_lease_of_another,
            a_drop_that_meets_the_last_report_loses_nothing,
            // reclaim
            a_reclaim_does_not_touch_the_successor,
            an_expired_lease_is_taken_back_and_its_holder_named,
            an_attempt_whose_lease_expired_says_so_in_its_error,
            a_reclaim_sent_twice_takes_back_once,
            a_reclaim_serves_every_worker_queue_and_tenant,
            concurrent_reclaims_take_back_each_job_once,
            // release_unknown
            a_sweep_that_comes_late_leaves_the_next_claim_alone,
            a_stale_worker_gives_back_nothing_of_its_successor,
            an_expired_unknown_claim_is_given_back_and_not_lost,
            an_unknown_claim_with_a_requested_cancel_is_not_put_back,
            a_worker_that_knows_all_its_leases_gives_back_nothing,
            an_unknown_claim_is_given_back_once,
            a_worker_gives_back_nothing_of_another,
            an_unknown_claim_gives_back_what_has_not_ended,
            concurrent_releases_give_back_each_job_once,
            // prune
            a_job_that_its_successor_runs_is_not_pruned,
            a_job_under_an_expired_lease_is_not_pruned,
            a_canceled_job_is_pruned_when_it_is_old,
            a_prune_sent_twice_counts_once,
            concurrent_prunes_delete_each_job_once,
            a_requeue_and_a_prune_cannot_both_win,
            // show
            a_new_job_is_shown_as_queued,
            a_shown_job_names_the_successor,
            a_job_under_an_expired_lease_is_shown_as_running,
            a_canceled_job_is_shown_with_its_end,
            an_unknown_job_cannot_be_shown,
            a_job_shown_twice_is_the_same,
            a_job_of_another_tenant_cannot_be_shown,
            a_job_shown_while_it_moves_is_never_between_states,
            // admin
            a_migrated_store_has_nothing_left_to_migrate,
            every_start_of_a_worker_gets_its_own_number,
            a_report_out_of_bounds_is_refused_whole,
            settings_and_words_out_of_bounds_are_refused,
            a_batch_of_256_is_one_lease_and_one_report,
            an_idle_worker_is_woken_by_an_enqueue,
            // gate rules
            a_changed_rule_is_journaled_with_the_rule_before,
            two_changes_of_one_rule_both_hold,
            // registry
            an_answer_is_kept_for_its_time,
            an_answer_is_replaced_and_forgotten,
            a_cache_is_kept_small,
            what_cannot_be_kept_is_refused,
            a_worker_is_listed_with_its_last_beat,
            workers_are_listed_last_seen_first,
            a_beat_of_nobody_is_refused,
            a_worker_hears_what_it_is_told,
            a_lease_is_found_by_its_own_worker,
            the_store_tells_its_clock,
            a_separate_store_is_the_same_store,
            // access
            a_key_is_found_as_it_was_made,
            a_tenant_has_so_many_usable_keys_at_most,
            a_key_made_twice_is_one_key,
            a_key_ends_when_its_time_is_over_or_when_it_is_revoked,
            a_key_is_replaced_with_an_overlap,
            a_replaced_key_hands_its_end_on,
            a_tenant_sees_and_ends_only_its_own_keys,
            keys_are_listed_page_by_page,
            what_cannot_be_a_key_is_refused,
            tenants_are_made_and_listed,
            what_happens_to_access_is_written_down,
            a_remote_worker_is_proven_by_its_token,
            // session
            a_session_lasts_until_its_time_is_over,
            a_session_ends_when_somebody_signs_out,
            a_session_begun_twice_is_one_session,
            a_tenant_has_a_thousand_sessions_at_most,
            what_cannot_be_a_session_is_refused,
            // webhook
            an_endpoint_is_found_as_it_was_made,
            an_endpoint_changes_and_a_repetition_does_not,
            an_endpoint_for_callbacks_gets_no_url,
            endpoints_and_deliveries_of_another_tenant_do_not_exist,
            what_happened_while_nobody_listened_is_not_told,
            a_delivery_is_stored_once_with_its_job,
            an_event_concerns_those_who_listen,
            a_try_is_written_down_and_may_disable_its_endpoint,
            an_endpoint_for_callbacks_is_not_disabled_by_a_receiver,
            deliveries_are_listed_and_sent_again,
            a_delivery_ends_with_its_job_and_goes_with_it,
            // operation
            an_operation_begins_with_the_job_that_does_it,
            operations_are_listed_and_a_tenant_sees_its_own,
            how_far_an_operation_is_only_grows,
            // rollup
            every_ending_is_counted_once_in_every_step,
            rollups_by_time_begin_at_their_step,
            a_tenant_sees_only_its_own_rollups,
            of_two_folds_at_once_one_counts,
            rollups_tell_how_long_jobs_ran_and_waited,
            every_bound_of_a_rollup_belongs_to_the_bucket_below,
            failing_gates_are_told_the_worst_first,
            rollups_past_their_retention_are_dropped,
            rollups_leave_out_what_was_pruned_before,
            // count
            endings_are_counted_by_queue_kind_and_way,
            a_queue_is_there_when_somebody_named_it,
            usage_is_summed_by_day_tenant_kind_and_name,
            usage_is_listed_page_by_page,
            the_longest_wait_of_a_queue_is_told,
            // refuse
            a_report_that_came_too_late_is_written_down,
            a_late_report_has_a_row_for_each_way_it_reported,
            a_report_that_was_written_before_is_not_refused,
            a_report_of_invented_ids_is_not_written_down,
            refused_rows_are_sealed_and_replayed,
            // journal
            every_ending_leaves_its_journal_row,
            a_workers_rows_name_worker_lease_and_time,
            an_operators_rows_say_who_and_why,
            a_refused_verb_leaves_no_row,
            every_row_falls_into_one_seal,
            concurrent_seals_do_not_fork_the_chain,
            an_anchor_tells_when_the_chain_was_cut,
            rows_not_sealed_yet_are_the_tail,
            the_ids_of_all_rows_are_listed_in_order,
            a_seal_made_during_a_check_is_no_finding,
            a_journal_that_never_had_a_row_is_sound,
            times_that_do_not_fit_the_seals_are_remarks,
            a_seal_says_when_it_was_made,
            // search
            jobs_are_listed_by_the_time_they_were_created,
            jobs_are_listed_by_the_beginning_of_their_id,
            jobs_are_found_by_a_text_in_their_payload,
            a_search_goes_on_where_it_stopped,
            // list_journal
            the_journal_is_listed_newest_first_by_what_is_asked,
            the_journal_is_listed_page_by_page,
            // job_rows
            the_story_of_a_job_has_everything_that_happened_to_it,
            the_story_of_a_job_is_told_to_its_tenant_without_names,
            // schedule
            a_fire_time_has_one_job_whatever_is_asked,
            a_schedule_is_not_fired_before_its_time,
            a_paused_schedule_cannot_be_fired_by_hand,
            a_fire_that_cannot_be_stored_leaves_nothing,
            of_two_fires_at_once_one_stores_a_job,
            tenants_take_turns_among_due_schedules,
            a_batch_of_fires_is_answered_one_by_one,
            a_refused_fire_leaves_its_batch_alone,
            of_two_batches_of_fires_at_once_each_fire_is_stored_once,
            a_tenant_has_a_thousand_schedules_at_most,
            the_newest_fires_of_a_schedule_are_kept,
            the_next_look_at_a_schedule_is_told,
            what_happens_to_a_schedule_is_written_down,
            what_no_schedule_can_ask_for_is_refused,
            // against_model
            random_stories_go_as_in_the_model,
        }
    } };
}

each_case! { contract_table () }
