//! The verbs of rollups.

use async_trait::async_trait;
use tenure_core::Timestamp;

use crate::error::StoreError;
use crate::record::Sight;
use crate::rollup::{GateFailures, Rollup, RollupFilter};

/// Rollups: what happened, summed up as it is sealed.
#[async_trait]
pub trait RollupStore: Send + Sync {
    /// Adds up a batch of what was sealed since the last time, and drops sums past their retention; answers how many rows
    /// of the journal it has passed. Of two at once one does nothing.
    async fn fold_rollups(&self) -> Result<u64, StoreError>;

    /// Sums that match: by time the oldest first, otherwise the busiest first.
    async fn list_rollups(&self, filter: &RollupFilter) -> Result<Vec<Rollup>, StoreError>;

    /// The gates whose jobs failed most since then, the worst first, 1..=1,000 of them.
    async fn list_failing_gates(
        &self,
        sight: &Sight,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<GateFailures>, StoreError>;
}
