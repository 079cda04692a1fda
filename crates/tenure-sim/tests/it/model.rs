//! The search finds what is broken, and nothing else.

use std::collections::BTreeSet;

use tenure_sim::model::invariant::Invariant;
use tenure_sim::model::table::{Reach, Variant, variants};

/// Variants that do not come out as they must, with their stories.
fn surprises(of: impl Fn(&Variant) -> bool) -> Vec<String> {
    let wanted = variants(Reach::Near).into_iter().filter(of);
    let rows = wanted.map(|variant| (variant.run(), variant));
    rows.filter(|(row, variant)| row.invariant() != variant.expected).map(|(row, variant)| row.tell(&variant)).collect()
}

/// Safety at every step, and from every state healthy steps lead to the end.
#[test]
fn every_promise_holds_in_every_state() {
    let broken = surprises(|variant| variant.expected.is_none());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Otherwise the checker is blind.
#[test]
fn every_mutant_breaks_the_invariant_it_is_known_for() {
    let unseen = surprises(|variant| variant.expected.is_some());
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}

#[test]
fn every_invariant_has_a_mutant() {
    use Invariant::{I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, L};
    let expected: Vec<Invariant> = variants(Reach::Near).iter().filter_map(|variant| variant.expected).collect();
    for invariant in [I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, L] {
        assert!(expected.contains(&invariant), "nobody breaks {invariant}: {}", invariant.says());
    }
    assert!(expected.len() >= 20);
    let names: BTreeSet<String> = variants(Reach::Near).into_iter().map(|variant| variant.name).collect();
    assert_eq!(names.len(), variants(Reach::Near).len(), "each has a name of its own");
}

/// The search is worth something: it is as large as it was, and it is the same every time.
#[test]
fn a_search_visits_the_same_states_every_time() {
    let variant = variants(Reach::Near).remove(0);
    let (first, second) = (variant.run(), variant.run());
    assert_eq!((first.states, first.edges), (second.states, second.edges));
    assert!(first.states > 100_000, "only {} states", first.states);
}
