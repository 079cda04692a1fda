//! The whole lifecycle of a job: eight states, twelve events, one table.
//!
//! `docs/LIFECYCLE.md` is generated from [`next`] and a test fails when it is stale.

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Held back by something else (a run's fan-in) until it is opened.
    Waiting,
    /// Ready to be claimed once its `run_at` is due.
    Queued,
    /// Failed before and will be tried again at its `run_at`.
    Retryable,
    /// Listed by a lease and not ended under it.
    Running,
    /// Done.
    Succeeded,
    /// Ended by a permanent error.
    Failed,
    /// Attempts or losses used up, or buried by rule. Kept for a person to look at.
    Dead,
    /// Ended because somebody asked for it.
    Canceled,
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// What it waited for is there.
    Open,
    /// A worker takes it under a new lease.
    Claim,
    /// The holder did it.
    Complete,
    /// The holder failed and there are attempts left.
    Retry,
    /// The holder asks for it later, uncharged.
    Snooze,
    /// The holder gives it back, uncharged.
    Release,
    /// The lease expired.
    Lose,
    /// The holder met a permanent error.
    Reject,
    /// A transient error on the last attempt, or one loss too many.
    Exhaust,
    /// Dead now, by rule.
    Bury,
    /// An operator, a policy or the holder ends it.
    Cancel,
    /// An operator revives it.
    Requeue,
}

/// How one attempt ended. The first four and `Canceled` end the job as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// The handler did it.
    Succeeded,
    /// A transient error; the job will be tried again.
    Retry,
    /// A permanent error.
    Failed,
    /// Attempts or losses used up, or buried by rule.
    Dead,
    /// Canceled by request, by force or by the handler.
    Canceled,
    /// The handler asked for later; not charged.
    Snoozed,
    /// Given back; not charged.
    Released,
    /// The lease expired; counted as a loss, not as an attempt.
    Lost,
}

/// The whole lifecycle. `None` is a refusal, never a panic.
#[rustfmt::skip] // the columns are the point
pub const fn next(from: State, event: EventKind) -> Option<State> {
    use {EventKind::*, State::*};
    match (from, event) {
        (Waiting, Open)                                             => Some(Queued),
        (Queued | Retryable, Claim)                                 => Some(Running),
        (Running, Complete)                                         => Some(Succeeded),
        (Running, Retry)                                            => Some(Retryable),
        (Running, Snooze | Release | Lose)                          => Some(Queued),     // Lose: the lease expired
        (Running, Reject)                                           => Some(Failed),
        (Running, Exhaust | Bury)                                   => Some(Dead),       // Bury: dead now, by rule
        (Waiting | Queued | Retryable | Running, Cancel)            => Some(Canceled),
        (Failed | Dead | Canceled, Requeue)                         => Some(Queued),

        // Refused, each by name: a new state or event is placed by hand or nothing compiles.
        (Waiting, Claim | Complete | Retry | Snooze | Release | Lose | Reject | Exhaust | Bury | Requeue)            => None,
        (Queued | Retryable, Open | Complete | Retry | Snooze | Release | Lose | Reject | Exhaust | Bury | Requeue)  => None,
        (Running, Open | Claim | Requeue)                                                                            => None,
        (Succeeded, Open | Claim | Complete | Retry | Snooze | Release | Lose | Reject | Exhaust | Bury | Cancel | Requeue) => None,
        (Failed | Dead | Canceled, Open | Claim | Complete | Retry | Snooze | Release | Lose | Reject | Exhaust | Bury | Cancel) => None,
    }
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Queued,
        Self::Retryable,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Dead,
        Self::Canceled,
    ];

    /// The word used in columns, commands and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Retryable => "retryable",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Canceled => "canceled",
        }
    }

    /// The state of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing but an operator's requeue leads on from here.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Dead | Self::Canceled => true,
            Self::Waiting | Self::Queued | Self::Retryable | Self::Running => false,
        }
    }
}

impl EventKind {
    /// Every event, in the order of a job's life.
    pub const ALL: [Self; 12] = [
        Self::Open,
        Self::Claim,
        Self::Complete,
        Self::Retry,
        Self::Snooze,
        Self::Release,
        Self::Lose,
        Self::Reject,
        Self::Exhaust,
        Self::Bury,
        Self::Cancel,
        Self::Requeue,
    ];
}

impl How {
    /// Every ending; the position plus one is the code stored in the `attempt` table.
    pub const ALL: [Self; 8] = [
        Self::Succeeded,
        Self::Retry,
        Self::Failed,
        Self::Dead,
        Self::Canceled,
        Self::Snoozed,
        Self::Released,
        Self::Lost,
    ];

    /// The word used in views and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Retry => "retry",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Canceled => "canceled",
            Self::Snoozed => "snoozed",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }

    /// 1..=8, what the `attempt` table stores.
    pub const fn code(self) -> i16 {
        match self {
            Self::Succeeded => 1,
            Self::Retry => 2,
            Self::Failed => 3,
            Self::Dead => 4,
            Self::Canceled => 5,
            Self::Snoozed => 6,
            Self::Released => 7,
            Self::Lost => 8,
        }
    }

    /// The ending of this code, if it is one.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.code() == code)
    }

    /// The state a job is in after an attempt that ended so.
    pub const fn leads_to(self) -> State {
        match self {
            Self::Succeeded => State::Succeeded,
            Self::Retry => State::Retryable,
            Self::Failed => State::Failed,
            Self::Dead => State::Dead,
            Self::Canceled => State::Canceled,
            Self::Snoozed | Self::Released | Self::Lost => State::Queued,
        }
    }

    /// Whether the attempt is not charged: its number goes back by one.
    pub const fn is_uncharged(self) -> bool {
        match self {
            Self::Snoozed | Self::Released | Self::Lost => true,
            Self::Succeeded | Self::Retry | Self::Failed | Self::Dead | Self::Canceled => false,
        }
    }

    /// Whether the job ends with the attempt.
    pub const fn is_final(self) -> bool {
        self.leads_to().is_terminal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_states_are_left_by_requeue_only() {
        for state in State::ALL.into_iter().filter(|s| s.is_terminal()) {
            for event in EventKind::ALL.into_iter().filter(|e| *e != EventKind::Requeue) {
                assert_eq!(next(state, event), None, "{state:?} {event:?}");
            }
        }
        assert_eq!(next(State::Succeeded, EventKind::Requeue), None);
    }

    #[test]
    fn running_is_entered_by_claim_only() {
        for state in State::ALL {
            for event in EventKind::ALL {
                if next(state, event) == Some(State::Running) {
                    assert_eq!(event, EventKind::Claim);
                }
            }
        }
    }

    #[test]
    fn every_state_can_still_end() {
        // From any open state a terminal one is reachable in at most two steps.
        let ends = |s: State| EventKind::ALL.into_iter().any(|e| next(s, e).is_some_and(State::is_terminal));
        for state in State::ALL.into_iter().filter(|s| !s.is_terminal()) {
            assert!(ends(state), "{state:?}");
        }
    }

    #[test]
    fn words_and_codes_are_their_own_inverse() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        for how in How::ALL {
            assert_eq!(How::from_code(how.code()), Some(how));
        }
        assert_eq!((State::parse("done"), How::from_code(0), How::from_code(9)), (None, None, None));
    }
}
