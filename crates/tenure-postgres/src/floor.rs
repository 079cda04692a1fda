//! Where a claim begins to look.
//!
//! A long transaction anywhere in the database keeps deleted `ready` rows in the claim's index range, and every claim
//! would walk over all of them. So each process remembers, per queue and priority, the smallest place its last claim
//! returned, and begins there. Whatever is put into the queue lies above (every insert has `run_at ≥ now`), except a
//! transaction that commits late. Those are found by a *sweep*, a claim without floors: one process at a time is elected,
//! at most every two seconds and at most a twentieth of the time.
//!
//! ```text
//!   run_at ──────────────────────────────────────────────────►
//!   dead dead dead dead │ job job job job      │ future
//!        (a late commit)│floor                 now
//! ```

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::{JobId, Priority, QueueName, Timestamp};
use uuid::Uuid;

/// A place in a queue: the claim's order.
pub(crate) type Place = (Timestamp, JobId);

/// Commits within this time are not late: they are looked for below the floor by every claim.
const MARGIN: Duration = Duration::from_millis(500);
/// Shortest time between two sweeps of a queue.
const SWEEP_GAP: Duration = Duration::from_secs(2);
/// A sweep may take one in so many parts of the time.
const SWEEP_SHARE: u32 = 20;

/// What a process remembers of its queues.
#[derive(Default)]
pub(crate) struct Floors(Mutex<HashMap<QueueName, Queue>>);

#[derive(Clone, Default)]
struct Queue {
    floors: [Option<Place>; 4],
    sweep_tried: Option<Instant>,
    sweep_took: Duration,
}

/// What one claim saw.
pub(crate) struct Seen {
    /// The store's clock at the claim.
    pub(crate) now: Timestamp,
    /// Where each job stood.
    pub(crate) places: Vec<(Priority, Place)>,
    /// Whether the claim ended because nothing more was due.
    pub(crate) drained: bool,
}

impl Floors {
    /// The floors of a queue, as two arrays.
    pub(crate) fn of(&self, queue: &QueueName) -> ([Option<Timestamp>; 4], [Uuid; 4]) {
        let floors = self.with(queue, |q| q.floors);
        (floors.map(|f| f.map(|place| place.0)), floors.map(|f| f.map_or(Uuid::nil(), |place| *place.1.as_uuid())))
    }

    /// Raises and lowers floors by what a claim saw.
    pub(crate) fn learn(&self, queue: &QueueName, seen: &Seen) {
        let recent = (seen.now.minus(MARGIN), JobId::from_uuid(Uuid::nil()));
        self.with(queue, |q| {
            for (priority, floor) in Priority::ALL.into_iter().zip(&mut q.floors) {
                let smallest = seen.places.iter().filter(|(p, _)| *p == priority).map(|(_, place)| *place).min();
                match smallest {
                    Some(place) => *floor = Some(place.min(recent)),
                    None if seen.drained => *floor = Some(recent),
                    None => {}
                }
            }
        });
    }

    /// How far apart sweeps of this queue are, when it is time to try for one.
    pub(crate) fn sweep_due(&self, queue: &QueueName, manual_clock: bool) -> Option<Duration> {
        self.with(queue, |q| {
            let gap = SWEEP_GAP.max(q.sweep_took * SWEEP_SHARE);
            let due = manual_clock || q.sweep_tried.is_none_or(|tried| tried.elapsed() >= gap);
            due.then(|| {
                q.sweep_tried = Some(Instant::now());
                gap
            })
        })
    }

    /// Remembers how long a sweep took.
    pub(crate) fn swept(&self, queue: &QueueName, took: Duration) {
        self.with(queue, |q| q.sweep_took = took);
    }

    fn with<T>(&self, queue: &QueueName, f: impl FnOnce(&mut Queue) -> T) -> T {
        // A panic while the lock was held leaves floors that are merely old: the sweep mends that.
        let mut queues = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(queues.entry(queue.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, n: u8) -> Place {
        (Timestamp::from_micros(seconds * 1_000_000), JobId::from_parts(Timestamp::EPOCH, [n; 10]))
    }

    fn floor_of(floors: &Floors, p: Priority) -> Option<Timestamp> {
        floors.of(&QueueName::default()).0[usize::from(p.get())]
    }

    #[test]
    fn a_bulk_of_one_moment_still_has_a_floor_inside() {
        let floors = Floors::default();
        let places = vec![(Priority::NORMAL, at(10, 8)), (Priority::NORMAL, at(10, 7))];
        floors.learn(&QueueName::default(), &Seen { now: at(20, 0).0, places, drained: false });
        let (times, jobs) = floors.of(&QueueName::default());
        assert_eq!((times[2], jobs[2]), (Some(at(10, 0).0), *at(10, 7).1.as_uuid()));
        assert_eq!(times[0], None, "a priority that was not looked at keeps no floor");
    }

    #[test]
    fn what_was_committed_just_now_is_never_below_the_floor() {
        let floors = Floors::default();
        let seen = Seen { now: at(20, 0).0, places: vec![(Priority::LOW, at(20, 9))], drained: true };
        floors.learn(&QueueName::default(), &seen);
        let recent = at(20, 0).0.minus(MARGIN);
        assert_eq!((floor_of(&floors, Priority::LOW), floor_of(&floors, Priority::HIGH)), (Some(recent), Some(recent)));
    }

    #[test]
    fn a_sweep_that_finds_something_lowers_the_floor() {
        let floors = Floors::default();
        for seconds in [100, 50] {
            let places = vec![(Priority::NORMAL, at(seconds, 1))];
            floors.learn(&QueueName::default(), &Seen { now: at(200, 0).0, places, drained: false });
        }
        assert_eq!(floor_of(&floors, Priority::NORMAL), Some(at(50, 0).0));
    }

    #[test]
    fn slow_sweeps_are_further_apart() {
        let floors = Floors::default();
        let queue = QueueName::default();
        assert_eq!(floors.sweep_due(&queue, false), Some(SWEEP_GAP));
        assert_eq!(floors.sweep_due(&queue, false), None, "not twice at once");
        floors.swept(&queue, Duration::from_secs(1));
        assert_eq!(floors.sweep_due(&queue, true), Some(Duration::from_secs(20)));
    }
}
