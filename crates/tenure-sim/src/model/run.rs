//! Fan-in of a run: the parent opens once, after the last child. A model of what is to be built (DESIGN, runs), small and
//! by itself.
//!
//! ```text
//!   child ends ──► run_event ──fold: delete … returning──► ended = n of n ──► open the parent where it still waits
//!        ▲ from the attempt really inserted, never from the report
//! ```
//!
//! I7: what is counted, with the events that are not folded yet, is the children that ended; the parent opens once, and
//! not before all of them.

use super::crew::{Act, Crew, Place};
use super::invariant::Invariant;
use super::search::Machine;

/// One run with two children.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// What is broken.
    pub mutant: Option<RunMutant>,
}

/// Ways to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMutant {
    /// A counter moved by the report: rails/solid_queue#761's stale finisher, at a fan-in.
    CountFromInput,
    /// Whoever sees the last child opens the parent, and two may see it.
    OpenUnguarded,
}

/// The run's row, its events, and the children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fanned {
    crew: Crew,
    counted: u8,
    events: u8,
    /// How often the parent was opened.
    opened: u8,
}

/// What happens in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStep(What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Crew(Act),
    Fold,
}

impl RunMutant {
    /// Every one; I7 must notice.
    pub const ALL: &[(Self, &str)] = &[
        (Self::CountFromInput, "stale child is counted again (solid_queue#761)"),
        (Self::OpenUnguarded, "two folds open the parent"),
    ];
}

impl Machine for Run {
    type State = Fanned;
    type Step = RunStep;

    fn start(&self) -> Fanned {
        Fanned { crew: Crew::new(), counted: 0, events: 0, opened: 0 }
    }

    fn steps(&self, state: &Fanned, next: &mut Vec<RunStep>) {
        next.extend(state.crew.acts().into_iter().map(|act| RunStep(What::Crew(act))));
        next.push(RunStep(What::Fold));
    }

    fn take(&self, state: &mut Fanned, step: RunStep) -> Result<(), Invariant> {
        match step.0 {
            What::Crew(act) => {
                let changed = state.crew.take(act);
                let counts = changed || self.mutant == Some(RunMutant::CountFromInput);
                state.events += u8::from(matches!(act, Act::Finish { .. }) && counts);
            }
            What::Fold => {
                state.counted += std::mem::take(&mut state.events);
                let waits = state.opened == 0 || self.mutant == Some(RunMutant::OpenUnguarded);
                state.opened += u8::from(state.counted >= 2 && waits);
            }
        }
        let ended = state.crew.count(Place::Ended);
        let holds = state.counted + state.events == ended && state.opened <= u8::from(ended == 2);
        if holds { Ok(()) } else { Err(Invariant::I7) }
    }

    fn is_healthy(&self, _: &Fanned, _: RunStep) -> bool {
        true
    }

    fn is_over(&self, state: &Fanned) -> bool {
        state.opened == 1
    }

    fn tell(&self, _: &Fanned, step: RunStep) -> String {
        match step.0 {
            What::Crew(act) => act.tell(),
            What::Fold => "a fold counts the events".into(),
        }
    }
}
