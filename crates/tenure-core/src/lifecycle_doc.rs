//! `docs/LIFECYCLE.md`, written from the tables themselves so that it cannot lie.
//!
//! A test compares the file with [`render`]; `./x generate` writes it.

use std::fmt::{Debug, Write};

use crate::lifecycle::{self, EventKind, How};
use crate::{duration, slot, worker_loop};

/// The whole page, in Markdown.
pub fn render() -> String {
    let job = Machine::new(&lifecycle::State::ALL, &EventKind::ALL, lifecycle::State::as_str, lifecycle::next);
    let worker =
        Machine::new(&worker_loop::State::ALL, &worker_loop::Event::ALL, worker_loop::State::as_str, worker_loop::next);
    let slot = Machine::new(&slot::State::ALL, &slot::Event::ALL, slot::State::as_str, slot::next);
    let terminal = lifecycle::State::ALL.into_iter().filter(|s| s.is_terminal()).map(lifecycle::State::as_str);
    [
        INTRO.to_owned(),
        job.diagram(&["waiting", "queued"], &terminal.collect::<Vec<_>>()),
        GRID.to_owned(),
        job.grid(),
        ENDINGS.to_owned(),
        endings(),
        LOOP.to_owned() + &format!("The error wait is {}.\n", duration::format(worker_loop::ERROR_WAIT)),
        worker.diagram(&[worker_loop::State::Startup.as_str()], &[worker_loop::State::Stopped.as_str()]),
        worker.list(),
        SLOT.to_owned(),
        slot.diagram(&[slot::State::Free.as_str()], &[]),
        slot.list(),
    ]
    .join("\n")
}

const INTRO: &str = "\
# Lifecycle

<!-- Generated from tenure-core by `./x generate`. Do not edit. -->

Every job goes through one lifecycle, whatever its queue, its store or the language of its worker.
The table is `next` in `crates/tenure-core/src/lifecycle.rs`, and this page is generated from it.
What is not in the table is refused and changes nothing.

A job begins as `queued`, or as `waiting` when something else has to open it.
A worker's claim makes it `running` under a lease, and the lease's number is the fence of everything the worker says.
`succeeded`, `failed`, `dead` and `canceled` are terminal: only an operator's requeue leads on.
A `succeeded` job is never requeued.
";

const GRID: &str = "\
## Every event in every state

Events down, states across, the new state where they meet.
An empty field is a refusal.
";

const ENDINGS: &str = "\
## How an attempt ends

Each ending is one row of the `attempt` table, stored by its code.
An attempt that is not charged gives its number back; a lost one is counted as a loss instead.
A final ending ends the job as well.
";

const LOOP: &str = "\
## The worker's loop

A worker process is one loop and a number of slots.
The loop finds and claims jobs, and never exits by itself: losing the database is `error_wait` and then a new try.
A loop whose slots are all taken stays in `polling` until one is free.
The first signal to stop is `Drain`; a second one stops at once.
";

const SLOT: &str = "\
## A slot

This is one job's stay in a slot: it begins when the loop's `Claim` was committed, and ends when the store has answered its report.
While it is reported the slot may run its next job already; never do more handlers run than there are slots.
A job whose lease was lost is reported like any other, and refused.
When the store gives no answer until the lease's end, the stay breaks off and what became of the report is unknown.
";

/// A transition table, as text.
struct Machine {
    states: Vec<&'static str>,
    events: Vec<String>,
    /// From, event and to, as positions in the two lists.
    steps: Vec<(usize, usize, usize)>,
}

impl Machine {
    fn new<S: Copy + PartialEq, E: Copy + Debug>(
        states: &[S],
        events: &[E],
        word: fn(S) -> &'static str,
        next: fn(S, E) -> Option<S>,
    ) -> Self {
        let mut steps = Vec::new();
        for (from, state) in states.iter().enumerate() {
            for (event, kind) in events.iter().enumerate() {
                let to = next(*state, *kind).and_then(|to| states.iter().position(|s| *s == to));
                steps.extend(to.map(|to| (from, event, to)));
            }
        }
        let events = events.iter().map(|event| format!("{event:?}")).collect();
        Self { states: states.iter().map(|state| word(*state)).collect(), events, steps }
    }

    /// A Mermaid picture: one arrow for each pair of states, with every event that leads along it.
    fn diagram(&self, first: &[&str], last: &[&str]) -> String {
        let mut lines = vec!["```mermaid".to_owned(), "stateDiagram-v2".to_owned()];
        lines.extend(first.iter().map(|state| format!("    [*] --> {state}")));
        for (from, from_word) in self.states.iter().enumerate() {
            for (to, to_word) in self.states.iter().enumerate() {
                let along = self.steps.iter().filter(|step| (step.0, step.2) == (from, to));
                let events: Vec<&str> = along.map(|step| self.events[step.1].as_str()).collect();
                if !events.is_empty() {
                    lines.push(format!("    {from_word} --> {to_word}: {}", events.join(", ")));
                }
            }
        }
        lines.extend(last.iter().map(|state| format!("    {state} --> [*]")));
        lines.push("```\n".to_owned());
        lines.join("\n")
    }

    /// A field for every pair.
    fn grid(&self) -> String {
        let header = ["event"].into_iter().chain(self.states.iter().copied());
        let rows = self.events.iter().enumerate().map(|(event, name)| {
            let field = |from| {
                let step = self.steps.iter().find(|step| (step.0, step.1) == (from, event));
                step.map_or(String::new(), |step| self.states[step.2].to_owned())
            };
            [format!("`{name}`")].into_iter().chain((0..self.states.len()).map(field)).collect()
        });
        table(&header.collect::<Vec<_>>(), rows)
    }

    /// A row for every event and what it leads to, for machines too wide for a grid.
    fn list(&self) -> String {
        let mut rows: Vec<(usize, usize, Vec<&str>)> = Vec::new();
        for (from, event, to) in &self.steps {
            match rows.iter_mut().find(|row| (row.0, row.1) == (*event, *to)) {
                Some(row) => row.2.push(self.states[*from]),
                None => rows.push((*event, *to, vec![self.states[*from]])),
            }
        }
        rows.sort_by_key(|row| row.0);
        let rows = rows.into_iter().map(|(event, to, from)| {
            vec![format!("`{}`", self.events[event]), from.join(", "), self.states[to].to_owned()]
        });
        table(&["event", "from", "to"], rows)
    }
}

fn endings() -> String {
    let yes = |fact: bool| if fact { "yes" } else { "no" }.to_owned();
    let rows = How::ALL.into_iter().map(|how| {
        vec![
            format!("`{}`", how.as_str()),
            how.code().to_string(),
            how.leads_to().as_str().to_owned(),
            yes(!how.is_uncharged()),
            yes(how.is_final()),
        ]
    });
    table(&["ending", "code", "leads to", "charged", "final"], rows)
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_the_lifecycle_is_in_the_picture_and_in_the_table() {
        let page = render();
        assert!(page.contains("    running --> queued: Snooze, Release, Lose\n"), "{page}");
        assert!(page.contains("| `Requeue` |  |  |  |  |  | queued | queued | queued |\n"), "{page}");
        assert!(page.contains("| `lost` | 8 | queued | no | no |\n"), "{page}");
        assert!(page.contains("| `Stop` | draining | stopped |\n"), "{page}");
    }

    #[test]
    fn a_line_of_prose_is_one_sentence() {
        for line in render().lines().filter(|line| line.ends_with('.')) {
            assert!(!line.contains(". "), "{line}");
        }
    }
}
