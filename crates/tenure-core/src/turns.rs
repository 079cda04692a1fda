//! Whose turn it is: the lines of one queue, served in turn by weight.
//!
//! Each line has a *pass*, which grows by `STRIDE / weight` with every job taken from it; the smallest pass is next. A
//! line that comes (back) starts where the others are: waiting alone earns nothing, and a single job in a new line goes
//! before the next job of a line with a million.
//!
//! What is kept here is a process's own memory of lines that had work. It may be old: a line that turns out empty is
//! forgotten until it is seen again, one that turns out closed is left alone until it may open. The store decides what
//! is really taken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use crate::line::Line;

/// What a pass grows by for a job of weight 1.
const STRIDE: u64 = 1 << 20;

/// The lines of one queue.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    lines: BTreeMap<Line, Turn>,
    /// The pass of the last line served: where a newcomer starts.
    now: u64,
}

#[derive(Debug, Clone)]
struct Turn {
    weight: u32,
    pass: u64,
    has_work: bool,
    /// In the caller's microseconds.
    closed_until: u64,
}

/// One line's share of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Which.
    pub line: Line,
    /// At most so many jobs.
    pub jobs: u32,
}

impl Turns {
    /// Lines that have work, and the weight of each. Those not named have none.
    pub fn learn(&mut self, found: impl IntoIterator<Item = (Line, u32)>) {
        for turn in self.lines.values_mut() {
            turn.has_work = false;
        }
        self.add(found);
        // A line that was served ahead of the others stays known until they have caught up, or it could be born again.
        let now = self.now;
        self.lines.retain(|_, turn| turn.has_work || turn.pass > now);
    }

    /// Further lines that have work.
    pub fn add(&mut self, found: impl IntoIterator<Item = (Line, u32)>) {
        let now = self.now;
        for (line, weight) in found {
            let new = || Turn { weight, pass: now, has_work: false, closed_until: 0 };
            let turn = self.lines.entry(line).or_insert_with(new);
            (turn.weight, turn.has_work, turn.pass) = (weight.max(1), true, turn.pass.max(now));
        }
    }

    /// Divides `limit` jobs among the lines that may have some at `now`, in the order of their turns. Of the lines that
    /// lead through one gate only the first gets a share: the others' turn comes next time.
    pub fn share(&self, limit: u32, now: u64) -> Vec<Share> {
        let open = self.lines.iter().filter(|(_, turn)| turn.has_work && turn.closed_until <= now);
        let mut heap: BinaryHeap<Reverse<(u64, &Line)>> = open.map(|(line, turn)| Reverse((turn.pass, line))).collect();
        let (mut shares, mut gates): (Vec<Share>, HashSet<&str>) = (Vec::new(), HashSet::new());
        let mut left = limit;
        while left > 0
            && let Some(Reverse((pass, line))) = heap.pop()
        {
            match shares.iter_mut().find(|share| share.line == *line) {
                Some(share) => share.jobs += 1,
                None if line.gate().is_some_and(|gate| !gates.insert(gate)) => continue,
                None => shares.push(Share { line: line.clone(), jobs: 1 }),
            }
            left -= 1;
            heap.push(Reverse((pass + STRIDE / u64::from(self.lines[line].weight), line)));
        }
        shares
    }

    /// So many jobs were taken from a line.
    pub fn took(&mut self, line: &Line, jobs: u32) {
        let Some(turn) = self.lines.get_mut(line).filter(|_| jobs > 0) else { return };
        self.now = self.now.max(turn.pass);
        turn.pass += STRIDE / u64::from(turn.weight) * u64::from(jobs);
    }

    /// A line had less than its share.
    pub fn emptied(&mut self, line: &Line) {
        if let Some(turn) = self.lines.get_mut(line) {
            turn.has_work = false;
        }
    }

    /// A line's gate lets nothing through before `until`.
    pub fn closed(&mut self, line: &Line, until: u64) {
        if let Some(turn) = self.lines.get_mut(line) {
            turn.closed_until = until;
        }
    }

    /// When the first closed line with work may open.
    pub fn opens_at(&self, now: u64) -> Option<u64> {
        let closed = self.lines.values().filter(|turn| turn.has_work && turn.closed_until > now);
        closed.map(|turn| turn.closed_until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lines: &[(&str, u32)]) -> Turns {
        let mut turns = Turns::default();
        turns.learn(lines.iter().map(|(line, weight)| (Line::from_store(line), *weight)));
        turns
    }

    /// Takes all shares; answers how many jobs each line got.
    fn serve(turns: &mut Turns, limit: u32) -> Vec<(String, u32)> {
        let shares = turns.share(limit, 0);
        shares.iter().for_each(|share| turns.took(&share.line, share.jobs));
        shares.into_iter().map(|share| (share.line.to_string(), share.jobs)).collect()
    }

    #[test]
    fn lines_are_served_in_turn_by_weight() {
        let mut turns = turns(&[("1", 1), ("2", 3)]);
        assert_eq!(serve(&mut turns, 8), [("1".to_owned(), 2), ("2".to_owned(), 6)]);
        let mut served = BTreeMap::<String, u32>::new();
        for _ in 0..400 {
            serve(&mut turns, 1).into_iter().for_each(|(line, jobs)| *served.entry(line).or_default() += jobs);
        }
        assert_eq!((served["1"], served["2"]), (100, 300));
    }

    #[test]
    fn a_newcomer_is_next_and_earns_nothing_by_having_waited() {
        let mut turns = turns(&[("1", 1)]);
        serve(&mut turns, 200);
        serve(&mut turns, 200);
        turns.learn([(Line::from_store("1"), 1), (Line::from_store("2"), 1)]);
        assert_eq!(serve(&mut turns, 1), [("2".to_owned(), 1)]);
        turns.emptied(&Line::from_store("2"));
        for _ in 0..100 {
            assert_eq!(serve(&mut turns, 10), [("1".to_owned(), 10)]);
        }
        turns.learn([(Line::from_store("1"), 1), (Line::from_store("2"), 1)]);
        let mut of_2 = 0;
        for _ in 0..10 {
            of_2 += serve(&mut turns, 10).iter().filter(|(line, _)| line == "2").map(|(_, jobs)| jobs).sum::<u32>();
        }
        assert!((50..=60).contains(&of_2), "{of_2} of 100");
    }

    #[test]
    fn leaving_and_coming_back_is_no_way_to_the_front() {
        let mut turns = turns(&[("1", 1), ("2", 1)]);
        turns.took(&Line::from_store("1"), 100);
        for _ in 0..3 {
            turns.learn([(Line::from_store("2"), 1)]);
            turns.learn([(Line::from_store("1"), 1), (Line::from_store("2"), 1)]);
        }
        assert_eq!(serve(&mut turns, 50), [("2".to_owned(), 50)]);
    }

    #[test]
    fn of_one_gate_only_one_line_gets_a_share_and_the_other_comes_next() {
        let mut turns = turns(&[("1/a", 1), ("2/a", 1), ("3/b", 1)]);
        assert_eq!(serve(&mut turns, 4), [("1/a".to_owned(), 2), ("3/b".to_owned(), 2)]);
        assert_eq!(serve(&mut turns, 1), [("2/a".to_owned(), 1)]);
    }

    #[test]
    fn a_turn_that_gave_nothing_was_none() {
        let mut turns = turns(&[("1/a", 1), ("2/a", 1)]);
        assert_eq!(serve(&mut turns, 1), [("1/a".to_owned(), 1)]);
        turns.took(&Line::from_store("1/a"), 0);
        turns.learn([(Line::from_store("1/a"), 1), (Line::from_store("2/a"), 1)]);
        assert_eq!(serve(&mut turns, 1), [("2/a".to_owned(), 1)]);
    }

    #[test]
    fn a_closed_line_is_left_alone_until_it_may_open() {
        let mut turns = turns(&[("/a", 1), ("/b", 1)]);
        turns.closed(&Line::from_store("/a"), 500);
        assert_eq!(turns.share(2, 499).len(), 1);
        assert_eq!(turns.opens_at(499), Some(500));
        assert_eq!((turns.share(2, 500).len(), turns.opens_at(500)), (2, None));
    }
}
