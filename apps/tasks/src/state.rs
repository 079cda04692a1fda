//! [`State`] and [`STEPS`]: the loop of a worker as the seed has it, one state machine for the worker and its task.
//!
//! The library has two tables, the loop's and a slot's, since a worker may run many tasks at once. With one slot they are
//! the seed's one machine: see [`path`](crate::path), which merges them again.
//!
//! ```text
//!   Startup ──► Connecting ──► Recovery ──► Polling ──► Claiming ──► Processing ──► ReportingSuccess ──► Polling
//!                 ▲    ▲                     │    ▲        │              └───────► ReportingFailure ──► Polling
//!                 │    └─── Idle ◄─ Backoff ◄┘    └────────┘ nothing was leased
//!             ErrorWait ◄── any
//! ```

use std::fmt;

use tenure::core::{slot, worker_loop};

/// What a worker does, in the seed's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Setting up logs and traces.
    Startup,
    /// Reaching for the database.
    Connecting,
    /// Taking back tasks whose lease has expired, when it is time for it.
    Recovery,
    /// Looking for a pending task.
    Polling,
    /// Nothing was there: choosing a longer interval.
    Backoff,
    /// Sleeping for that interval.
    Idle,
    /// Taking the task under a lease.
    Claiming,
    /// The task's handler runs.
    Processing,
    /// It is done, and the database is told.
    ReportingSuccess,
    /// It failed, and the database is told.
    ReportingFailure,
    /// Sleeping for five seconds after something unexpected.
    ErrorWait,
    /// Told to stop. Ours: the seed's worker only ends when it is killed.
    Draining,
    /// Over. Ours.
    Stopped,
}

use State::{
    Backoff, Claiming, Connecting, Draining, ErrorWait, Idle, Polling, Processing, Recovery, ReportingFailure,
    ReportingSuccess, Startup, Stopped,
};

/// A step from one state to another.
pub type Step = (State, State);

/// The steps of the seed's list, table and diagram together; "any state" to ErrorWait apart.
pub const STEPS: [Step; 15] = [
    (Startup, Connecting),
    (Connecting, Recovery),
    (Connecting, ErrorWait),
    (Recovery, Polling),
    (Polling, Claiming),
    (Polling, Backoff),
    (Backoff, Idle),
    (Idle, Connecting),
    (Claiming, Processing),
    (Claiming, Polling), // in the list and in the diagram; the table omits it
    (Processing, ReportingSuccess),
    (Processing, ReportingFailure),
    (ReportingSuccess, Polling),
    (ReportingFailure, Polling),
    (ErrorWait, Connecting),
];

impl State {
    /// The seed's own, in the order of its list.
    pub const SEED: [Self; 11] = [
        Startup,
        Connecting,
        Recovery,
        Polling,
        Backoff,
        Idle,
        Claiming,
        Processing,
        ReportingSuccess,
        ReportingFailure,
        ErrorWait,
    ];

    /// Of the loop's word in traces and in the registry.
    pub fn of_loop(word: &str) -> Option<Self> {
        worker_loop::State::parse(word).map(Self::from)
    }

    /// Of a slot's word in traces; `None` for one that is free, which the seed has no word for.
    pub fn of_slot(word: &str) -> Option<Self> {
        match slot::State::parse(word)? {
            slot::State::Free => None,
            slot::State::Processing => Some(Processing),
            slot::State::ReportingSuccess => Some(ReportingSuccess),
            slot::State::ReportingFailure => Some(ReportingFailure),
        }
    }
}

/// Whether the seed knows a step: it is in the list, or leads from any of its states to ErrorWait.
pub fn is_listed((from, to): Step) -> bool {
    STEPS.contains(&(from, to)) || (to == ErrorWait && State::SEED.contains(&from))
}

/// Whether it is a step that Tenure adds: a worker that is told to stop drains.
pub fn is_added((from, to): Step) -> bool {
    matches!((from, to), (from, Draining) if from != Stopped) || (from, to) == (Draining, Stopped)
}

impl From<worker_loop::State> for State {
    fn from(state: worker_loop::State) -> Self {
        match state {
            worker_loop::State::Startup => Startup,
            worker_loop::State::Connecting => Connecting,
            worker_loop::State::Recovery => Recovery,
            worker_loop::State::Polling => Polling,
            worker_loop::State::Claiming => Claiming,
            worker_loop::State::Backoff => Backoff,
            worker_loop::State::Idle => Idle,
            worker_loop::State::ErrorWait => ErrorWait,
            worker_loop::State::Draining => Draining,
            worker_loop::State::Stopped => Stopped,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padded where a table asks for it.
        f.pad(match self {
            Startup => "Startup",
            Connecting => "Connecting",
            Recovery => "Recovery",
            Polling => "Polling",
            Backoff => "Backoff",
            Idle => "Idle",
            Claiming => "Claiming",
            Processing => "Processing",
            ReportingSuccess => "ReportingSuccess",
            ReportingFailure => "ReportingFailure",
            ErrorWait => "ErrorWait",
            Draining => "Draining",
            Stopped => "Stopped",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Shows: S3.01
    #[test]
    fn the_librarys_words_are_the_seeds_states() {
        let loops = worker_loop::State::ALL.into_iter().filter_map(|state| State::of_loop(state.as_str()));
        let slots = slot::State::ALL.into_iter().filter_map(|state| State::of_slot(state.as_str()));
        let ours: BTreeSet<State> = loops.chain(slots).collect();
        let seed: BTreeSet<State> = State::SEED.into_iter().chain([Draining, Stopped]).collect();
        assert_eq!(ours, seed);
        assert_eq!((State::of_loop("processing"), State::of_slot("idle"), State::of_slot("free")), (None, None, None));
    }

    /// Shows: S3.02
    #[test]
    fn a_task_is_processed_and_reported_and_everything_else_is_the_workers() {
        let of_task: Vec<State> = slot::State::ALL.into_iter().filter_map(|s| State::of_slot(s.as_str())).collect();
        assert_eq!(of_task, [Processing, ReportingSuccess, ReportingFailure]);
        let of_worker = State::SEED.into_iter().filter(|state| !of_task.contains(state));
        assert!(of_worker.clone().all(|state| worker_loop::State::ALL.into_iter().any(|s| State::from(s) == state)));
        assert_eq!(of_worker.count(), 8);
    }

    /// Every step that the library's two tables know is one that the seed knows, or one of the added.
    ///
    /// Shows: S3.35
    #[test]
    fn the_librarys_table_of_the_loop_has_no_step_that_is_not_listed() {
        for from in worker_loop::State::ALL {
            for event in worker_loop::Event::ALL {
                let Some(to) = worker_loop::next(from, event) else { continue };
                let step = (State::from(from), State::from(to));
                assert!(is_listed(step) || is_added(step), "{step:?}");
            }
        }
        assert!(!is_listed((Idle, Polling)) && !is_listed((Processing, Polling)) && !is_added((Idle, Stopped)));
    }
}
