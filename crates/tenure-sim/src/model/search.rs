//! Visits every state a machine can reach, breadth first, and tells the shortest story that breaks a promise.
//!
//! Safety is asked at every step. Liveness is asked at the end, by walking back from the states where everything is
//! over, and only along *healthy* steps: nobody crashes, no reply is lost, no operator helps. A state from which no such
//! way leads to the end is a job that hangs.
//!
//! Nothing here is random and no order depends on a hash: the same machine gives the same numbers and the same story.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use super::invariant::Invariant;

/// Something that takes steps.
pub trait Machine {
    /// Everything there is to know; small, because there are millions.
    type State: Copy + Eq + Hash;
    /// What can happen.
    type Step: Copy + fmt::Debug;

    /// Where it begins.
    fn start(&self) -> Self::State;
    /// What can happen next.
    fn steps(&self, state: &Self::State, next: &mut Vec<Self::Step>);
    /// What a step does, or which promise it breaks.
    fn take(&self, state: &mut Self::State, step: Self::Step) -> Result<(), Invariant>;
    /// Whether a step needs neither a fault nor an operator.
    fn is_healthy(&self, state: &Self::State, step: Self::Step) -> bool;
    /// Whether everything has ended.
    fn is_over(&self, state: &Self::State) -> bool;
    /// The step as a line of a story, told by what came of it.
    fn tell(&self, state: &Self::State, step: Self::Step) -> String;
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Found<S> {
    /// States visited.
    pub states: usize,
    /// Steps between them.
    pub edges: usize,
    /// How long it took.
    pub took: Duration,
    /// The promise that breaks first; `None` when all of them hold.
    pub broken: Option<Broken<S>>,
}

/// A promise, and the shortest way to break it.
#[derive(Debug, Clone)]
pub struct Broken<S> {
    /// Which.
    pub invariant: Invariant,
    /// How it came to that; for `L` the way into the state that leads nowhere.
    pub trace: Vec<S>,
    /// The same for people.
    pub story: Vec<String>,
    /// States from which no healthy way leads to the end (`L` only).
    pub stuck: usize,
}

/// Searches the whole machine.
pub fn search<M: Machine>(machine: &M) -> Found<M::Step> {
    let began = Instant::now();
    let mut seen = Seen::new(machine.start());
    let mut healthy: Vec<(u32, u32)> = Vec::new();
    let (mut at, mut edges, mut next) = (0, 0, Vec::new());
    let end = |seen: &Seen<_, _>, edges, broken| Found { states: seen.all.len(), edges, took: began.elapsed(), broken };
    while at < seen.all.len() {
        let from = seen.all[at];
        next.clear();
        machine.steps(&from, &mut next);
        for step in next.iter().copied() {
            let mut state = from;
            edges += 1;
            if let Err(invariant) = machine.take(&mut state, step) {
                let trace = seen.trace(at, Some(step));
                return end(&seen, edges, Some(told(machine, invariant, trace, 0)));
            }
            let to = seen.enter(state, at, step);
            if to != at && machine.is_healthy(&from, step) {
                healthy.push((to as u32, at as u32));
            }
        }
        at += 1;
    }
    let stuck = find_stuck(&seen.all, &healthy, |state| machine.is_over(state));
    let broken = stuck.first().map(|first| told(machine, Invariant::L, seen.trace(*first, None), stuck.len()));
    end(&seen, edges, broken)
}

fn told<M: Machine>(machine: &M, invariant: Invariant, trace: Vec<M::Step>, stuck: usize) -> Broken<M::Step> {
    let mut state = machine.start();
    let mut story = Vec::with_capacity(trace.len());
    for step in &trace {
        story.push(machine.tell(&state, *step));
        // The last one breaks the promise; there is nothing after it.
        let _ = machine.take(&mut state, *step);
    }
    Broken { invariant, trace, story, stuck }
}

/// The states, in the order of their visit, from which no healthy way leads to the end. `edges` are (to, from).
fn find_stuck<T>(all: &[T], edges: &[(u32, u32)], is_over: impl Fn(&T) -> bool) -> Vec<usize> {
    // Where the ways into each state begin in one list of all of them.
    let mut begins = vec![0_u32; all.len() + 1];
    edges.iter().for_each(|(to, _)| begins[*to as usize + 1] += 1);
    (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
    let (mut filled, mut froms) = (begins.clone(), vec![0_u32; edges.len()]);
    for (to, from) in edges {
        froms[filled[*to as usize] as usize] = *from;
        filled[*to as usize] += 1;
    }
    let mut good: Vec<bool> = all.iter().map(is_over).collect();
    let mut todo: Vec<usize> = (0..all.len()).filter(|state| good[*state]).collect();
    while let Some(to) = todo.pop() {
        for from in &froms[begins[to] as usize..begins[to + 1] as usize] {
            if !std::mem::replace(&mut good[*from as usize], true) {
                todo.push(*from as usize);
            }
        }
    }
    (0..all.len()).filter(|state| !good[*state]).collect()
}

/// States in the order of their first visit, each with the step that led there, and an index to find them again.
struct Seen<T, S> {
    all: Vec<T>,
    came: Vec<(u32, Option<S>)>,
    /// Places in `all` plus one; zero is free. At most half full.
    index: Vec<u32>,
}

impl<T: Copy + Eq + Hash, S: Copy> Seen<T, S> {
    fn new(start: T) -> Self {
        let mut seen = Self { all: vec![start], came: vec![(0, None)], index: vec![0; 1 << 10] };
        let place = seen.place(&start);
        seen.index[place] = 1;
        seen
    }

    /// The place of a state, which is new or known.
    fn enter(&mut self, state: T, from: usize, step: S) -> usize {
        let place = self.place(&state);
        if self.index[place] > 0 {
            return self.index[place] as usize - 1;
        }
        self.all.push(state);
        self.came.push((from as u32, Some(step)));
        self.index[place] = self.all.len() as u32;
        if self.all.len() * 2 > self.index.len() {
            self.index = vec![0; self.index.len() * 2];
            for at in 0..self.all.len() {
                let place = self.place(&self.all[at]);
                self.index[place] = at as u32 + 1;
            }
        }
        self.all.len() - 1
    }

    /// Where the index has this state, or a free place for it.
    fn place(&self, state: &T) -> usize {
        let mask = self.index.len() - 1;
        let mut hash = Mix(0);
        state.hash(&mut hash);
        let mut place = hash.finish() as usize & mask;
        while self.index[place] > 0 && self.all[self.index[place] as usize - 1] != *state {
            place = (place + 1) & mask;
        }
        place
    }

    fn trace(&self, at: usize, last: Option<S>) -> Vec<S> {
        let (mut at, mut steps) = (at, Vec::from_iter(last));
        while let (from, Some(step)) = self.came[at] {
            steps.push(step);
            at = from as usize;
        }
        steps.reverse();
        steps
    }
}

/// A hash without a key: fast, and nobody attacks it here.
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to four; five is a wall, and from three there may be no healthy way on.
    struct Counter {
        wall: bool,
        gap: bool,
    }

    impl Machine for Counter {
        type State = u8;
        type Step = u8;
        fn start(&self) -> u8 {
            0
        }
        fn steps(&self, state: &u8, next: &mut Vec<u8>) {
            if *state < 4 || self.wall {
                next.extend([1, 2]);
            }
        }
        fn take(&self, state: &mut u8, step: u8) -> Result<(), Invariant> {
            *state = (*state + step).min(5);
            if *state == 5 && self.wall { Err(Invariant::I1) } else { Ok(()) }
        }
        fn is_healthy(&self, state: &u8, _: u8) -> bool {
            !(self.gap && *state >= 3)
        }
        fn is_over(&self, state: &u8) -> bool {
            *state >= 4 && !self.gap || *state == 5
        }
        fn tell(&self, state: &u8, step: u8) -> String {
            format!("{state} + {step}")
        }
    }

    #[test]
    fn the_story_is_the_shortest_one() {
        let broken = search(&Counter { wall: true, gap: false }).broken.expect("five is a wall");
        assert_eq!((broken.invariant, broken.trace), (Invariant::I1, vec![1, 2, 2]));
        assert_eq!(broken.story, ["0 + 1", "1 + 2", "3 + 2"]);
    }

    #[test]
    fn a_machine_that_ends_is_visited_whole() {
        let found = search(&Counter { wall: false, gap: false });
        assert!(found.broken.is_none());
        assert_eq!((found.states, found.edges), (6, 8));
    }

    #[test]
    fn a_state_without_a_healthy_way_on_breaks_liveness() {
        let broken = search(&Counter { wall: false, gap: true }).broken.expect("three leads nowhere");
        // 4 is entered by a healthy step from 2 and leads nowhere, and so does everything that leads only there.
        assert_eq!((broken.invariant, broken.stuck, broken.trace.len()), (Invariant::L, 5, 0));
    }
}
