//! The worker in simulated worlds: 512 seeds, and those that once failed. More: `./x sim`.

use tenure_sim::sim::seeds::{Report, regressions, run_all};
use tenure_sim::sim::{Trial, run};

fn assert_sound(report: &Report) {
    assert!(report.failed.is_empty(), "{}", report.failures());
}

/// So many seeds, each twice; every rule holds, and everything that should happen sometimes did.
fn hold(seeds: std::ops::Range<u64>) {
    let report = run_all(seeds.clone());
    println!("{} seeds, {} virtual s, {} events: {}", report.seeds, report.virtual_s, report.events, report.counters);
    assert_sound(&report);
    assert_eq!(report.counters.missing(), [""; 0], "never happened in seeds {seeds:?}");
}

/// Split, so that every core has its share.
macro_rules! hold {
    ($($name:ident: $seeds:expr,)*) => { $( #[test] fn $name() { hold($seeds); } )* };
}

hold! {
    every_rule_holds_for_seeds_1_to_64: 1..65,
    every_rule_holds_for_seeds_65_to_128: 65..129,
    every_rule_holds_for_seeds_129_to_192: 129..193,
    every_rule_holds_for_seeds_193_to_256: 193..257,
    every_rule_holds_for_seeds_257_to_320: 257..321,
    every_rule_holds_for_seeds_321_to_384: 321..385,
    every_rule_holds_for_seeds_385_to_448: 385..449,
    every_rule_holds_for_seeds_449_to_512: 449..513,
}

#[test]
fn seeds_that_once_failed_hold_now() {
    assert_sound(&run_all(regressions()));
}

#[test]
fn a_kept_trace_is_the_same_trace() {
    let shown = run(&Trial { seed: 7, kept: true, ..Trial::default() });
    let hashed = run(&Trial { seed: 7, ..Trial::default() });
    assert_eq!((shown.hash, shown.events), (hashed.hash, hashed.events));
    assert_eq!(shown.trace.len() as u64, shown.events);
    // Calls with their caller, their answer and the time; handlers with their start and their stop.
    for part in [" claim ", " start J", " stop J", " renew ", " reclaim ", " enqueue J"] {
        assert!(shown.trace.iter().any(|line| line.contains(part)), "no{part}in the trace");
    }
}

#[test]
fn other_seeds_are_other_worlds() {
    let hash = |seed| run(&Trial { seed, ..Trial::default() }).hash;
    assert_ne!(hash(1), hash(2));
}
