//! A resource that jobs share: two at once, and a breaker. Permits must be what live leases say, whatever dies.

use std::time::Duration;

use tenure_core::GateName;
use tenure_core::gate::{Admit, Breaker, GateRule, Why};
use tenure_sqlite::SqliteStore;
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;
use tenure_store::{GateStore, StoreError};

use super::finding::Rule;
use super::world::World;

/// Its name.
pub(crate) const GATE: &str = "shared";
/// Jobs inside at once.
const AT_ONCE: u32 = 2;

/// Sets its rule.
pub(crate) async fn set(store: &SqliteStore) -> Result<(), StoreError> {
    let breaker = Some(Breaker { failures: 4, cooldown: Duration::from_secs(2) });
    let rule = GateRule { concurrency: Some(AT_ONCE), breaker, ..GateRule::default() };
    store.set_rule(SetRule { pattern: GATE.parse()?, rule: Some(rule), word: Word::default() }).await
}

/// Whether a job of this number passes it.
pub(crate) const fn is_passed_by(n: u64) -> bool {
    n % 4 == 1
}

/// Looks at it: never a third job inside.
pub(crate) async fn look(world: &World, store: &SqliteStore) -> Result<(), StoreError> {
    let record = match store.show_gate(&GateName::new(GATE)?).await {
        Err(StoreError::NotFound(_)) => return Ok(()),
        record => record?,
    };
    if record.gate.in_use > AT_ONCE {
        world.ledger.find(Rule::TooManyInside, format!("{} jobs are inside", record.gate.in_use));
    }
    match record.admit {
        Admit::Closed { why: Why::Full, .. } => world.count("gate_full"),
        Admit::Closed { why: Why::Open, .. } => world.count("gate_open"),
        Admit::Closed { why: Why::Probing, .. } => world.count("gate_probing"),
        _ => {}
    }
    Ok(())
}

/// When everything has ended nobody is inside, and nothing has to be repaired.
pub(crate) async fn check(world: &World, store: &SqliteStore) -> Result<(), StoreError> {
    let repairs = store.repair_gates().await?;
    if repairs > 0 {
        world.ledger.find(Rule::TooManyInside, format!("{repairs} gates had to be repaired"));
    }
    Ok(())
}
