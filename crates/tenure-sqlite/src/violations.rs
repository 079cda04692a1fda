//! The verifier: looks at the tables for what must never be there.

use rusqlite::named_params;
use tenure_core::JobId;
use tenure_store::record::Violation;
use uuid::Uuid;

use crate::fault::Result;
use crate::tx::Tx;

const FIND_VIOLATIONS: &str = include_str!("sql/find_violations.sql");

/// Broken invariants, at most `limit`.
pub(crate) fn find_violations(tx: &Tx<'_>, limit: u32) -> Result<Vec<Violation>> {
    tx.all(FIND_VIOLATIONS, named_params! { ":limit": limit }, |row| {
        let job: Option<[u8; 16]> = row.get(1)?;
        let job = job.map(|bytes| JobId::from_uuid(Uuid::from_bytes(bytes)));
        Ok(Violation { invariant: row.get(0)?, job, detail: row.get(2)? })
    })
}
