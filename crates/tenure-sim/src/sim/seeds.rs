//! Many seeds, one after the other, and the ones that once failed.

use std::fmt::Write;

use super::{Counters, Finding, Outcome, Trial, run_twice};

/// Seeds that once failed, with their causes: always run again.
pub const REGRESSIONS: &str = include_str!("../../regressions/seeds.txt");

/// What a set of seeds was like.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many were run.
    pub seeds: u64,
    /// Events in all traces.
    pub events: u64,
    /// Virtual seconds.
    pub virtual_s: u64,
    /// What happened.
    pub counters: Counters,
    /// What is wrong, by seed.
    pub failed: Vec<(u64, Vec<Finding>)>,
}

impl Report {
    /// Runs a trial twice and takes its outcome in.
    pub fn run(&mut self, trial: &Trial) {
        let outcome = run_twice(trial);
        self.take(trial.seed, outcome);
    }

    fn take(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.events += outcome.events;
        self.virtual_s += outcome.took.as_secs();
        self.counters.merge(&outcome.counters);
        if !outcome.findings.is_empty() {
            self.failed.push((seed, outcome.findings));
        }
    }

    /// What failed, and how to see it again; empty when nothing did.
    pub fn failures(&self) -> String {
        let mut text = String::new();
        for (seed, findings) in &self.failed {
            // Writing into a string never fails.
            let _ = writeln!(text, "seed {seed} fails; see it again: ./x sim seed={seed}");
            for finding in findings {
                let _ = writeln!(text, "  {finding}");
            }
        }
        text
    }
}

/// Runs these seeds, each twice.
pub fn run_all(seeds: impl IntoIterator<Item = u64>) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        report.run(&Trial { seed, ..Trial::default() });
    }
    report
}

/// The seeds that once failed.
pub fn regressions() -> Vec<u64> {
    let lines = REGRESSIONS.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(|line| line.parse().expect("a line is a seed and a comment")).collect()
}
