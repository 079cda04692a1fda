//! A suite that never turns red proves nothing: each broken model must be noticed, by a case that is named beforehand.

use std::sync::Arc;

use tenure_contract::model::ModelStore;
use tenure_contract::model::mutant::Mutant;
use tenure_contract::{CASES, Fixture, clock_at_start, run_case};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_broken_rule_turns_its_case_red() {
    for (mutant, case) in Mutant::ALL {
        let red = failing_cases(mutant).await;
        println!("{mutant:?}: {} red: {}", red.len(), red.join(" "));
        assert!(red.contains(&case), "{mutant:?} is not noticed by {case}, only by {red:?}");
    }
}

async fn failing_cases(mutant: Mutant) -> Vec<&'static str> {
    let mut red = Vec::new();
    for (name, _) in CASES {
        let clock = clock_at_start();
        let fixture = Fixture::new("broken model", Arc::new(ModelStore::broken(clock.clone(), mutant)), clock);
        if run_case(name, fixture).await.is_err() {
            red.push(*name);
        }
    }
    red
}
