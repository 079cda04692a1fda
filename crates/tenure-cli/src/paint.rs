//! Colours, used sparingly: a state's word, headings, and what can be skipped.

use tenure_core::journal::JournalEvent;
use tenure_core::{How, RunState, State};

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Paint {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Paint {
    /// `text` in this colour, or as it is where there are none.
    pub(crate) fn apply(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Cyan => 36,
        };
        if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) const fn of_state(state: State) -> Self {
        match state {
            State::Waiting | State::Canceled => Self::Dim,
            State::Queued => Self::Plain,
            State::Retryable => Self::Yellow,
            State::Running => Self::Cyan,
            State::Succeeded => Self::Green,
            State::Failed | State::Dead => Self::Red,
        }
    }

    pub(crate) const fn of_run(state: RunState) -> Self {
        match state {
            RunState::Queued => Self::Plain,
            RunState::Running => Self::Cyan,
            RunState::Succeeded => Self::Green,
            RunState::Failed => Self::Red,
            RunState::Canceled => Self::Dim,
        }
    }

    pub(crate) const fn of_ending(how: How) -> Self {
        match how {
            How::Succeeded => Self::Green,
            How::Retry | How::Lost => Self::Yellow,
            How::Failed | How::Dead => Self::Red,
            How::Canceled | How::Snoozed | How::Released => Self::Dim,
        }
    }

    pub(crate) const fn of_event(event: JournalEvent) -> Self {
        match event {
            JournalEvent::Ended(how) => Self::of_ending(how),
            JournalEvent::Claimed => Self::Cyan,
            JournalEvent::CancelRequested
            | JournalEvent::QueuePaused
            | JournalEvent::GatePaused
            | JournalEvent::SchedulePaused
            | JournalEvent::RunCanceled
            | JournalEvent::Refused => Self::Yellow,
            JournalEvent::GateTripped => Self::Red,
            JournalEvent::GateHealed => Self::Green,
            JournalEvent::Requeued
            | JournalEvent::Opened
            | JournalEvent::QueueResumed
            | JournalEvent::GateResumed
            | JournalEvent::GateReset
            | JournalEvent::ScheduleResumed
            | JournalEvent::RunReopened
            | JournalEvent::PartitionResumed
            | JournalEvent::PartitionReset
            | JournalEvent::WorkerOrdered
            | JournalEvent::EndpointPinged
            | JournalEvent::DeliveriesResent
            | JournalEvent::Hastened => Self::Plain,
            JournalEvent::Pruned
            | JournalEvent::JournalDropped
            | JournalEvent::Rehomed
            | JournalEvent::GateRuled
            | JournalEvent::ScheduleSet
            | JournalEvent::ScheduleRemoved
            | JournalEvent::RunCreated
            | JournalEvent::RunSealed
            | JournalEvent::RunEnded
            | JournalEvent::TenantSet
            | JournalEvent::KeyCreated
            | JournalEvent::KeyRevoked
            | JournalEvent::EndpointSet
            | JournalEvent::EndpointRemoved
            | JournalEvent::EndpointDisabled => Self::Bold,
        }
    }
}
