//! Operations and groups of dead letters as JSON.

use serde::Serialize;
use tenure_store::operation::OperationRecord;
use utoipa::ToSchema;

use super::date;
use crate::dead::{Cause, Group};

/// One operation and how far it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationLine {
    /// The id of the job that does it, too.
    id: String,
    /// Whose jobs; null: everybody's.
    tenant: Option<String>,
    name: String,
    act: &'static str,
    state: &'static str,
    queue: Option<String>,
    kind: Option<String>,
    group: Option<String>,
    /// How many there were when it began; null: they are being counted.
    total: Option<u64>,
    done: u64,
    /// Not acted on, because their state did not allow it any more.
    refused: u64,
    last_refusal: Option<String>,
    created_at: String,
    finished_at: Option<String>,
}

/// Dead letters that died of the same.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupLine {
    group: String,
    count: u64,
    kind: String,
    code: Option<String>,
    error: Option<String>,
    /// The newest one's.
    message: String,
    first_at: Option<String>,
    last_at: Option<String>,
    /// The newest of them.
    example: String,
}

impl From<&OperationRecord> for OperationLine {
    fn from(operation: &OperationRecord) -> Self {
        let progress = &operation.progress;
        Self {
            id: operation.id.to_string(),
            tenant: operation.tenant.as_ref().map(ToString::to_string),
            name: operation.name.clone(),
            act: operation.act.as_str(),
            state: operation.state.as_str(),
            queue: operation.queue.as_ref().map(ToString::to_string),
            kind: operation.kind.as_ref().map(ToString::to_string),
            group: operation.group.clone(),
            total: progress.total,
            done: progress.done,
            refused: progress.refused,
            last_refusal: progress.last_refusal.clone(),
            created_at: operation.created_at.to_string(),
            finished_at: date(operation.finished_at),
        }
    }
}

impl From<&Group> for GroupLine {
    fn from(group: &Group) -> Self {
        let (code, error) = match &group.cause {
            Cause::Code(code) => (Some(code.clone()), None),
            Cause::Message(message) => (None, Some(message.clone())),
            Cause::Unknown => (None, None),
        };
        Self {
            group: group.key(),
            count: group.count,
            kind: group.kind.to_string(),
            code,
            error,
            message: group.message.clone(),
            first_at: date(group.first),
            last_at: date(group.last),
            example: group.example.to_string(),
        }
    }
}
