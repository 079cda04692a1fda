//! A thread that owns a connection and takes turns in order of urgency.
//!
//! Renewals go first: a worker that cannot renew loses everything it holds. Then the ordinary verbs, in the order they
//! came. Bulk goes last and alone, but not never: after [`PATIENCE`] groups of others it has its turn. One call is one
//! transaction whatever its size, so a producer with a million jobs sends many calls.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tenure_store::StoreError;

use crate::engine::Shared;
use crate::turn::{self, Mode, Turn};

/// How soon a turn must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Before everything else.
    Renewal,
    /// In the order of arrival.
    Verb,
    /// When nobody else wants to, or after [`PATIENCE`] groups.
    Bulk,
}

/// Groups that may overtake a waiting bulk.
const PATIENCE: u32 = 8;
/// Most turns that share one commit.
const GROUP_MAX: usize = 64;

/// The handle of the thread. Dropping it lets the thread finish what is queued and waits for it.
pub(crate) struct Lane {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    renewals: VecDeque<Turn>,
    verbs: VecDeque<Turn>,
    bulk: VecDeque<Turn>,
    /// Groups run since a bulk began to wait.
    overtaken: u32,
    closed: bool,
}

impl Lane {
    /// Starts the thread.
    pub(crate) fn start(name: &str, conn: Connection, shared: Arc<Shared>, mode: Mode) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::default());
        let work = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                while let Some(group) = work.next() {
                    turn::run(&conn, &shared, mode, group);
                }
            })
            .map_err(StoreError::unavailable)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Queues a turn.
    pub(crate) fn push(&self, urgency: Urgency, turn: Turn) {
        let mut waiting = self.queue.lock();
        match urgency {
            Urgency::Renewal => waiting.renewals.push_back(turn),
            Urgency::Verb => waiting.verbs.push_back(turn),
            Urgency::Bulk => waiting.bulk.push_back(turn),
        }
        drop(waiting);
        self.queue.changed.notify_one();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take()
            // The last handle may go inside a closure on the thread itself.
            && thread.thread().id() != thread::current().id()
        {
            // The thread catches every panic of a verb; there is nobody to tell about another one.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in here panics half-way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next turns to commit together; `None` when the store is closed and everything is done.
    fn next(&self) -> Option<Vec<Turn>> {
        let mut waiting = self.lock();
        loop {
            let group = waiting.take();
            if !group.is_empty() {
                return Some(group);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Waiting {
    fn take(&mut self) -> Vec<Turn> {
        let others = !self.renewals.is_empty() || !self.verbs.is_empty();
        if !others || self.overtaken >= PATIENCE {
            self.overtaken = 0;
            if let Some(bulk) = self.bulk.pop_front() {
                return vec![bulk];
            }
        }
        self.overtaken += u32::from(!self.bulk.is_empty());
        let mut group = Vec::new();
        while group.len() < GROUP_MAX {
            let line = if self.renewals.is_empty() { &mut self.verbs } else { &mut self.renewals };
            match line.front() {
                Some(turn) if turn.alone && !group.is_empty() => break,
                Some(_) => group.extend(line.pop_front()),
                None => break,
            }
            if group.last().is_some_and(|turn: &Turn| turn.alone) {
                break;
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(alone: bool) -> Turn {
        Turn::new::<(), StoreError, _>(alone, |_| Ok(())).0
    }

    fn sizes(waiting: &mut Waiting) -> Vec<usize> {
        std::iter::from_fn(|| Some(waiting.take().len()).filter(|n| *n > 0)).collect()
    }

    #[test]
    fn what_waits_together_is_committed_together_up_to_a_limit() {
        let mut waiting = Waiting::default();
        waiting.verbs.extend((0..GROUP_MAX + 3).map(|_| turn(false)));
        assert_eq!(sizes(&mut waiting), [GROUP_MAX, 3]);
    }

    #[test]
    fn a_lone_turn_shares_its_commit_with_nobody() {
        let mut waiting = Waiting::default();
        waiting.verbs.extend([false, true, false, false].map(turn));
        assert_eq!(sizes(&mut waiting), [1, 1, 2]);
    }

    #[test]
    fn bulk_waits_for_others_but_not_for_ever() {
        let mut waiting = Waiting::default();
        waiting.bulk.extend([true, true].map(turn));
        waiting.verbs.extend((0..20).map(|_| turn(true)));
        let bulk_left: Vec<usize> = (0..PATIENCE + 2)
            .map(|_| {
                assert_eq!(waiting.take().len(), 1);
                waiting.bulk.len()
            })
            .collect();
        assert_eq!(bulk_left, [2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
    }
}
