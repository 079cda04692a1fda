//! Every verb in every situation: the case that covers it, or the reason why there is none.
//!
//! *Wrong tenant* is, for a worker's verbs, the lease of another worker. *Concurrent twin* is the same verb, or the one
//! it competes with, at the same moment from elsewhere.

use std::fmt::Write as _;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named like the verb it is")]
pub enum Verb {
    Enqueue,
    Claim,
    Renew,
    Complete,
    Fail,
    Snooze,
    Release,
    Acknowledge,
    Cancel,
    ForceCancel,
    Requeue,
    Open,
    Hasten,
    Reclaim,
    Show,
    Prune,
    DropLeases,
    ReleaseUnknown,
    FindEndings,
}

/// In which situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Situation {
    /// Nothing happened before.
    Fresh,
    /// The lease was lost and the successor runs the job.
    StaleFence,
    /// The lease is over and nobody took it back.
    Expired,
    /// The job was canceled, or its cancel was requested.
    Canceled,
    /// There is no such job, lease or queue.
    UnknownId,
    /// It was done, the reply was lost, and it comes again.
    ReplyLost,
    /// The job is another tenant's, the lease another worker's.
    WrongTenant,
    /// At the same moment from elsewhere.
    ConcurrentTwin,
}

/// What covers a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// This case or scenario of [`crate::CASES`].
    Case(&'static str),
    /// Nothing, because.
    Hole(&'static str),
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What is tried.
    pub verb: Verb,
    /// In which situation.
    pub situation: Situation,
    /// What covers it.
    pub cover: Cover,
}

impl Verb {
    /// Every verb, in the order of a job's life.
    pub const ALL: [Self; 19] = [
        Self::Enqueue,
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Fail,
        Self::Snooze,
        Self::Release,
        Self::Acknowledge,
        Self::Cancel,
        Self::ForceCancel,
        Self::Requeue,
        Self::Open,
        Self::Hasten,
        Self::Reclaim,
        Self::Show,
        Self::Prune,
        Self::DropLeases,
        Self::ReleaseUnknown,
        Self::FindEndings,
    ];
}

impl Situation {
    /// Every situation.
    pub const ALL: [Self; 8] = [
        Self::Fresh,
        Self::StaleFence,
        Self::Expired,
        Self::Canceled,
        Self::UnknownId,
        Self::ReplyLost,
        Self::WrongTenant,
        Self::ConcurrentTwin,
    ];
}

/// The matrix as text: one line a cell, holes with their reasons, and the count.
pub fn print_matrix() -> String {
    let mut text = String::new();
    for verb in Verb::ALL {
        let _ = writeln!(text, "{verb:?}");
        for cell in MATRIX.iter().filter(|cell| cell.verb == verb) {
            let (mark, what) = match cell.cover {
                Cover::Case(name) => ("x", name),
                Cover::Hole(reason) => (" ", reason),
            };
            let _ = writeln!(text, "  [{mark}] {:<15} {what}", format!("{:?}", cell.situation));
        }
    }
    let covered = MATRIX.iter().filter(|cell| matches!(cell.cover, Cover::Case(_))).count();
    let _ = writeln!(text, "{covered} of {} cells are covered, the others are holes with a reason", MATRIX.len());
    text
}

const fn case(verb: Verb, situation: Situation, name: &'static str) -> Cell {
    Cell { verb, situation, cover: Cover::Case(name) }
}

const fn hole(verb: Verb, situation: Situation, reason: &'static str) -> Cell {
    Cell { verb, situation, cover: Cover::Hole(reason) }
}

use {Situation::*, Verb::*};

/// Every cell.
#[rustfmt::skip] // one cell a line
pub const MATRIX: &[Cell] = &[
    case(Enqueue, Fresh, "a_new_job_is_stored_with_everything_it_said"),
    hole(Enqueue, StaleFence, "an enqueue carries no fence"),
    case(Enqueue, Expired, "a_key_is_held_by_a_job_whose_lease_expired"),
    case(Enqueue, Canceled, "a_canceled_job_lets_its_key_go_but_not_its_id"),
    case(Enqueue, UnknownId, "an_id_off_the_clock_is_refused_with_its_whole_batch"),
    case(Enqueue, ReplyLost, "an_enqueue_sent_twice_is_one_job"),
    case(Enqueue, WrongTenant, "a_tenant_does_not_meet_the_keys_of_another"),
    case(Enqueue, ConcurrentTwin, "of_two_enqueues_of_one_key_one_creates"),
    case(Claim, Fresh, "a_claim_hands_out_a_due_job_with_all_it_needs"),
    case(Claim, StaleFence, "a_stale_worker_does_not_get_the_job_its_successor_runs"),
    case(Claim, Expired, "an_expired_lease_is_not_claimed_before_it_is_reclaimed"),
    case(Claim, Canceled, "a_canceled_job_is_not_handed_out"),
    case(Claim, UnknownId, "a_claim_of_an_unknown_queue_gets_nothing"),
    case(Claim, ReplyLost, "a_claim_sent_twice_gets_other_jobs"),
    case(Claim, WrongTenant, "a_worker_serves_every_tenant"),
    case(Claim, ConcurrentTwin, "concurrent_claims_share_no_job"),
    case(Renew, Fresh, "a_renewal_pushes_the_deadline_out"),
    case(Renew, StaleFence, "a_stale_worker_cannot_renew_while_its_successor_runs"),
    case(Renew, Expired, "an_expired_lease_can_be_renewed_until_it_is_reclaimed"),
    case(Renew, Canceled, "every_renewal_tells_of_a_requested_cancel"),
    case(Renew, UnknownId, "an_unknown_lease_is_not_renewed"),
    case(Renew, ReplyLost, "a_renewal_sent_twice_is_renewed_twice"),
    case(Renew, WrongTenant, "a_worker_cannot_renew_the_lease_of_another"),
    case(Renew, ConcurrentTwin, "a_renewal_and_a_reclaim_cannot_both_win"),
    case(Complete, Fresh, "a_holder_completes_its_job"),
    case(Complete, StaleFence, "a_stale_worker_cannot_complete_while_its_successor_runs"),
    case(Complete, Expired, "an_expired_lease_may_still_complete"),
    case(Complete, Canceled, "a_completion_after_a_forced_cancel_is_lost"),
    case(Complete, UnknownId, "a_completion_of_a_job_the_lease_does_not_list_is_lost"),
    case(Complete, ReplyLost, "a_completion_sent_twice_is_answered_as_done_before"),
    case(Complete, WrongTenant, "a_worker_cannot_complete_under_the_lease_of_another"),
    case(Complete, ConcurrentTwin, "of_two_completions_one_is_written"),
    case(Fail, Fresh, "a_holder_fails_its_job"),
    case(Fail, StaleFence, "a_stale_worker_cannot_fail_while_its_successor_runs"),
    case(Fail, Expired, "an_expired_lease_may_still_fail"),
    case(Fail, Canceled, "a_failure_after_a_forced_cancel_changes_nothing"),
    case(Fail, UnknownId, "a_failure_of_a_job_the_lease_does_not_list_is_lost"),
    case(Fail, ReplyLost, "a_failure_sent_twice_is_charged_once"),
    case(Fail, WrongTenant, "a_worker_cannot_fail_under_the_lease_of_another"),
    case(Fail, ConcurrentTwin, "of_two_failures_one_is_written"),
    case(Snooze, Fresh, "a_holder_snoozes_its_job"),
    case(Snooze, StaleFence, "a_stale_worker_cannot_snooze_while_its_successor_runs"),
    case(Snooze, Expired, "an_expired_lease_may_still_snooze"),
    case(Snooze, Canceled, "a_snooze_after_a_forced_cancel_changes_nothing"),
    case(Snooze, UnknownId, "a_snooze_of_a_job_the_lease_does_not_list_is_lost"),
    case(Snooze, ReplyLost, "a_snooze_sent_twice_is_put_back_once"),
    case(Snooze, WrongTenant, "a_worker_cannot_snooze_under_the_lease_of_another"),
    case(Snooze, ConcurrentTwin, "of_two_snoozes_one_is_written"),
    case(Release, Fresh, "a_holder_releases_its_job"),
    case(Release, StaleFence, "a_stale_worker_cannot_release_while_its_successor_runs"),
    case(Release, Expired, "an_expired_lease_may_still_release"),
    case(Release, Canceled, "a_release_after_a_forced_cancel_changes_nothing"),
    case(Release, UnknownId, "a_release_of_a_job_the_lease_does_not_list_is_lost"),
    case(Release, ReplyLost, "a_release_sent_twice_is_put_back_once"),
    case(Release, WrongTenant, "a_worker_cannot_release_under_the_lease_of_another"),
    case(Release, ConcurrentTwin, "of_two_releases_one_is_written"),
    case(Acknowledge, Fresh, "a_holder_cancels_its_own_job"),
    case(Acknowledge, StaleFence, "a_stale_worker_cannot_acknowledge_while_its_successor_runs"),
    case(Acknowledge, Expired, "an_expired_lease_may_still_acknowledge"),
    case(Acknowledge, Canceled, "an_acknowledgement_after_a_forced_cancel_was_done_before"),
    case(Acknowledge, UnknownId, "an_acknowledgement_of_a_job_the_lease_does_not_list_is_lost"),
    case(Acknowledge, ReplyLost, "an_acknowledgement_sent_twice_is_written_once"),
    case(Acknowledge, WrongTenant, "a_worker_cannot_acknowledge_under_the_lease_of_another"),
    case(Acknowledge, ConcurrentTwin, "of_two_acknowledgements_one_is_written"),
    case(Cancel, Fresh, "a_queued_job_is_canceled_at_once"),
    case(Cancel, StaleFence, "a_cancel_request_is_the_successors_to_meet"),
    case(Cancel, Expired, "a_job_under_an_expired_lease_is_canceled_by_request"),
    case(Cancel, Canceled, "a_canceled_job_was_canceled_before"),
    case(Cancel, UnknownId, "an_unknown_job_cannot_be_canceled"),
    case(Cancel, ReplyLost, "a_cancel_sent_twice_is_written_once"),
    case(Cancel, WrongTenant, "a_job_of_another_tenant_cannot_be_canceled"),
    case(Cancel, ConcurrentTwin, "of_two_cancels_one_ends_the_job"),
    case(ForceCancel, Fresh, "a_forced_cancel_fences_the_holder_at_once"),
    case(ForceCancel, StaleFence, "a_forced_cancel_fences_the_successor"),
    case(ForceCancel, Expired, "a_forced_cancel_leaves_an_expired_lease_nothing_to_return"),
    case(ForceCancel, Canceled, "a_canceled_job_cannot_be_fenced_again"),
    case(ForceCancel, UnknownId, "an_unknown_job_cannot_be_fenced"),
    case(ForceCancel, ReplyLost, "a_forced_cancel_sent_twice_is_written_once"),
    case(ForceCancel, WrongTenant, "a_job_of_another_tenant_cannot_be_fenced"),
    case(ForceCancel, ConcurrentTwin, "a_forced_cancel_and_a_completion_cannot_both_win"),
    case(Requeue, Fresh, "a_dead_job_is_requeued_with_its_attempts_reset"),
    case(Requeue, StaleFence, "a_requeue_does_not_revive_the_old_lease"),
    case(Requeue, Expired, "a_job_under_an_expired_lease_cannot_be_requeued"),
    case(Requeue, Canceled, "a_canceled_job_is_requeued"),
    case(Requeue, UnknownId, "an_unknown_job_cannot_be_requeued"),
    case(Requeue, ReplyLost, "a_requeue_sent_twice_is_written_once"),
    case(Requeue, WrongTenant, "a_job_of_another_tenant_cannot_be_requeued"),
    case(Requeue, ConcurrentTwin, "of_two_requeues_one_wins"),
    case(Open, Fresh, "an_opened_job_is_due_now"),
    hole(Open, StaleFence, "a waiting job was never held: nothing leads back to waiting"),
    hole(Open, Expired, "a waiting job was never held: it has no lease to expire"),
    case(Open, Canceled, "a_canceled_waiting_job_cannot_be_opened"),
    case(Open, UnknownId, "an_unknown_job_cannot_be_opened"),
    case(Open, ReplyLost, "an_opening_sent_twice_is_written_once"),
    case(Open, WrongTenant, "a_job_of_another_tenant_cannot_be_opened"),
    case(Open, ConcurrentTwin, "of_two_openings_one_wins"),
    case(Hasten, Fresh, "a_hastened_job_is_due_now"),
    case(Hasten, StaleFence, "a_running_job_cannot_be_hastened"),
    case(Hasten, Expired, "a_job_under_an_expired_lease_cannot_be_hastened"),
    case(Hasten, Canceled, "a_job_that_has_ended_cannot_be_hastened"),
    case(Hasten, UnknownId, "an_unknown_job_cannot_be_hastened"),
    case(Hasten, ReplyLost, "a_job_hastened_twice_is_written_once"),
    case(Hasten, WrongTenant, "a_job_of_another_tenant_cannot_be_hastened"),
    case(Hasten, ConcurrentTwin, "of_two_that_hasten_a_job_one_is_written"),
    case(Reclaim, Fresh, "a_good_lease_is_not_taken_back"),
    case(Reclaim, StaleFence, "a_reclaim_does_not_touch_the_successor"),
    case(Reclaim, Expired, "an_expired_lease_is_taken_back_and_its_holder_named"),
    case(Reclaim, Canceled, "a_requested_cancel_ends_with_the_lease"),
    hole(Reclaim, UnknownId, "a reclaim names no job and no lease"),
    case(Reclaim, ReplyLost, "a_reclaim_sent_twice_takes_back_once"),
    case(Reclaim, WrongTenant, "a_reclaim_serves_every_worker_queue_and_tenant"),
    case(Reclaim, ConcurrentTwin, "concurrent_reclaims_take_back_each_job_once"),
    case(Show, Fresh, "a_new_job_is_shown_as_queued"),
    case(Show, StaleFence, "a_shown_job_names_the_successor"),
    case(Show, Expired, "a_job_under_an_expired_lease_is_shown_as_running"),
    case(Show, Canceled, "a_canceled_job_is_shown_with_its_end"),
    case(Show, UnknownId, "an_unknown_job_cannot_be_shown"),
    case(Show, ReplyLost, "a_job_shown_twice_is_the_same"),
    case(Show, WrongTenant, "a_job_of_another_tenant_cannot_be_shown"),
    case(Show, ConcurrentTwin, "a_job_shown_while_it_moves_is_never_between_states"),
    case(Prune, Fresh, "only_old_endings_are_pruned"),
    case(Prune, StaleFence, "a_job_that_its_successor_runs_is_not_pruned"),
    case(Prune, Expired, "a_job_under_an_expired_lease_is_not_pruned"),
    case(Prune, Canceled, "a_canceled_job_is_pruned_when_it_is_old"),
    hole(Prune, UnknownId, "a prune names no job"),
    case(Prune, ReplyLost, "a_prune_sent_twice_counts_once"),
    hole(Prune, WrongTenant, "retention is the store's, not a tenant's: a prune has no sight"),
    case(Prune, ConcurrentTwin, "concurrent_prunes_delete_each_job_once"),
    case(DropLeases, Fresh, "an_emptied_lease_is_dropped"),
    case(DropLeases, StaleFence, "a_stale_worker_cannot_drop_the_lease_of_its_successor"),
    case(DropLeases, Expired, "a_lease_that_still_holds_a_job_is_not_dropped"),
    case(DropLeases, Canceled, "a_lease_emptied_by_a_forced_cancel_is_dropped"),
    case(DropLeases, UnknownId, "an_unknown_lease_is_gone"),
    case(DropLeases, ReplyLost, "a_drop_sent_twice_answers_twice"),
    case(DropLeases, WrongTenant, "a_worker_cannot_drop_the_lease_of_another"),
    case(DropLeases, ConcurrentTwin, "a_drop_that_meets_the_last_report_loses_nothing"),
    case(ReleaseUnknown, Fresh, "a_claim_whose_reply_was_lost_is_given_back_uncharged"),
    case(ReleaseUnknown, StaleFence, "a_stale_worker_gives_back_nothing_of_its_successor"),
    case(ReleaseUnknown, Expired, "an_expired_unknown_claim_is_given_back_and_not_lost"),
    case(ReleaseUnknown, Canceled, "an_unknown_claim_with_a_requested_cancel_is_not_put_back"),
    case(ReleaseUnknown, UnknownId, "a_worker_that_knows_all_its_leases_gives_back_nothing"),
    case(ReleaseUnknown, ReplyLost, "an_unknown_claim_is_given_back_once"),
    case(ReleaseUnknown, WrongTenant, "a_worker_gives_back_nothing_of_another"),
    case(ReleaseUnknown, ConcurrentTwin, "concurrent_releases_give_back_each_job_once"),
    case(FindEndings, Fresh, "endings_are_found_in_the_order_asked"),
    case(FindEndings, StaleFence, "a_stale_worker_finds_its_own_ending"),
    case(FindEndings, Expired, "an_expired_lease_has_no_ending_before_it_is_reclaimed"),
    case(FindEndings, Canceled, "a_forced_cancel_is_found_as_the_ending"),
    case(FindEndings, UnknownId, "an_unknown_job_or_lease_has_no_ending"),
    hole(FindEndings, ReplyLost, "it only looks: asked again it says the same or more"),
    case(FindEndings, WrongTenant, "a_worker_does_not_find_the_endings_of_another"),
    hole(FindEndings, ConcurrentTwin, "it only looks, and what it sees is committed"),
];
