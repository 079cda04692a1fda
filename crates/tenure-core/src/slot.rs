//! One slot of a worker process: where a claimed job runs and is reported.
//!
//! The other table is the loop's, in [`worker_loop`](crate::worker_loop). This is one job's stay: it begins when the
//! loop's claim was committed and ends when the store has answered its report, whatever the answer: a job whose lease was
//! lost is reported, refused, and gone. While it is being reported its slot may run the next one already; never do more
//! handlers run than there are slots.

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Nothing.
    Free,
    /// A handler runs.
    Processing,
    /// The handler did it and the store is being told.
    ReportingSuccess,
    /// The handler ended otherwise (an error, a panic, later, canceled) and the store is being told.
    ReportingFailure,
}

/// What can happen to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// It got a claimed job.
    Take,
    /// The handler did it.
    Succeed,
    /// The handler ended otherwise, or its lease ended first and it was stopped.
    Fail,
    /// The store answered: the report was accepted, or came too late and was refused.
    Settle,
    /// The store gave no answer until the lease's end: the outcome is given up and the loop waits as well.
    Break,
}

/// All moves of a slot. `None` is a refusal, never a panic.
#[rustfmt::skip] // the columns are the point
pub const fn next(from: State, event: Event) -> Option<State> {
    use {Event::*, State::*};
    match (from, event) {
        (Free, Take)                                                => Some(Processing),
        (Processing, Succeed)                                       => Some(ReportingSuccess),
        (Processing, Fail)                                          => Some(ReportingFailure),
        (ReportingSuccess | ReportingFailure, Settle)               => Some(Free),
        (Processing | ReportingSuccess | ReportingFailure, Break)   => Some(Free),

        // Refused, each by name.
        (Free, Succeed | Fail | Settle | Break)                     => None,
        (Processing, Take | Settle)                                 => None,
        (ReportingSuccess | ReportingFailure, Take | Succeed | Fail) => None,
    }
}

impl State {
    /// Every state, in the order of a job's stay.
    pub const ALL: [Self; 4] = [Self::Free, Self::Processing, Self::ReportingSuccess, Self::ReportingFailure];

    /// The word used in the worker registry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Processing => "processing",
            Self::ReportingSuccess => "reporting_success",
            Self::ReportingFailure => "reporting_failure",
        }
    }

    /// The state of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl Event {
    /// Every event, in the order of a job's stay.
    pub const ALL: [Self; 5] = [Self::Take, Self::Succeed, Self::Fail, Self::Settle, Self::Break];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_taken_only_while_it_is_free() {
        for state in State::ALL {
            assert_eq!(next(state, Event::Take).is_some(), state == State::Free, "{state:?}");
        }
    }

    #[test]
    fn every_taken_slot_can_become_free() {
        for state in State::ALL.into_iter().filter(|s| *s != State::Free) {
            assert_eq!(next(state, Event::Break), Some(State::Free), "{state:?}");
        }
    }

    #[test]
    fn words_are_their_own_inverse() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("idle"), None);
    }
}
