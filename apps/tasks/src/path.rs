//! The path of a worker with one slot: the loop's steps and its tasks' as the seed's one machine.
//!
//! A claim that took a task leads the loop back to Polling, where it waits, and the task through its own states. So the
//! task's stay is put in where it was claimed:
//!
//! ```text
//!   loop   … Polling ──► Claiming ─────────────────────────────────────────────► Polling ──► …
//!   task                     └──► Processing ──► ReportingSuccess ──► (free) ───────┘
//! ```
//!
//! One thing the merged path does not show: while the database is told of one task, the loop may look for the next one
//! already. No two tasks are ever processed at once by one slot; [`most_at_once`] counts that.

use crate::state::{State, Step};
use crate::trace::{Heard, Of};

/// The steps of a worker with one slot, in order.
pub fn merged(heard: &[Heard]) -> Vec<Step> {
    let loops: Vec<(usize, Step)> = heard
        .iter()
        .enumerate()
        .filter_map(|(place, heard)| match heard.of {
            Of::Loop { from, to } => Some((place, (from, to))),
            Of::Task { .. } => None,
        })
        .collect();
    let mut path = Vec::new();
    for (at, (_, step)) in loops.iter().enumerate() {
        let (State::Claiming, State::Polling) = step else {
            path.push(*step);
            continue;
        };
        // Taken between the look that found it and the loop's next step: before that there is no free slot to look for.
        let from = at.checked_sub(1).map_or(0, |before| loops[before].0);
        let until = loops.get(at + 1).map_or(heard.len(), |next| next.0);
        match heard[from..until].iter().position(takes) {
            None => path.push(*step),
            Some(after) => path.extend(stay(&heard[from + after..])),
        }
    }
    path
}

/// Whether a task is put into the slot by this step.
fn takes(heard: &Heard) -> bool {
    matches!(heard.of, Of::Task { from: None, to: Some(State::Processing), .. })
}

/// The stay of the task that is taken by the first of these steps, until the loop may look for more. It may come back.
fn stay(heard: &[Heard]) -> Vec<Step> {
    let Some(Heard { of: Of::Task { task: taken, .. }, .. }) = heard.first() else { return Vec::new() };
    let mut stay = Vec::new();
    for heard in heard {
        match &heard.of {
            Of::Task { task, from, to } if task == taken => {
                stay.push((from.unwrap_or(State::Claiming), to.unwrap_or(State::Polling)));
                if to.is_none() {
                    return stay;
                }
            }
            _ => {}
        }
    }
    stay
}

/// Steps that do not begin where the one before ended: a hole in what was heard.
pub fn holes(path: &[Step]) -> Vec<(Step, Step)> {
    path.windows(2).filter(|pair| pair[0].1 != pair[1].0).map(|pair| (pair[0], pair[1])).collect()
}

/// The most tasks that were processed at once.
pub fn most_at_once(heard: &[Heard]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for heard in heard {
        if let Of::Task { from, to, .. } = &heard.of {
            now = now.saturating_sub(usize::from(*from == Some(State::Processing)));
            now += usize::from(*to == Some(State::Processing));
            most = most.max(now);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use State::{Backoff, Claiming, Polling, Processing, ReportingFailure, ReportingSuccess};
    use tokio::time::Instant;

    use super::*;

    fn heard(steps: &[(&str, Option<State>, Option<State>)]) -> Vec<Heard> {
        let at = Instant::now();
        let of = |(task, from, to): &(&str, Option<State>, Option<State>)| match *task {
            "" => Of::Loop { from: from.unwrap(), to: to.unwrap() },
            task => Of::Task { task: task.into(), from: *from, to: *to },
        };
        steps.iter().map(|step| Heard { of: of(step), at }).collect()
    }

    /// The report of A is still on its way when the loop has claimed B; the one in the middle finds nothing to lease.
    #[test]
    fn a_tasks_stay_is_put_in_where_it_was_claimed() {
        let heard = heard(&[
            ("", Some(Polling), Some(Claiming)),
            ("", Some(Claiming), Some(Polling)),
            ("a", None, Some(Processing)),
            ("a", Some(Processing), Some(ReportingSuccess)),
            ("", Some(Polling), Some(Claiming)),
            ("", Some(Claiming), Some(Polling)),
            ("a", Some(ReportingSuccess), None),
            ("", Some(Polling), Some(Claiming)),
            ("b", None, Some(Processing)),
            ("", Some(Claiming), Some(Polling)),
            ("b", Some(Processing), Some(ReportingFailure)),
            ("", Some(Polling), Some(Backoff)),
            ("b", Some(ReportingFailure), None),
        ]);
        let path = merged(&heard);
        let states: Vec<State> = path.iter().map(|step| step.1).collect();
        assert_eq!(
            states,
            [
                Claiming,
                Processing,
                ReportingSuccess,
                Polling,
                Claiming,
                Polling,
                Claiming,
                Processing,
                ReportingFailure,
                Polling,
                Backoff
            ]
        );
        assert_eq!((holes(&path).len(), most_at_once(&heard)), (0, 1));
        assert_eq!(holes(&[(Polling, Claiming), (Polling, Backoff)]).len(), 1);
    }
}
