//! Operations: one act on many jobs.

use async_trait::async_trait;
use tenure_core::JobId;
use tenure_store::operation::{NewOperation, OperationFilter, OperationRecord, SaveOperation};
use tenure_store::record::Sight;
use tenure_store::{OperationStore, StoreError};

use super::ModelStore;
use super::jobs::Room;

#[async_trait]
impl OperationStore for ModelStore {
    async fn create_operation(&self, request: NewOperation) -> Result<OperationRecord, StoreError> {
        request.check()?;
        let record = self.transact(|tables, now| {
            if let Some(known) = tables.operations.get(&request.id) {
                return match known.is_made_of(&request) {
                    true => Ok(known.clone()),
                    false => Err(StoreError::Conflict(format!("operation {} is there already", request.id))),
                };
            }
            let job = request.job()?;
            job.check(now)?;
            self.enqueue(tables, job, Room::Needed, now)?;
            let record = OperationRecord::begun(request, now);
            tables.operations.insert(record.id, record.clone());
            Ok(record)
        })?;
        self.work.notify_one();
        Ok(record)
    }

    async fn list_operations(&self, filter: &OperationFilter) -> Result<Vec<OperationRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let wanted = |operation: &&OperationRecord| {
                is_seen(operation, &filter.sight) && filter.before.is_none_or(|before| operation.id < before)
            };
            let newest_first = tables.operations.values().rev().filter(wanted);
            Ok(newest_first.take(filter.limit as usize).cloned().collect())
        })
    }

    async fn show_operation(&self, sight: &Sight, operation: JobId) -> Result<OperationRecord, StoreError> {
        self.look(|tables, _| {
            let found = tables.operations.get(&operation).filter(|found| is_seen(found, sight)).cloned();
            found.ok_or_else(|| unknown(operation))
        })
    }

    async fn save_operation(&self, request: SaveOperation) -> Result<bool, StoreError> {
        self.transact(|tables, now| {
            let operation = tables.operations.get_mut(&request.id).ok_or_else(|| unknown(request.id))?;
            Ok(operation.save(&request, now))
        })
    }
}

fn is_seen(operation: &OperationRecord, sight: &Sight) -> bool {
    sight.tenant().is_none_or(|tenant| operation.tenant.as_ref() == Some(tenant))
}

fn unknown(operation: JobId) -> StoreError {
    StoreError::NotFound(format!("operation {operation}"))
}
