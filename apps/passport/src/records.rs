//! What the database holds, one file for each table and what belongs to it. Every statement names the tenant, but for one:
//! [`version::StoredVersion::find_of_any_tenant`] has a label, which names none.

pub mod battery;
pub mod delivery;
pub mod document;
pub mod endpoint;
pub mod event;
pub mod rule_package;
pub mod snapshot;
pub mod version;

use tenure::{Record, StoreError};
use uuid::Uuid;

/// An id as it is stored.
fn id(row: &Record, column: &str) -> Result<Uuid, StoreError> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| StoreError::Corrupt(format!("column `{column}` holds `{text}`, which is no UUID")))
}
