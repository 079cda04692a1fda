//! Endpoints that fail, for the log: one line when an endpoint begins to fail, one a minute while it does, and one when it
//! takes a delivery again. An endpoint that changes its mind has at most two lines a minute. A line for each failed try
//! would be as many as its tenant has jobs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::EndpointId;
use tokio::time::Instant;

/// How often an endpoint that fails is told of.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);
/// Most lines about one endpoint in that time.
const LINES_MAX: u32 = 2;
/// Most endpoints that are remembered; beyond them the one that failed last is forgotten, and told of anew.
const ENDPOINTS_MAX: usize = 10_000;

/// Endpoints that failed, and those that failed within the last minute or so and recovered.
#[derive(Default)]
pub(crate) struct Failing(Mutex<HashMap<EndpointId, Streak>>);

/// Failed tries without a success in between.
struct Streak {
    is_failing: bool,
    began: Instant,
    /// When the time for [`LINES_MAX`] began.
    told: Instant,
    lines: u32,
    /// All of them.
    tries: u64,
    /// Those since the last line.
    untold: u64,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The first failed try.
    Begins,
    /// So many more, in the last minute or longer.
    GoesOn(u64),
    /// A success after so many failed tries.
    Recovers { tries: u64, after: Duration },
}

impl Streak {
    /// The line, unless there were enough of them lately.
    fn tell(&mut self, line: Line, now: Instant) -> Option<Line> {
        if now.duration_since(self.told) >= SUMMARY_EVERY {
            (self.told, self.lines) = (now, 0);
        }
        self.lines += 1;
        (self.lines <= LINES_MAX).then_some(line)
    }
}

impl Failing {
    /// The line about a try of an endpoint, if there is one.
    pub(crate) fn note(&self, endpoint: EndpointId, has_failed: bool, now: Instant) -> Option<Line> {
        let mut streaks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !has_failed {
            let streak = streaks.get_mut(&endpoint).filter(|streak| streak.is_failing)?;
            streak.is_failing = false;
            let line = Line::Recovers { tries: streak.tries, after: now.duration_since(streak.began) };
            return streak.tell(line, now);
        }
        if streaks.len() >= ENDPOINTS_MAX && !streaks.contains_key(&endpoint) {
            streaks.retain(|_, streak| streak.is_failing);
            let latest = streaks
                .iter()
                .filter(|_| streaks.len() >= ENDPOINTS_MAX)
                .max_by_key(|(_, streak)| streak.began)
                .map(|(id, _)| *id);
            latest.map(|id| streaks.remove(&id));
        }
        match streaks.entry(endpoint) {
            Entry::Vacant(new) => {
                new.insert(Streak { is_failing: true, began: now, told: now, lines: 1, tries: 1, untold: 0 });
                Some(Line::Begins)
            }
            Entry::Occupied(mut known) => {
                let streak = known.get_mut();
                if !streak.is_failing {
                    (streak.is_failing, streak.began, streak.tries, streak.untold) = (true, now, 1, 0);
                    return streak.tell(Line::Begins, now);
                }
                (streak.tries, streak.untold) = (streak.tries + 1, streak.untold + 1);
                if now.duration_since(streak.told) < SUMMARY_EVERY {
                    return None;
                }
                (streak.told, streak.lines) = (now, 1);
                Some(Line::GoesOn(std::mem::take(&mut streak.untold)))
            }
        }
    }

    /// Writes the line about a try, for operators.
    pub(crate) fn log(&self, endpoint: EndpointId, error: Option<&str>) {
        match self.note(endpoint, error.is_some(), Instant::now()) {
            Some(Line::Begins) => {
                tracing::warn!(endpoint.id = %endpoint, error, "a webhook endpoint begins to fail: tenure webhooks deliveries");
            }
            Some(Line::GoesOn(tries)) => {
                tracing::warn!(endpoint.id = %endpoint, tries, error, "a webhook endpoint still fails");
            }
            Some(Line::Recovers { tries, after }) => {
                let after_s = after.as_secs();
                tracing::info!(endpoint.id = %endpoint, tries, after_s, "a webhook endpoint takes deliveries again");
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> EndpointId {
        format!("00000000-0000-7000-8000-{number:012x}").parse().expect("an id")
    }

    #[test]
    fn many_failed_tries_are_few_lines() {
        let (failing, begin) = (Failing::default(), Instant::now());
        let mut lines = Vec::new();
        // A thousand tries a second for three minutes.
        for n in 0..180_000 {
            lines.extend(failing.note(id(1), true, begin + Duration::from_millis(n)));
        }
        assert_eq!(lines, [Line::Begins, Line::GoesOn(60_000), Line::GoesOn(60_000)]);
        assert_eq!(failing.note(id(2), true, begin), Some(Line::Begins), "each endpoint has its own");
        assert_eq!(failing.note(id(3), false, begin), None, "a success is no line");
        let later = begin + Duration::from_secs(200);
        let recovered = Line::Recovers { tries: 180_000, after: Duration::from_secs(200) };
        assert_eq!(failing.note(id(1), false, later), Some(recovered));
        assert_eq!(failing.note(id(1), false, later), None);
        assert_eq!(failing.note(id(1), true, later), Some(Line::Begins));
    }

    #[test]
    fn an_endpoint_that_fails_every_second_time_has_two_lines_a_minute() {
        let (failing, begin) = (Failing::default(), Instant::now());
        let tries = (0..180_000).map(|n| failing.note(id(1), n % 2 == 0, begin + Duration::from_millis(n)));
        assert_eq!(tries.flatten().count(), 6);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (failing, now) = (Failing::default(), Instant::now());
        for n in 0..ENDPOINTS_MAX as u128 + 10 {
            assert_eq!(failing.note(id(n), true, now), Some(Line::Begins));
        }
        assert_eq!(failing.0.lock().unwrap().len(), ENDPOINTS_MAX);
    }
}
