//! The hash chain over the journal.
//!
//! Writers of the journal hash nothing and wait for nobody: rows are plain inserts. About once a second one *sealer*
//! closes what became visible since the last seal:
//!
//! ```text
//!   seal 1            seal 2                    seal 3
//!   rows 1 2 4   ──►  rows 3 5 6 7 (3 was   ──► rows 8 9       ──►  unsealed tail
//!   hash a            late)  prev a, hash b     prev b, hash c
//! ```
//!
//! A seal's hash covers the previous hash, its own number, the store's boundary (what makes a row belong to it), the time
//! it was made and every field of every row in id order, each prefixed by its length, so that no two different histories
//! give the same bytes. Who changes, removes, adds or reorders a sealed row changes the hash; who rewrites the whole chain, or cuts
//! its end off, is found by an [`Anchor`] kept elsewhere.

use sha2::{Digest, Sha256};

use crate::journal::JournalRow;
use crate::time::Timestamp;

/// SHA-256.
pub type Hash = [u8; 32];

/// What the first seal follows.
pub const GENESIS: Hash = [0; 32];

/// One closed link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// 1, 2, 3 … without a gap.
    pub no: i64,
    /// What makes a row belong to this seal, as the store writes it: a snapshot or an id range.
    pub boundary: String,
    /// When it was made, by the store's clock.
    pub sealed_at: Timestamp,
    /// How many rows it covers.
    pub rows: i64,
    /// The hash before it.
    pub prev: Hash,
    /// Its own.
    pub hash: Hash,
}

/// The head of the chain, written down outside of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Number of the last seal.
    pub no: i64,
    /// Rows covered by all seals up to it.
    pub rows: i64,
    /// Its hash.
    pub hash: Hash,
}

/// Hashes the rows of one seal as they come.
pub struct Sealer {
    hasher: Sha256,
    no: i64,
    boundary: String,
    sealed_at: Timestamp,
    prev: Hash,
    rows: i64,
}

impl Sealer {
    /// Begins seal `no`, made at `sealed_at`, after a seal with hash `prev`.
    pub fn new(no: i64, boundary: String, sealed_at: Timestamp, prev: Hash) -> Self {
        let mut hasher = Sha256::new();
        field(&mut hasher, b"tenure seal 2");
        field(&mut hasher, &prev);
        field(&mut hasher, &no.to_be_bytes());
        field(&mut hasher, boundary.as_bytes());
        field(&mut hasher, &sealed_at.as_micros().to_be_bytes());
        Self { hasher, no, boundary, sealed_at, prev, rows: 0 }
    }

    /// Adds the next row, in id order.
    pub fn row(&mut self, row: &JournalRow) {
        let h = &mut self.hasher;
        self.rows += 1;
        field(h, &row.id.to_be_bytes());
        field(h, &row.at.as_micros().to_be_bytes());
        optional(h, row.worker.map(|w| w.0.to_be_bytes()).as_ref().map(<[u8; 4]>::as_slice));
        optional(h, row.actor.as_deref().map(str::as_bytes));
        field(h, &row.event.code().to_be_bytes());
        optional(h, row.lease.map(|l| l.0.to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
        let jobs = row.jobs.len() as u64;
        h.update(jobs.to_be_bytes());
        for job in &row.jobs {
            h.update(job.as_uuid().as_bytes());
        }
        optional(h, row.reason.as_deref().map(str::as_bytes));
        optional(h, row.details.as_ref().map(|d| d.as_str().as_bytes()));
    }

    /// Closes the seal.
    pub fn close(mut self) -> Seal {
        field(&mut self.hasher, &self.rows.to_be_bytes());
        let hash = self.hasher.finalize().into();
        let Self { no, boundary, sealed_at, prev, rows, .. } = self;
        Seal { no, boundary, sealed_at, rows, prev, hash }
    }
}

fn field(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

/// An absent field differs from an empty one.
fn optional(hasher: &mut Sha256, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            hasher.update([1]);
            field(hasher, bytes);
        }
        None => hasher.update([0]),
    }
}

/// Lower-case hexadecimal.
pub fn to_hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads 64 hexadecimal digits.
pub fn from_hex(text: &str) -> Option<Hash> {
    let mut hash = GENESIS;
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{JobId, LeaseNo, WorkerId};
    use crate::journal::JournalEvent;
    use crate::json::Json;
    use crate::time::Timestamp;

    fn row() -> JournalRow {
        JournalRow {
            id: 7,
            at: Timestamp::from_micros(1_000_000),
            worker: Some(WorkerId(3)),
            actor: Some("ops".into()),
            event: JournalEvent::Claimed,
            lease: Some(LeaseNo(12)),
            jobs: vec![JobId::from_parts(Timestamp::EPOCH, [1; 10]), JobId::from_parts(Timestamp::EPOCH, [2; 10])],
            reason: Some("because".into()),
            details: Some(Json::null()),
        }
    }

    fn seal(rows: &[JournalRow]) -> Seal {
        let mut sealer = Sealer::new(1, "1..9".into(), Timestamp::EPOCH, GENESIS);
        rows.iter().for_each(|row| sealer.row(row));
        sealer.close()
    }

    #[test]
    fn every_field_of_a_row_counts() {
        type Change = fn(&mut JournalRow);
        let changed: [(&str, Change); 12] = [
            ("id", |r| r.id += 1),
            ("at", |r| r.at = Timestamp::EPOCH),
            ("worker", |r| r.worker = None),
            ("actor", |r| r.actor = Some(String::new())),
            ("no actor", |r| r.actor = None),
            ("event", |r| r.event = JournalEvent::Requeued),
            ("lease", |r| r.lease = Some(LeaseNo(13))),
            ("job order", |r| r.jobs.reverse()),
            ("fewer jobs", |r| r.jobs.truncate(1)),
            ("reason", |r| r.reason = None),
            ("details", |r| r.details = None),
            ("text moved between fields", |r| {
                r.actor = Some("adab".into());
                r.reason = Some("ecause".into());
            }),
        ];
        let original = seal(&[row()]);
        for (what, change) in changed {
            let mut other = row();
            change(&mut other);
            assert_ne!(seal(&[other]).hash, original.hash, "{what}");
        }
    }

    #[test]
    fn order_number_boundary_time_and_predecessor_count() {
        let (a, b) = (row(), JournalRow { id: 8, ..row() });
        assert_ne!(seal(&[a.clone(), b.clone()]).hash, seal(&[b, a]).hash);
        let hashes = [
            Sealer::new(1, "1..9".into(), Timestamp::EPOCH, GENESIS).close().hash,
            Sealer::new(2, "1..9".into(), Timestamp::EPOCH, GENESIS).close().hash,
            Sealer::new(1, "1..8".into(), Timestamp::EPOCH, GENESIS).close().hash,
            Sealer::new(1, "1..9".into(), Timestamp::from_micros(1), GENESIS).close().hash,
            Sealer::new(1, "1..9".into(), Timestamp::EPOCH, [1; 32]).close().hash,
        ];
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash));
        }
    }

    #[test]
    fn a_known_seal_keeps_its_hash() {
        // A change here breaks every chain already written: it needs a new domain word and a migration.
        let hash = to_hex(&seal(&[row()]).hash);
        assert_eq!(hash, "08e47cf8abfe9e09e3a7deec2b01012f44368b493bfd98e687795b6dcc76ddc4");
        assert_eq!(from_hex(&hash), Some(seal(&[row()]).hash));
    }
}
