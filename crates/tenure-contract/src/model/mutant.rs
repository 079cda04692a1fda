//! Ways to break the model: each drops one predicate that a store could drop by mistake.

/// One broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Reports match the job only, not the lease number.
    LeaseIgnored,
    /// Reports and renewals do not ask whose lease it is.
    WorkerIgnored,
    /// A second ending of one grant is accepted anew.
    EndedTwice,
    /// A report whose reply was lost is answered as a lost lease.
    AnswerForgotten,
    /// A lease number is given out again.
    FenceRepeats,
    /// A claim takes everything that is due.
    LimitIgnored,
    /// A paused queue hands out jobs.
    PauseIgnored,
    /// A lease is taken back while it is good.
    ReclaimBeforeExpiry,
    /// A lease that still holds jobs can be dropped.
    HeldLeaseDropped,
    /// A requested cancel does not stop a retry.
    CancelForgotten,
    /// A job is pruned though a lease it ran under exists.
    PrunedUnderLease,
    /// An enqueue takes a key that is held.
    KeyTakenFromHolder,
    /// A requeue does not look at the key.
    RequeueIgnoresKey,
    /// A tenant sees every job.
    SightIgnored,
    /// Reports leave no journal row.
    JournalSkipped,
    /// A report that came too late leaves no journal row.
    RefusalSkipped,
    /// A claim does not ask the gates.
    GateIgnored,
    /// A schedule moves on whatever became of it since it was read.
    VersionIgnored,
    /// A fire time may have another job.
    FiredTwice,
    /// Due schedules come the longest due first, of whichever tenant.
    TenantsNotInTurn,
    /// A page moves its partition wherever that is.
    OffsetIgnored,
    /// A consolidate does not wait for all.
    ConsolidateEarly,
}

impl Mutant {
    /// Every way, each with a case that must notice it.
    pub const ALL: [(Self, &'static str); 22] = [
        (Self::LeaseIgnored, "a_stale_worker_cannot_complete_while_its_successor_runs"),
        (Self::WorkerIgnored, "a_worker_cannot_complete_under_the_lease_of_another"),
        (Self::EndedTwice, "a_completion_sent_twice_is_answered_as_done_before"),
        (Self::AnswerForgotten, "a_completion_sent_twice_is_answered_as_done_before"),
        (Self::FenceRepeats, "a_fence_is_never_given_out_again"),
        (Self::LimitIgnored, "a_claim_takes_no_more_than_it_asked_for"),
        (Self::PauseIgnored, "a_paused_queue_hands_out_nothing"),
        (Self::ReclaimBeforeExpiry, "a_good_lease_is_not_taken_back"),
        (Self::HeldLeaseDropped, "a_lease_that_still_holds_a_job_is_not_dropped"),
        (Self::CancelForgotten, "a_requested_cancel_wins_over_a_retry"),
        (Self::PrunedUnderLease, "a_job_is_not_pruned_while_a_lease_it_ran_under_exists"),
        (Self::KeyTakenFromHolder, "a_key_is_held_while_its_job_is_active"),
        (Self::RequeueIgnoresKey, "a_requeue_is_refused_when_another_job_took_its_key"),
        (Self::SightIgnored, "a_job_of_another_tenant_cannot_be_shown"),
        (Self::JournalSkipped, "every_ending_leaves_its_journal_row"),
        (Self::RefusalSkipped, "a_report_that_came_too_late_is_written_down"),
        (Self::GateIgnored, "a_gate_lets_so_many_in_at_once"),
        (Self::VersionIgnored, "of_two_that_make_up_different_fires_one_wins"),
        (Self::FiredTwice, "a_fire_time_has_one_job_whatever_is_asked"),
        (Self::TenantsNotInTurn, "tenants_take_turns_among_due_schedules"),
        (Self::OffsetIgnored, "a_page_that_is_repeated_or_out_of_order_moves_nothing"),
        (Self::ConsolidateEarly, "a_consolidate_opens_when_the_last_partition_is_done"),
    ];
}
