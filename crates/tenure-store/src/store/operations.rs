//! The verbs of operations.

use async_trait::async_trait;
use tenure_core::JobId;

use crate::error::StoreError;
use crate::operation::{NewOperation, OperationFilter, OperationRecord, SaveOperation};
use crate::record::Sight;

/// Operations: one act on many jobs, and how far it is.
#[async_trait]
pub trait OperationStore: Send + Sync {
    /// Begins an operation: stores it and the job that does it. `Conflict` when the id is another's.
    async fn create_operation(&self, request: NewOperation) -> Result<OperationRecord, StoreError>;

    /// Operations that match, newest first.
    async fn list_operations(&self, filter: &OperationFilter) -> Result<Vec<OperationRecord>, StoreError>;

    /// One operation. `NotFound` for an unknown id and for one out of sight alike.
    async fn show_operation(&self, sight: &Sight, operation: JobId) -> Result<OperationRecord, StoreError>;

    /// Writes down how far it is; answers whether that was news. `NotFound` for an unknown id.
    async fn save_operation(&self, request: SaveOperation) -> Result<bool, StoreError>;
}
