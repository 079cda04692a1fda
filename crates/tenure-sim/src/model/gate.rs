//! Permits of a gate: at most so many jobs at once. Small and by itself.
//!
//! ```text
//!   claim: fold gate_event by delete … returning, then in_use + 1 ≤ limit ──► lease
//!   ending, loss: insert a gate_event ◄── from the attempt really inserted, never from the report
//! ```
//!
//! The gate row is written by claims only; endings insert events of their own, so no ending waits for another. I6: what is
//! in use, less the events that are not folded yet, is what live leases hold.

use super::crew::{Act, Crew, Place};
use super::invariant::Invariant;
use super::search::Machine;

/// Jobs at once.
const LIMIT: u8 = 1;

/// One gate, two jobs, two workers.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// What is broken.
    pub mutant: Option<GateMutant>,
}

/// Ways to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMutant {
    /// rails/solid_queue#761: a stale finisher gives the permit back once more, and a job of limit 1 ran 11 times at once.
    PermitFromInput,
    /// ATTACK, 126 violations: events are summed by a plain select, and deleted by another statement.
    FoldInTwoSteps,
}

/// The gate's row, its events, and the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gated {
    crew: Crew,
    in_use: i8,
    events: i8,
    /// A sum that was read and not yet written (a mutant's).
    read: Option<i8>,
}

/// What happens at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateStep(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Crew(Act),
    Reads,
    Writes,
}

impl GateMutant {
    /// Every one; I6 must notice.
    pub const ALL: &[(Self, &str)] = &[
        (Self::PermitFromInput, "stale finisher gives a permit back (solid_queue#761)"),
        (Self::FoldInTwoSteps, "events summed and deleted apart (ATTACK, 126)"),
    ];
}

impl Machine for Gate {
    type State = Gated;
    type Step = GateStep;

    fn start(&self) -> Gated {
        Gated { crew: Crew::new(), in_use: 0, events: 0, read: None }
    }

    fn steps(&self, state: &Gated, next: &mut Vec<GateStep>) {
        let free = state.in_use - state.events < LIMIT as i8;
        let acts = state.crew.acts().into_iter().filter(|act| free || !matches!(act, Act::Claim { .. }));
        next.extend(acts.map(|act| GateStep(What::Crew(act))));
        if self.mutant == Some(GateMutant::FoldInTwoSteps) {
            next.push(GateStep(if state.read.is_some() { What::Writes } else { What::Reads }));
        }
    }

    fn take(&self, state: &mut Gated, step: GateStep) -> Result<(), Invariant> {
        match step.0 {
            What::Crew(act) => {
                let changed = state.crew.take(act);
                let from_input = self.mutant == Some(GateMutant::PermitFromInput);
                match act {
                    Act::Claim { .. } => {
                        state.in_use += 1 - std::mem::take(&mut state.events);
                    }
                    Act::Finish { .. } | Act::Lose { .. } => state.events += i8::from(changed || from_input),
                }
            }
            What::Reads => state.read = Some(state.events),
            What::Writes => {
                state.in_use -= state.read.take().unwrap_or(0);
                state.events = 0;
            }
        }
        let held = state.crew.count(Place::Held);
        let holds = state.in_use - state.events == held as i8 && held <= LIMIT;
        if holds { Ok(()) } else { Err(Invariant::I6) }
    }

    fn is_healthy(&self, _: &Gated, _: GateStep) -> bool {
        true
    }

    fn is_over(&self, state: &Gated) -> bool {
        state.crew.count(Place::Ended) == 2
    }

    fn tell(&self, _: &Gated, step: GateStep) -> String {
        match step.0 {
            What::Crew(act) => act.tell(),
            What::Reads => "a fold reads the sum of events".into(),
            What::Writes => "the fold writes the sum and deletes the events".into(),
        }
    }
}
