//! A check that cannot fail proves nothing: each bug on purpose is found, by the rule that is there for it.

use tenure_sim::sim::{Breakage, Rule, Trial, run};
use tenure_sqlite::{FENCES, Mutation, SqliteOptions};

/// In so many seeds a bug must show. Most do in the first ones; two who plan the same fire at the same moment are rare.
const SEEDS: u64 = 400;

/// The first of these seeds in which one of these rules does not hold.
fn found(trial: &Trial, rules: &[Rule]) -> Option<u64> {
    (1..=SEEDS).find(|seed| {
        let outcome = run(&Trial { seed: *seed, ..trial.clone() });
        outcome.findings.iter().any(|finding| rules.contains(&finding.rule))
    })
}

fn assert_found(breakage: Breakage, rules: &[Rule]) {
    let seed = found(&Trial { breakage: Some(breakage), ..Trial::default() }, rules);
    assert!(seed.is_some(), "{breakage:?} was not found by {rules:?} in {SEEDS} seeds");
    println!("{breakage:?}: found in seed {seed:?}");
}

#[test]
fn an_accepted_report_of_a_stale_lease_is_found() {
    assert_found(Breakage::StaleAccepted, &[Rule::StaleAccepted]);
}

#[test]
fn a_worker_that_never_fences_itself_is_found() {
    assert_found(Breakage::ForgedRenewals, &[Rule::RanPastDeadline]);
}

#[test]
fn a_worker_that_counts_with_longer_leases_is_found() {
    assert_found(Breakage::LongLeases, &[Rule::RanPastDeadline]);
}

#[test]
fn expired_leases_that_nobody_reclaims_are_found() {
    assert_found(Breakage::NoReclaimer, &[Rule::NotEnded]);
}

#[test]
fn effects_apart_from_their_completion_are_found() {
    assert_found(Breakage::EffectsApart, &[Rule::Effects]);
}

#[test]
fn a_producer_that_repeats_itself_with_new_ids_is_found() {
    assert_found(Breakage::FreshIds, &[Rule::EnqueuedTwice]);
}

#[test]
fn a_world_that_never_heals_is_found() {
    assert_found(Breakage::NeverHeals, &[Rule::NotEnded]);
}

/// Fences of the store whose absence a simulation must notice, and by which rules. The others keep out what nobody here
/// tries: a worker that uses another's lease, a tenant that looks for another's job.
#[rustfmt::skip] // one fence a line
const NOTICED: &[(&str, &[Rule])] = &[
    ("a grant ends once", &[Rule::StaleAccepted, Rule::Journal, Rule::Invariant]),
    ("only an expired lease is reclaimed", &[Rule::RanSideBySide]),
    ("a renewal pushes the deadline", &[Rule::RanSideBySide]),
    ("only unknown leases are released", &[Rule::GivenAway, Rule::RanSideBySide]),
    ("a late sweep leaves newer leases alone", &[Rule::GivenAway]),
    ("what a gate has counted is gone", &[Rule::Invariant, Rule::TooManyInside]),
    ("a schedule moves on from where it was read", &[Rule::Fires]),
];

#[test]
fn a_store_without_a_fence_is_found() {
    for (name, rules) in NOTICED {
        let (_, find, replace) = FENCES.iter().find(|(fence, ..)| fence == name).expect("a fence of the store");
        let store = SqliteOptions { mutation: Some(Mutation { find, replace }), ..SqliteOptions::default() };
        let seed = found(&Trial { store, ..Trial::default() }, rules);
        assert!(seed.is_some(), "a store without `{name}` was not found by {rules:?} in {SEEDS} seeds");
        println!("{name}: found in seed {seed:?}");
    }
}
