//! A row of the fault matrix, and what one run of it says.
//!
//! A row is a function from a size to a [`Report`]: numbers, a count of how often the fault really hit, what had to hold
//! and did not, and the pass line that is the same for every row. What cannot go on panics; that is a failed row, too.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::pass_line::PassLine;

/// How much of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A few seconds of it: `./x test`.
    Small,
    /// As much as the matrix asks for, as far as that fits into minutes: `./x chaos`.
    Full,
}

impl Size {
    /// One of the two.
    pub fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Self::Small => small,
            Self::Full => full,
        }
    }

    /// How many times as long as promised something may take. A test asks whether it happens, on a machine that has other
    /// things to do; `./x chaos` asks whether it happens in time.
    pub fn slack(self) -> u32 {
        self.pick(6, 1)
    }
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number in the matrix: `F13`.
    pub id: &'static str,
    /// What goes wrong.
    pub fault: &'static str,
    /// How it is made to go wrong here.
    pub injected: &'static str,
    /// One run.
    pub run: fn(Size) -> Running,
}

/// A run on its way. It stays on the thread it began on.
pub type Running = Pin<Box<dyn Future<Output = Report>>>;

/// What one run says.
#[derive(Debug, Default)]
pub struct Report {
    numbers: Vec<String>,
    bite: Option<Bite>,
    line: Option<PassLine>,
    broken: Vec<String>,
    impossible: Option<String>,
}

/// How often the fault really hit.
#[derive(Debug, Clone, Copy)]
struct Bite {
    hits: usize,
    needed: usize,
    what: &'static str,
}

/// What a run is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything held, and the fault hit often enough.
    Held,
    /// The fault did not hit, or not often enough: nothing was shown.
    Void(String),
    /// Something did not hold.
    Failed(String),
}

impl Report {
    /// A run that could not be made here, and why.
    pub fn impossible(why: impl Into<String>) -> Self {
        Self { impossible: Some(why.into()), ..Self::default() }
    }

    /// Something that was measured.
    pub fn number(&mut self, number: impl Into<String>) {
        self.numbers.push(number.into());
    }

    /// Something that has to hold.
    pub fn must(&mut self, held: bool, what: impl Into<String>) {
        if !held {
            self.broken.push(what.into());
        }
    }

    /// How often the fault hit, and how often it has to.
    pub fn bite(&mut self, hits: usize, needed: usize, what: &'static str) {
        self.bite = Some(Bite { hits, needed, what });
    }

    /// What every row has to show.
    pub fn line(&mut self, line: PassLine) {
        self.broken.extend(line.broken());
        self.line = Some(line);
    }

    /// What it is worth.
    pub fn verdict(&self) -> Verdict {
        if let Some(why) = &self.impossible {
            return Verdict::Void(why.clone());
        }
        if !self.broken.is_empty() {
            return Verdict::Failed(self.broken.join("; "));
        }
        match self.bite {
            Some(bite) if bite.hits >= bite.needed.max(1) => Verdict::Held,
            Some(bite) => Verdict::Void(format!("{} of {} {}", bite.hits, bite.needed, bite.what)),
            None => Verdict::Void("nobody counted".to_owned()),
        }
    }

    /// What was measured, in words.
    pub fn numbers(&self) -> String {
        self.numbers.join("; ")
    }

    /// The bite, in words.
    pub fn bitten(&self) -> String {
        self.bite.map(|bite| format!("{} {} (at least {})", bite.hits, bite.what, bite.needed)).unwrap_or_default()
    }

    /// The pass line, in words.
    pub fn pass_line(&self) -> String {
        self.line.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("held"),
            Self::Void(why) => write!(f, "void: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// Runs a row on a thread and a runtime of its own, and says how long that took. A panic is a failure like any other.
pub fn run(row: &Row, size: Size) -> (Report, Duration) {
    let (since, begin) = (Instant::now(), row.run);
    let running = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let report = runtime.block_on(begin(size));
        // A call to a server that is gone may still be on its way.
        runtime.shutdown_background();
        report
    });
    let report = running.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let mut report = Report::default();
        report.must(false, text.unwrap_or_else(|| "a panic without a word".to_owned()));
        report
    });
    (report, since.elapsed())
}
