//! The event trace of a run: its hash always, its lines when somebody wants to read them.
//!
//! Two runs of one seed must give the same hash, so nothing goes in here that is not the seed's doing: no addresses, no
//! wall clock, no numbers that the process counts on.

use std::fmt::{Arguments, Write};
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// More events than this without any time passing, and something turns in circles.
const EVENTS_AT_ONCE_MAX: u64 = 100_000;
/// No run takes longer than this; one that does waits for something that never comes.
const VIRTUAL_MAX: Duration = Duration::from_secs(3_600);

/// What happened, in order.
pub(crate) struct Trace {
    hasher: DefaultHasher,
    lines: Option<Vec<String>>,
    line: String,
    events: u64,
    last: (Duration, u64),
}

impl Trace {
    /// An empty one; `kept` keeps its lines.
    pub(crate) fn new(kept: bool) -> Self {
        let line = String::with_capacity(256);
        Self { hasher: DefaultHasher::new(), lines: kept.then(Vec::new), line, events: 0, last: (Duration::ZERO, 0) }
    }

    /// Somebody did something, at this virtual time.
    pub(crate) fn event(&mut self, at: Duration, who: &str, what: Arguments<'_>) {
        self.line.clear();
        // Writing into a string never fails.
        let _ = write!(self.line, "{:>7}.{:03} {who:<8} {what}", at.as_secs(), at.subsec_millis());
        self.hasher.write(self.line.as_bytes());
        self.events += 1;
        self.last = if self.last.0 == at { (at, self.last.1 + 1) } else { (at, 0) };
        assert!(at < VIRTUAL_MAX, "no end in sight: {}", self.line);
        assert!(self.last.1 < EVENTS_AT_ONCE_MAX, "time stands still: {}", self.line);
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.clone());
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
