//! The words of the journal: what a store writes down for each transition.
//!
//! The enqueue itself has no row: the job's own, immutable row is its record.

use crate::id::{JobId, LeaseNo, WorkerId};
use crate::json::Json;
use crate::lifecycle::{EventKind, How};
use crate::time::Timestamp;

/// Most jobs one journal row names.
pub const ROW_JOBS_MAX: usize = 1_000;

/// What a journal row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JournalEvent {
    /// A worker took the jobs under the lease.
    Claimed,
    /// Attempts ended so, under the lease (an operator's ending draws a number of its own).
    Ended(How),
    /// A holder was asked to stop.
    CancelRequested,
    /// An operator revived the job.
    Requeued,
    /// A waiting job was opened.
    Opened,
    /// Jobs past their retention were deleted.
    Pruned,
    /// A queue was paused.
    QueuePaused,
    /// A queue was resumed.
    QueueResumed,
    /// Sealed rows past their retention were dropped.
    JournalDropped,
    /// The store was moved to another database cluster and begins a new era.
    Rehomed,
    /// A report came too late and changed nothing: the lease it named no longer held the job.
    Refused,
    /// Somebody paused a gate.
    GatePaused,
    /// Somebody resumed it.
    GateResumed,
    /// A gate's breaker opened, by failures or by hand.
    GateTripped,
    /// Somebody closed it.
    GateReset,
    /// A probe closed it.
    GateHealed,
    /// The rule of a gate, or of many, was set or removed.
    GateRuled,
    /// A schedule was made or changed.
    ScheduleSet,
    /// A schedule was removed; its jobs stay.
    ScheduleRemoved,
    /// Somebody paused a schedule.
    SchedulePaused,
    /// Somebody resumed it.
    ScheduleResumed,
    /// A run was created.
    RunCreated,
    /// A run has all its members.
    RunSealed,
    /// A run succeeded or failed.
    RunEnded,
    /// A run that had failed goes on.
    RunReopened,
    /// Somebody canceled a run.
    RunCanceled,
    /// Somebody let a partition go on.
    PartitionResumed,
    /// Somebody let a partition begin again.
    PartitionReset,
    /// A tenant was made, or its quota changed.
    TenantSet,
    /// A key was made.
    KeyCreated,
    /// A key was revoked, or is to end because another took its place.
    KeyRevoked,
    /// Somebody told a worker to go quiet, to stop or to go on.
    WorkerOrdered,
    /// A webhook endpoint was made, changed, enabled, or given another secret.
    EndpointSet,
    /// A webhook endpoint was removed, and its deliveries with it.
    EndpointRemoved,
    /// A webhook endpoint gets nothing more until somebody enables it: by hand, or because its receiver is gone.
    EndpointDisabled,
    /// Somebody wants to see whether a webhook endpoint hears.
    EndpointPinged,
    /// Deliveries are sent again.
    DeliveriesResent,
    /// Somebody made a job due that was to wait for its time.
    Hastened,
}

/// One row of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    /// Grows; has gaps where a transaction was rolled back.
    pub id: i64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The worker that wrote it, if it was one.
    pub worker: Option<WorkerId>,
    /// Who asked: an operator's name, or the database role for plain SQL.
    pub actor: Option<String>,
    /// What happened.
    pub event: JournalEvent,
    /// Under which lease.
    pub lease: Option<LeaseNo>,
    /// To which jobs.
    pub jobs: Vec<JobId>,
    /// Why, in a person's words.
    pub reason: Option<String>,
    /// Whatever else belongs to it, as the store's own JSON text.
    pub details: Option<Json>,
}

impl JournalRow {
    /// Bytes it takes in memory, about.
    pub fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let details = self.details.as_ref().map_or(0, |details| details.as_str().len());
        size_of::<Self>() + self.jobs.len() * size_of::<JobId>() + text(&self.actor) + text(&self.reason) + details
    }
}

impl JournalEvent {
    /// Every event.
    pub const ALL: [Self; 45] = [
        Self::Claimed,
        Self::Ended(How::Succeeded),
        Self::Ended(How::Retry),
        Self::Ended(How::Failed),
        Self::Ended(How::Dead),
        Self::Ended(How::Canceled),
        Self::Ended(How::Snoozed),
        Self::Ended(How::Released),
        Self::Ended(How::Lost),
        Self::CancelRequested,
        Self::Requeued,
        Self::Opened,
        Self::Pruned,
        Self::QueuePaused,
        Self::QueueResumed,
        Self::JournalDropped,
        Self::Rehomed,
        Self::Refused,
        Self::GatePaused,
        Self::GateResumed,
        Self::GateTripped,
        Self::GateReset,
        Self::GateHealed,
        Self::GateRuled,
        Self::ScheduleSet,
        Self::ScheduleRemoved,
        Self::SchedulePaused,
        Self::ScheduleResumed,
        Self::RunCreated,
        Self::RunSealed,
        Self::RunEnded,
        Self::RunReopened,
        Self::RunCanceled,
        Self::PartitionResumed,
        Self::PartitionReset,
        Self::TenantSet,
        Self::KeyCreated,
        Self::KeyRevoked,
        Self::WorkerOrdered,
        Self::EndpointSet,
        Self::EndpointRemoved,
        Self::EndpointDisabled,
        Self::EndpointPinged,
        Self::DeliveriesResent,
        Self::Hastened,
    ];

    /// What the `journal` table stores; endings are 10 + the ending's own code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Claimed => 1,
            Self::CancelRequested => 2,
            Self::Requeued => 3,
            Self::Opened => 4,
            Self::Pruned => 5,
            Self::QueuePaused => 6,
            Self::QueueResumed => 7,
            Self::JournalDropped => 8,
            Self::Rehomed => 9,
            Self::Ended(how) => 10 + how.code(),
            Self::Refused => 20,
            Self::GatePaused => 21,
            Self::GateResumed => 22,
            Self::GateTripped => 23,
            Self::GateReset => 24,
            Self::GateHealed => 25,
            Self::GateRuled => 26,
            Self::ScheduleSet => 27,
            Self::ScheduleRemoved => 28,
            Self::SchedulePaused => 29,
            Self::ScheduleResumed => 30,
            Self::RunCreated => 31,
            Self::RunSealed => 32,
            Self::RunEnded => 33,
            Self::RunReopened => 34,
            Self::RunCanceled => 35,
            Self::PartitionResumed => 36,
            Self::PartitionReset => 37,
            Self::TenantSet => 38,
            Self::KeyCreated => 39,
            Self::KeyRevoked => 40,
            Self::WorkerOrdered => 41,
            Self::EndpointSet => 42,
            Self::EndpointRemoved => 43,
            Self::EndpointDisabled => 44,
            Self::EndpointPinged => 45,
            Self::DeliveriesResent => 46,
            Self::Hastened => 47,
        }
    }

    /// The event of this code, if it is one.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }

    /// The word used in views and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::CancelRequested => "cancel_requested",
            Self::Requeued => "requeued",
            Self::Opened => "opened",
            Self::Pruned => "pruned",
            Self::QueuePaused => "queue_paused",
            Self::QueueResumed => "queue_resumed",
            Self::JournalDropped => "journal_dropped",
            Self::Rehomed => "rehomed",
            Self::Refused => "refused",
            Self::GatePaused => "gate_paused",
            Self::GateResumed => "gate_resumed",
            Self::GateTripped => "gate_tripped",
            Self::GateReset => "gate_reset",
            Self::GateHealed => "gate_healed",
            Self::GateRuled => "gate_ruled",
            Self::ScheduleSet => "schedule_set",
            Self::ScheduleRemoved => "schedule_removed",
            Self::SchedulePaused => "schedule_paused",
            Self::ScheduleResumed => "schedule_resumed",
            Self::RunCreated => "run_created",
            Self::RunSealed => "run_sealed",
            Self::RunEnded => "run_ended",
            Self::RunReopened => "run_reopened",
            Self::RunCanceled => "run_canceled",
            Self::PartitionResumed => "partition_resumed",
            Self::PartitionReset => "partition_reset",
            Self::TenantSet => "tenant_set",
            Self::KeyCreated => "key_created",
            Self::KeyRevoked => "key_revoked",
            Self::WorkerOrdered => "worker_ordered",
            Self::EndpointSet => "endpoint_set",
            Self::EndpointRemoved => "endpoint_removed",
            Self::EndpointDisabled => "endpoint_disabled",
            Self::EndpointPinged => "endpoint_pinged",
            Self::DeliveriesResent => "deliveries_resent",
            Self::Hastened => "hastened",
            Self::Ended(how) => how.as_str(),
        }
    }

    /// The lifecycle step this row claims to record; `None` where no job changes its state. `Dead` is reported as the
    /// one way of dying that the lifecycle allows from every running job.
    pub const fn step(self) -> Option<EventKind> {
        match self {
            Self::Claimed => Some(EventKind::Claim),
            Self::Requeued => Some(EventKind::Requeue),
            Self::Opened => Some(EventKind::Open),
            Self::Ended(How::Succeeded) => Some(EventKind::Complete),
            Self::Ended(How::Retry) => Some(EventKind::Retry),
            Self::Ended(How::Failed) => Some(EventKind::Reject),
            Self::Ended(How::Dead) => Some(EventKind::Bury),
            Self::Ended(How::Canceled) => Some(EventKind::Cancel),
            Self::Ended(How::Snoozed) => Some(EventKind::Snooze),
            Self::Ended(How::Released) => Some(EventKind::Release),
            Self::Ended(How::Lost) => Some(EventKind::Lose),
            Self::CancelRequested
            | Self::Pruned
            | Self::QueuePaused
            | Self::QueueResumed
            | Self::JournalDropped
            | Self::Rehomed
            | Self::Refused
            | Self::GatePaused
            | Self::GateResumed
            | Self::GateTripped
            | Self::GateReset
            | Self::GateHealed
            | Self::GateRuled
            | Self::ScheduleSet
            | Self::ScheduleRemoved
            | Self::SchedulePaused
            | Self::ScheduleResumed
            | Self::RunCreated
            | Self::RunSealed
            | Self::RunEnded
            | Self::RunReopened
            | Self::RunCanceled
            | Self::PartitionResumed
            | Self::PartitionReset
            | Self::TenantSet
            | Self::KeyCreated
            | Self::KeyRevoked
            | Self::WorkerOrdered
            | Self::EndpointSet
            | Self::EndpointRemoved
            | Self::EndpointDisabled
            | Self::EndpointPinged
            | Self::DeliveriesResent
            | Self::Hastened => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_their_own_inverse() {
        for event in JournalEvent::ALL {
            assert_eq!(JournalEvent::from_code(event.code()), Some(event));
        }
        for code in [0, 10, 19, 48] {
            assert_eq!(JournalEvent::from_code(code), None);
        }
    }
}
