//! The loop of a worker process: connect, recover, poll, claim, rest, and never exit by itself.
//!
//! The other table is a slot's, in [`slot`](crate::slot). The two meet in two places only. A claim that was committed
//! ([`Event::Claim`]) takes slots; and a loop whose slots are all taken stays in [`State::Polling`] until one is free,
//! because a claim is never larger than the free slots.
//!
//! ```text
//!   Startup ──► Connecting ──► Recovery ──► Polling ◄──► Claiming ──► slots
//!                 ▲    ▲                      │
//!                 │    └──── Idle ◄─ Backoff ◄┘
//!             ErrorWait ◄── any                      any ──► Draining ──► Stopped
//! ```
//!
//! Losing the database is [`State::ErrorWait`], not an exit. Only a signal leads to [`State::Draining`].

use std::time::Duration;

/// How long [`State::ErrorWait`] lasts.
pub const ERROR_WAIT: Duration = Duration::from_secs(5);

/// What a worker's loop is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Setting up logs, metrics and traces.
    Startup,
    /// Reaching for the store.
    Connecting,
    /// Taking back what expired leases held, if it is time for it.
    Recovery,
    /// Looking for due jobs, or waiting for a free slot.
    Polling,
    /// Taking the jobs it found under a lease.
    Claiming,
    /// Nothing was due: choosing a longer interval.
    Backoff,
    /// Sleeping for that interval or until a wake-up.
    Idle,
    /// Sleeping for [`ERROR_WAIT`] after something unexpected.
    ErrorWait,
    /// Told to stop: no claims any more, what runs may finish until the grace period ends.
    Draining,
    /// Over.
    Stopped,
}

/// What can happen to a worker's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The process is set up.
    Start,
    /// The store answered.
    Connect,
    /// Expired leases are reclaimed, or it was not time for it.
    Recover,
    /// There are due jobs.
    Find,
    /// Nothing is due.
    Miss,
    /// The jobs are leased; slots take them.
    Claim,
    /// Others were faster; nothing is leased.
    Yield,
    /// The interval is chosen.
    Rest,
    /// The interval is over, or somebody rang.
    Wake,
    /// Something unexpected, such as a lost database.
    Break,
    /// The error wait is over.
    Retry,
    /// A signal to stop; the second one stops at once.
    Drain,
    /// Everything is finished or given back.
    Stop,
}

/// All moves of the loop. `None` is a refusal, never a panic.
#[rustfmt::skip] // the columns are the point
pub const fn next(from: State, event: Event) -> Option<State> {
    use {Event::*, State::*};
    match (from, event) {
        (Startup, Start)                => Some(Connecting),
        (Connecting, Connect)           => Some(Recovery),
        (Recovery, Recover)             => Some(Polling),
        (Polling, Find)                 => Some(Claiming),
        (Polling, Miss)                 => Some(Backoff),
        (Claiming, Claim | Yield)       => Some(Polling),
        (Backoff, Rest)                 => Some(Idle),
        (Idle, Wake)                    => Some(Connecting),
        (Startup | Connecting | Recovery | Polling | Claiming | Backoff | Idle | ErrorWait, Break) => Some(ErrorWait),
        (ErrorWait, Retry)              => Some(Connecting),
        (Startup | Connecting | Recovery | Polling | Claiming | Backoff | Idle | ErrorWait, Drain) => Some(Draining),
        (Draining, Break)               => Some(Draining),   // the grace period goes on, the database may return
        (Draining, Stop | Drain)        => Some(Stopped),    // Drain: a second signal

        // Refused, each by name.
        (Startup, Connect | Recover | Find | Miss | Claim | Yield | Rest | Wake | Retry | Stop)          => None,
        (Connecting, Start | Recover | Find | Miss | Claim | Yield | Rest | Wake | Retry | Stop)         => None,
        (Recovery, Start | Connect | Find | Miss | Claim | Yield | Rest | Wake | Retry | Stop)           => None,
        (Polling, Start | Connect | Recover | Claim | Yield | Rest | Wake | Retry | Stop)                => None,
        (Claiming, Start | Connect | Recover | Find | Miss | Rest | Wake | Retry | Stop)                 => None,
        (Backoff, Start | Connect | Recover | Find | Miss | Claim | Yield | Wake | Retry | Stop)         => None,
        (Idle, Start | Connect | Recover | Find | Miss | Claim | Yield | Rest | Retry | Stop)            => None,
        (ErrorWait, Start | Connect | Recover | Find | Miss | Claim | Yield | Rest | Wake | Stop)        => None,
        (Draining, Start | Connect | Recover | Find | Miss | Claim | Yield | Rest | Wake | Retry)        => None,
        (Stopped, Start | Connect | Recover | Find | Miss | Claim | Yield | Rest | Wake | Break | Retry | Drain | Stop) => None,
    }
}

impl State {
    /// Every state, in the order of a process's life.
    pub const ALL: [Self; 10] = [
        Self::Startup,
        Self::Connecting,
        Self::Recovery,
        Self::Polling,
        Self::Claiming,
        Self::Backoff,
        Self::Idle,
        Self::ErrorWait,
        Self::Draining,
        Self::Stopped,
    ];

    /// The word used in the worker registry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Connecting => "connecting",
            Self::Recovery => "recovery",
            Self::Polling => "polling",
            Self::Claiming => "claiming",
            Self::Backoff => "backoff",
            Self::Idle => "idle",
            Self::ErrorWait => "error_wait",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }

    /// The state of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl Event {
    /// Every event, in the order of a process's life.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Connect,
        Self::Recover,
        Self::Find,
        Self::Miss,
        Self::Claim,
        Self::Yield,
        Self::Rest,
        Self::Wake,
        Self::Break,
        Self::Retry,
        Self::Drain,
        Self::Stop,
    ];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::slot;

    /// S3's list, table and diagram together, "any" apart.
    const SEED: [(&str, &str); 15] = [
        ("Startup", "Connecting"),
        ("Connecting", "Recovery"),
        ("Connecting", "ErrorWait"),
        ("Recovery", "Polling"),
        ("Polling", "Claiming"),
        ("Polling", "Backoff"),
        ("Backoff", "Idle"),
        ("Idle", "Connecting"),
        ("Claiming", "Processing"),
        ("Claiming", "Polling"), // in the list and the diagram; the seed's table omits it
        ("Processing", "ReportingSuccess"),
        ("Processing", "ReportingFailure"),
        ("ReportingSuccess", "Polling"),
        ("ReportingFailure", "Polling"),
        ("ErrorWait", "Connecting"),
    ];

    /// The states of S3; "any state" leads to ErrorWait, itself included.
    const SEED_STATES: [&str; 11] = [
        "Startup",
        "Connecting",
        "Recovery",
        "Polling",
        "Backoff",
        "Idle",
        "Claiming",
        "Processing",
        "ReportingSuccess",
        "ReportingFailure",
        "ErrorWait",
    ];

    /// What Tenure adds: a worker that is told to stop drains.
    fn additions() -> BTreeSet<(String, String)> {
        let drains = SEED_STATES.map(|state| (state, "Draining"));
        let ends = [("Draining", "Draining"), ("Draining", "Stopped")];
        drains.into_iter().chain(ends).map(owned).collect()
    }

    fn owned((from, to): (&str, &str)) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    /// A worker with one slot.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Worker {
        loop_: State,
        slot: slot::State,
    }

    impl Worker {
        /// What a person sees: the slot while the loop waits for it, else the loop.
        fn shown(self) -> String {
            match (self.loop_, self.slot) {
                (loop_, slot::State::Free) => format!("{loop_:?}"),
                (State::Polling, slot) => format!("{slot:?}"),
                (loop_, _) => format!("{loop_:?}"),
            }
        }

        /// Everything that can happen next.
        fn follow(self) -> Vec<Self> {
            let taken = self.slot != slot::State::Free;
            let mut after = Vec::new();
            for event in Event::ALL {
                // A loop without a free slot waits, and what waits cannot break; it can only be told to stop.
                if self.loop_ == State::Polling && taken && event != Event::Drain {
                    continue;
                }
                let slot = match event {
                    Event::Claim => slot::next(self.slot, slot::Event::Take),
                    _ => Some(self.slot),
                };
                if let (Some(loop_), Some(slot)) = (next(self.loop_, event), slot) {
                    after.push(Self { loop_, slot });
                }
            }
            if self.loop_ != State::Stopped {
                for event in slot::Event::ALL.into_iter().filter(|e| *e != slot::Event::Take) {
                    let loop_ = match event {
                        slot::Event::Break => next(self.loop_, Event::Break),
                        _ => Some(self.loop_),
                    };
                    if let (Some(loop_), Some(slot)) = (loop_, slot::next(self.slot, event)) {
                        after.push(Self { loop_, slot });
                    }
                }
            }
            after
        }
    }

    /// Every step a person can see of a worker with one slot.
    fn merged() -> BTreeSet<(String, String)> {
        let mut steps = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![Worker { loop_: State::Startup, slot: slot::State::Free }];
        while let Some(worker) = open.pop() {
            if seen.insert(worker) {
                for after in worker.follow() {
                    steps.insert((worker.shown(), after.shown()));
                    open.push(after);
                }
            }
        }
        steps
    }

    #[test]
    fn with_one_slot_the_worker_is_the_seeds_machine() {
        let merged = merged();
        let any = SEED_STATES.map(|state| (state, "ErrorWait"));
        let seed: BTreeSet<_> = SEED.into_iter().chain(any).map(owned).collect();
        let missing: Vec<_> = seed.difference(&merged).collect();
        assert!(missing.is_empty(), "the seed has these and we do not: {missing:?}");
        let ours: BTreeSet<_> = merged.difference(&seed).cloned().collect();
        assert_eq!(ours, additions());
    }

    #[test]
    fn the_seeds_states_are_ours_without_free_draining_and_stopped() {
        let loops = State::ALL.map(|state| format!("{state:?}"));
        let slots = slot::State::ALL.map(|state| format!("{state:?}"));
        let added = ["Free", "Draining", "Stopped"];
        let ours: BTreeSet<_> = loops.iter().chain(&slots).map(String::as_str).filter(|s| !added.contains(s)).collect();
        assert_eq!(ours, BTreeSet::from(SEED_STATES));
    }

    #[test]
    fn a_running_worker_survives_anything_and_stops_only_when_told() {
        for state in State::ALL.into_iter().filter(|s| *s != State::Stopped) {
            assert!(next(state, Event::Break).is_some_and(|s| s != State::Stopped), "{state:?}");
            assert!(next(state, Event::Drain).is_some(), "{state:?}");
        }
        for state in State::ALL {
            for event in Event::ALL.into_iter().filter(|e| next(state, *e) == Some(State::Stopped)) {
                assert_eq!(state, State::Draining, "{event:?}");
            }
        }
    }

    #[test]
    fn nothing_follows_stopped_and_nothing_is_claimed_while_draining() {
        for event in Event::ALL {
            assert_eq!(next(State::Stopped, event), None, "{event:?}");
            let after = next(State::Draining, event);
            assert!(matches!(after, None | Some(State::Draining | State::Stopped)), "{event:?}");
        }
    }

    #[test]
    fn words_are_their_own_inverse() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("processing"), None);
    }
}
