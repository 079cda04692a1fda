//! `tenure-sim [SEEDS] [FIRST]`: runs so many seeds, beginning with FIRST. `tenure-sim seed=N`: one, with its trace.

use std::process::ExitCode;
use std::time::Instant;

use tenure_sim::sim::seeds::Report;
use tenure_sim::sim::{Trial, run, run_twice};

/// Seeds that are run when nobody says how many.
const SEEDS_DEFAULT: u64 = 1_000;
/// How often a long run says how far it is.
const TOLD_EVERY: u64 = 500;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |word: &String| word.parse::<u64>().ok();
    match words.as_slice() {
        [word] if word.starts_with("seed=") => match word["seed=".len()..].parse() {
            Ok(seed) => show(seed),
            Err(_) => usage(),
        },
        [] => run_many(SEEDS_DEFAULT, 1),
        [seeds] => number(seeds).map_or_else(usage, |seeds| run_many(seeds, 1)),
        [seeds, first] => match (number(seeds), number(first)) {
            (Some(seeds), Some(first)) => run_many(seeds, first),
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: ./x sim [SEEDS] [FIRST], or ./x sim seed=N");
    ExitCode::from(2)
}

/// One seed with everything that happened.
fn show(seed: u64) -> ExitCode {
    let outcome = run(&Trial { seed, kept: true, ..Trial::default() });
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("hash {:016x}, {} events, {} virtual seconds", outcome.hash, outcome.events, outcome.took.as_secs());
    println!("{}", outcome.counters);
    let findings = run_twice(&Trial { seed, ..Trial::default() }).findings;
    findings.iter().for_each(|finding| println!("FOUND {finding}"));
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_many(seeds: u64, first: u64) -> ExitCode {
    let (began, mut report) = (Instant::now(), Report::default());
    for seed in first..first.saturating_add(seeds) {
        let failed = report.failed.len();
        report.run(&Trial { seed, ..Trial::default() });
        if report.failed.len() > failed {
            let news = Report { failed: report.failed[failed..].to_vec(), ..Report::default() };
            print!("{}", news.failures());
        }
        if report.seeds % TOLD_EVERY == 0 {
            println!("{} seeds, {} failed, {} s", report.seeds, report.failed.len(), began.elapsed().as_secs());
        }
    }
    println!(
        "{} seeds twice each, {} virtual seconds, {} events, {} s, {} failed",
        report.seeds,
        report.virtual_s,
        report.events,
        began.elapsed().as_secs(),
        report.failed.len()
    );
    println!("{}", report.counters);
    if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
