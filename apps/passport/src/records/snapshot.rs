//! Snapshots: the facts of one document, OPEN until somebody vouches for them, SEALED ever after.

use serde_json::json;
use tenure::store::enqueue::Enqueued;
use tenure::{Client, Database, StoreError, TenantName, Tx, row};
use uuid::Uuid;

use crate::code::{Code, Refusal};
use crate::halt::Halt;
use crate::id::derived;
use crate::records::event::{By, Event, EventType};

/// A snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Follows from its document.
    pub id: Uuid,
    /// Of which document.
    pub document: Uuid,
    /// Whether somebody vouches for it.
    pub is_sealed: bool,
}

impl Snapshot {
    /// The id of the snapshot of this document.
    pub fn id_of(tenant: &TenantName, document: Uuid) -> Result<Uuid, Refusal> {
        derived("snapshot", &[tenant.as_str(), &document.to_string()])
    }

    /// Opens the one of this document, unless it is there already.
    pub fn open(tx: &Tx<'_>, tenant: &TenantName, document: Uuid) -> Result<Uuid, Halt> {
        let id = Self::id_of(tenant, document)?;
        if Self::status(tx, tenant, id)?.is_some() {
            return Ok(id);
        }
        let insert = "insert into passport_snapshot (tenant_id, snapshot_id, document_version_id, status) \
                      values ($1, $2, $3, 'OPEN') on conflict do nothing";
        tx.execute(insert, row![tenant.as_str(), id.to_string(), document.to_string()])?;
        Ok(id)
    }

    /// Seals it, if its document was parsed: `SNAPSHOT_NOT_READY` otherwise. What is sealed stays so.
    pub fn seal(
        tx: &Tx<'_>,
        client: &Client,
        tenant: &TenantName,
        id: Uuid,
        by: By<'_>,
    ) -> Result<Vec<Enqueued>, Halt> {
        let update = include_str!("../sql/seal_snapshot.sql");
        if tx.execute(update, row![tenant.as_str(), id.to_string(), tx.now()?])? == 1 {
            let event = Event { kind: EventType::SnapshotSealed, aggregate: id, payload: json!({"snapshot_id": id}) };
            return event.append(tx, client, tenant, by);
        }
        match Self::status(tx, tenant, id)?.as_deref() {
            Some("SEALED") => Ok(Vec::new()),
            Some(_) => {
                let why = format!("snapshot `{id}` cannot be sealed: its document is not parsed yet, come again later");
                Err(Refusal::new(Code::SnapshotNotReady, why).into())
            }
            None => Err(Refusal::invalid(format!("snapshot `{id}` is not known to tenant `{tenant}`")).into()),
        }
    }

    fn status(tx: &Tx<'_>, tenant: &TenantName, id: Uuid) -> Result<Option<String>, StoreError> {
        let select = "select status from passport_snapshot where tenant_id = $1 and snapshot_id = $2";
        let found = tx.query_first(select, row![tenant.as_str(), id.to_string()])?;
        found.map(|row| row.get("status")).transpose()
    }

    /// The one of this id, if the tenant has it.
    pub async fn find(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Self>, Halt> {
        let select = "select document_version_id, status = 'SEALED' as is_sealed from passport_snapshot \
                      where tenant_id = $1 and snapshot_id = $2";
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        Ok(Some(Self { id, document: super::id(row, "document_version_id")?, is_sealed: row.get("is_sealed")? }))
    }
}
