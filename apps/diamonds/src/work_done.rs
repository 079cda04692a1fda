//! `WORK_DONE`: the message that says how a partition ended. There is one for each partition of a run.

use serde_json::{Value, json};
use tenure::core::Json;
use tenure::{PartitionName, PartitionRecord, RunId, StoreError, Timestamp, Tx, row};

use crate::work_item::WorkItem;

/// What the message says it is.
pub const TYPE: &str = "WORK_DONE";
/// Longest reason that is passed on; more is cut off.
const ERROR_CHARS_MAX: usize = 500;

/// A partition has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDone {
    /// Of which run.
    pub run_id: RunId,
    /// What ties the logs together.
    pub trace_id: String,
    /// Which partition.
    pub partition_id: PartitionName,
    /// How many of its stones are stored: where its next page would begin.
    pub records_processed: u64,
    /// Why it failed, if it did: `status` is `failed` then, and `completed` otherwise.
    pub error: Option<String>,
}

impl WorkDone {
    /// The partition of `item` has all its rows.
    pub fn completed(item: &WorkItem, records_processed: u64) -> Self {
        let (run_id, trace_id) = (item.run_id, item.trace_id.clone());
        Self { run_id, trace_id, partition_id: item.partition_id.clone(), records_processed, error: None }
    }

    /// This partition will not go on.
    pub fn failed(partition: &PartitionRecord, trace_id: &str) -> Self {
        let why = partition.last_error.as_ref().map_or("", |error| error.as_str());
        Self {
            run_id: partition.run,
            trace_id: trace_id.to_owned(),
            partition_id: partition.name.clone(),
            records_processed: partition.next_offset,
            error: Some(why.chars().take(ERROR_CHARS_MAX).collect()),
        }
    }

    /// The message.
    pub fn to_json(&self) -> Value {
        let mut message = json!({
            "type": TYPE,
            "runId": self.run_id.to_string(),
            "traceId": self.trace_id,
            "partitionId": self.partition_id.as_str(),
            "status": self.status(),
            "recordsProcessed": self.records_processed,
        });
        if let Some(error) = &self.error {
            message["error"] = error.as_str().into();
        }
        message
    }

    /// Writes it down for the consolidator, in the transaction of the last page.
    pub fn store(&self, tx: &Tx<'_>) -> Result<u64, StoreError> {
        self.store_as_of(tx, tx.now()?)
    }

    /// The same for one that was seen to have ended, and moved then the last time; answers how many are new, one or none.
    pub fn store_as_of(&self, tx: &Tx<'_>, moved_at: Timestamp) -> Result<u64, StoreError> {
        let message = Json::parse("message", self.to_json().to_string())?;
        let params = row![self.run_id, self.partition_id.as_str(), self.status(), message, tx.now()?, moved_at];
        tx.execute(include_str!("sql/store_work_done.sql"), params)
    }

    fn status(&self) -> &'static str {
        if self.error.is_none() { "completed" } else { "failed" }
    }
}

#[cfg(test)]
mod tests {
    use tenure::RunState;

    use super::*;
    use crate::price_range::PriceRange;

    fn item() -> WorkItem {
        WorkItem {
            run_id: "019aa0c4-7b5a-7000-8000-000000000001".parse().unwrap(),
            trace_id: "nightly-7".to_owned(),
            partition_id: "p1".parse().unwrap(),
            prices: PriceRange::ALL,
            offset: 60,
            limit: 30,
            total_records: None,
            as_of: None,
        }
    }

    fn partition(why: &str) -> PartitionRecord {
        PartitionRecord {
            run: item().run_id,
            name: item().partition_id,
            state: RunState::Failed,
            next_offset: 60,
            limit: 30,
            rows: 60,
            expected: None,
            job: "019aa0c4-7b5a-7000-8000-000000000002".parse().unwrap(),
            last_error: Some(Json::parse("error", serde_json::to_string(why).unwrap()).unwrap()),
            created_at: Timestamp::EPOCH,
            started_at: None,
            moved_at: Timestamp::EPOCH,
        }
    }

    /// Shows: S2.40
    #[test]
    fn a_failed_partition_says_failed_and_why() {
        let failed = WorkDone::failed(&partition(&"x".repeat(9_000)), "nightly-7").to_json();
        assert_eq!((failed["type"].as_str(), failed["status"].as_str()), (Some("WORK_DONE"), Some("failed")));
        assert_eq!(failed["error"].as_str().unwrap().len(), ERROR_CHARS_MAX);
        assert_eq!((failed["recordsProcessed"].as_u64(), failed["traceId"].as_str()), (Some(60), Some("nightly-7")));
        let completed = WorkDone::completed(&item(), 95).to_json();
        assert_eq!((completed["status"].as_str(), completed.get("error")), (Some("completed"), None));
        assert_eq!(completed["recordsProcessed"], 95);
    }
}
