//! What a process remembers of the lines of its queues: which have work, and whose turn it is.
//!
//! Looking for lines costs a probe for each of them, so it is done at most a twentieth of the time, and at once when the
//! known ones had nothing. Nothing here is trusted: the claim itself looks again, under the gates' locks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::turns::{Share, Turns};
use tenure_core::{Line, QueueName};

/// Shortest time between two looks while the known lines have work.
const LOOK_GAP: Duration = Duration::from_millis(20);
/// A look may take one in so many parts of the time.
const LOOK_SHARE: u32 = 20;
/// When a gate is tried again that is closed by jobs inside it.
const FULL_RETRY: Duration = Duration::from_millis(50);
/// Shortest time: a claim that has just asked does not ask again.
const CLOSED_MIN: Duration = Duration::from_micros(1);
/// Longest time that a gate is left alone: somebody may resume it, or change its rule.
const CLOSED_MAX: Duration = Duration::from_secs(1);

/// The lines of all queues.
pub struct Lines {
    queues: Mutex<HashMap<QueueName, Queue>>,
    began: Instant,
    /// Somebody else moves the store's clock: nothing of ours tells how long a gate stays closed.
    manual: bool,
}

/// Most lines one look finds. Where there are more, the next look goes on behind them.
pub const LOOK_LINES_MAX: usize = 1_000;

#[derive(Default)]
struct Queue {
    turns: Turns,
    lined: bool,
    /// Where the last look stopped, if there was more.
    at: Option<Line>,
    looked: Option<Instant>,
    look_took: Duration,
}

/// What a claim learnt of one line it had a share of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Its share.
    pub share: Share,
    /// Jobs taken.
    pub took: u32,
    /// Its gate lets no more through: for this long, or nobody knows how long.
    pub closed: Option<Option<Duration>>,
}

impl Lines {
    /// None known. With a `manual` clock lines are looked for at every claim, and closed ones are tried once in each.
    pub fn new(manual: bool) -> Self {
        Self { queues: Mutex::default(), began: Instant::now(), manual }
    }

    /// Whether a claim has seen that this queue has lines.
    pub fn is_lined(&self, queue: &QueueName) -> bool {
        self.with(queue, |q| q.lined)
    }

    /// A claim has seen it.
    pub fn set_lined(&self, queue: &QueueName) {
        self.with(queue, |q| q.lined = true);
    }

    /// Whether it is time to look which lines have work.
    pub fn look_due(&self, queue: &QueueName) -> bool {
        self.with(queue, |q| {
            let gap = LOOK_GAP.max(q.look_took * LOOK_SHARE);
            self.manual || q.looked.is_none_or(|looked| looked.elapsed() >= gap)
        })
    }

    /// The line behind which a look begins; the first is before all of them.
    pub fn look_after(&self, queue: &QueueName) -> Option<Line> {
        self.with(queue, |q| q.at.clone())
    }

    /// These lines behind `after` have work, with their weights; the look stopped there, if there was more, and took so long.
    pub fn learn(
        &self,
        queue: &QueueName,
        after: Option<&Line>,
        found: Vec<(Line, u32)>,
        stopped: Option<Line>,
        took: Duration,
    ) {
        self.with(queue, |q| {
            q.at = stopped;
            match after.is_none() && q.at.is_none() {
                true => q.turns.learn(found),
                false => q.turns.add(found),
            }
            (q.looked, q.look_took) = (Some(Instant::now()), took);
        });
    }

    /// Divides a claim among the lines whose turn it is. A claim that goes through several rounds names the moment it began
    /// ([`Lines::now`]) in all of them: a line that it found closed is not asked twice, however short that was.
    pub fn share(&self, queue: &QueueName, limit: u32, began: u64) -> Vec<Share> {
        self.with(queue, |q| q.turns.share(limit, began))
    }

    /// Somebody has seen that the gate of a line is open.
    pub fn opened(&self, queue: &QueueName, line: &Line) {
        self.with(queue, |q| q.turns.closed(line, 0));
    }

    /// Remembers what became of a claim; a line with less than its share has no more.
    pub fn served(&self, queue: &QueueName, served: &[Served]) {
        self.with(queue, |q| {
            for Served { share, took, closed } in served {
                q.turns.took(&share.line, *took);
                match closed {
                    // Until the next look, which comes with the next claim.
                    Some(_) if self.manual => q.turns.emptied(&share.line),
                    Some(time) => q.turns.closed(
                        &share.line,
                        self.now() + micros(time.unwrap_or(FULL_RETRY).clamp(CLOSED_MIN, CLOSED_MAX)),
                    ),
                    None if *took < share.jobs => q.turns.emptied(&share.line),
                    None => {}
                }
            }
        });
    }

    /// How long until a closed line with work may open.
    pub fn opens_in(&self, queue: &QueueName) -> Option<Duration> {
        let now = self.now();
        self.with(queue, |q| q.turns.opens_at(now)).map(|at| Duration::from_micros(at - now))
    }

    /// The moment a claim begins, for [`Lines::share`].
    pub fn now(&self) -> u64 {
        if self.manual { 0 } else { micros(self.began.elapsed()) }
    }

    fn with<T>(&self, queue: &QueueName, f: impl FnOnce(&mut Queue) -> T) -> T {
        // A panic while the lock was held leaves turns that are merely unfair: the next look mends that.
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        f(queues.entry(queue.clone()).or_default())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(lines: &Lines, took: u32, closed: Option<Option<Duration>>) {
        let queue = QueueName::default();
        let share = lines.share(&queue, 4, lines.now()).remove(0);
        lines.served(&queue, &[Served { share, took, closed }]);
    }

    fn with_one_line() -> Lines {
        let lines = Lines::new(false);
        lines.learn(&QueueName::default(), None, vec![(Line::from_store("/a"), 1)], None, Duration::ZERO);
        lines
    }

    #[test]
    fn a_line_that_had_less_than_its_share_is_not_asked_again() {
        let lines = with_one_line();
        served(&lines, 4, None);
        assert_eq!(lines.share(&QueueName::default(), 4, lines.now()).len(), 1);
        served(&lines, 3, None);
        assert_eq!(lines.share(&QueueName::default(), 4, lines.now()), []);
    }

    #[test]
    fn a_closed_line_says_when_it_may_open_and_is_asked_again_soon() {
        let lines = with_one_line();
        served(&lines, 1, Some(Some(Duration::from_secs(3_600))));
        assert_eq!(lines.share(&QueueName::default(), 4, lines.now()), []);
        assert!(lines.opens_in(&QueueName::default()).is_some_and(|time| time <= CLOSED_MAX), "somebody may resume it");
        lines.opened(&QueueName::default(), &Line::from_store("/a"));
        assert_eq!(
            (lines.share(&QueueName::default(), 4, lines.now()).len(), lines.opens_in(&QueueName::default())),
            (1, None)
        );
    }

    #[test]
    fn a_line_is_asked_once_in_a_claim_however_soon_it_may_open() {
        let (lines, began) = (with_one_line(), 0);
        served(&lines, 0, Some(Some(Duration::ZERO)));
        assert_eq!(lines.share(&QueueName::default(), 4, began), []);
    }

    #[test]
    fn a_look_that_finds_as_many_as_it_can_goes_on_behind_them() {
        let (lines, queue) = (Lines::new(true), QueueName::default());
        let page =
            |from: usize, n: usize| (from..from + n).map(|i| (Line::from_store(&format!("{i:05}")), 1)).collect();
        let last = Line::from_store("00999");
        lines.learn(&queue, None, page(0, LOOK_LINES_MAX), Some(last), Duration::ZERO);
        let after = lines.look_after(&queue);
        assert_eq!(after.as_ref().map(Line::as_str), Some("00999"));
        lines.learn(&queue, after.as_ref(), page(1_000, 7), None, Duration::ZERO);
        assert_eq!((lines.look_after(&queue), lines.share(&queue, 5_000, 0).len()), (None, 1_007));
    }

    #[test]
    fn slow_looks_are_further_apart() {
        let lines = with_one_line();
        assert!(!lines.look_due(&QueueName::default()), "it has just looked");
        lines.learn(&QueueName::default(), None, Vec::new(), None, Duration::from_secs(1));
        assert!(!lines.look_due(&QueueName::default()));
        assert!(Lines::new(true).look_due(&QueueName::default()), "with a manual clock it always looks");
    }
}
