//! Every variant that is searched, and the table of what came out.

use std::fmt::Write;
use std::time::Duration;

use super::breaker::{Breaker, BreakerMutant};
use super::gate::{Gate, GateMutant};
use super::invariant::Invariant;
use super::lease::{Leases, Mutant, Rules, Store};
use super::run::{Run, RunMutant};
use super::schedule::{Schedule, ScheduleMutant};
use super::search::{Found, Machine, search};

/// The lease protocol as it is searched: two jobs, two workers; three leases are as many as anybody can know then.
pub type Searched = Leases<2, 2, 3>;

/// One machine to search.
pub struct Variant {
    /// Its line in the table.
    pub name: String,
    /// Which invariant must break; `None` where all must hold.
    pub expected: Option<Invariant>,
    run: Box<dyn Fn() -> Row>,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct Row {
    /// States visited.
    pub states: usize,
    /// Steps between them.
    pub edges: usize,
    /// How long it took.
    pub took: Duration,
    /// What broke, how, and how many states are stuck.
    pub broken: Option<(Invariant, Vec<String>, usize)>,
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Seconds: for tests.
    Near,
    /// A minute: `./x model`.
    Far,
}

/// Every variant: first those that must hold, then one mutant after the other.
pub fn variants(reach: Reach) -> Vec<Variant> {
    let (pg, lite) = (Rules::searched(Store::Postgres), Rules::searched(Store::Sqlite));
    let far = u8::from(reach == Reach::Far);
    let mut all = vec![
        lease("Postgres: retries and losses", Rules { max_losses: 1 + far, ..pg }),
        lease("Postgres: snoozed and released", Rules { excused_max: 1, max_attempts: 1 + far, ..pg }),
        lease("Postgres: requeued", Rules { requeues_max: 1, max_attempts: 1, ..pg }),
        lease("SQLite: all but requeued", Rules { max_losses: 2, excused_max: far, ..lite }),
        lease("SQLite: requeued", Rules { requeues_max: 1, max_attempts: 1 + far, ..lite }),
        Variant::new("a gate's permits", None, Gate { mutant: None }),
        Variant::new("a gate's breaker", None, Breaker { mutant: None }),
        Variant::new("a run, page by page", None, Run { mutant: None, losses_max: 1 + far }),
        Variant::new("a schedule's fires", None, Schedule { mutant: None }),
    ];
    for (mutant, invariant) in Mutant::ALL {
        let machine = Searched { rules: Rules::broken(*mutant) };
        all.push(Variant::new(mutant.name(), Some(*invariant), machine));
    }
    for (mutant, name) in GateMutant::ALL {
        all.push(Variant::new(name, Some(Invariant::I6), Gate { mutant: Some(*mutant) }));
    }
    for (mutant, name) in BreakerMutant::ALL {
        all.push(Variant::new(name, Some(Invariant::I11), Breaker { mutant: Some(*mutant) }));
    }
    for (mutant, name) in ScheduleMutant::ALL {
        all.push(Variant::new(name, Some(Invariant::I12), Schedule { mutant: Some(*mutant) }));
    }
    for (mutant, name) in RunMutant::ALL {
        all.push(Variant::new(name, Some(Invariant::I7), Run { mutant: Some(*mutant), losses_max: 1 }));
    }
    all
}

fn lease(name: &str, rules: Rules) -> Variant {
    Variant::new(name, None, Searched { rules })
}

impl Variant {
    fn new<M: Machine + 'static>(name: &str, expected: Option<Invariant>, machine: M) -> Self {
        Self { name: name.into(), expected, run: Box::new(move || search(&machine).into()) }
    }

    /// Searches it.
    pub fn run(&self) -> Row {
        (self.run)()
    }
}

impl Row {
    /// What broke.
    pub fn invariant(&self) -> Option<Invariant> {
        self.broken.as_ref().map(|(invariant, ..)| *invariant)
    }

    /// The line of the table, and under it the story of what broke.
    pub fn tell(&self, variant: &Variant) -> String {
        let (states, edges, seconds) = (self.states, self.edges, self.took.as_secs_f64());
        let result = match &self.broken {
            None => "holds, 0 states without a way to the end".into(),
            Some((invariant, _, 0)) => format!("breaks {invariant}: {}", invariant.says()),
            Some((invariant, _, stuck)) => format!("breaks {invariant}: {}; {stuck} states do not", invariant.says()),
        };
        let wrong = if self.invariant() == variant.expected { "" } else { "   NOT AS EXPECTED" };
        let mut text = format!("{:<53} {states:>9} {edges:>10} {seconds:>7.2}  {result}{wrong}", variant.name);
        let story = self.broken.iter().flat_map(|(_, story, _)| story).enumerate();
        for (at, line) in story {
            let _ = write!(text, "\n    {:>2}. {line}", at + 1);
        }
        text
    }

    /// The head of the table.
    pub fn head() -> String {
        format!("{:<53} {:>9} {:>10} {:>7}  result", "variant", "states", "edges", "seconds")
    }
}

impl<S> From<Found<S>> for Row {
    fn from(found: Found<S>) -> Self {
        let broken = found.broken.map(|broken| (broken.invariant, broken.story, broken.stuck));
        Self { states: found.states, edges: found.edges, took: found.took, broken }
    }
}
