//! [`Receipt`]: what was compiled, from what, by what, and when. Its hash is what is signed and printed.
//!
//! It is canonical JSON, so that anyone who has it computes the same hash:
//!
//! ```json
//! {"build_id":"0.1.0","facts":3,"format":"BPC-RECEIPT-1","issued_at":"2026-11-15T09:30:00Z","passport_id":"…",
//!  "passport_version_id":"…","payload_hash":"…","proof_root":"…","rules_hash":"…","rules_id":"…","snapshot_id":"…",
//!  "tenant":"acme"}
//! ```
//!
//! (without the line breaks). It names the payload, the facts and the rules by their hashes: whoever changes one of them
//! changes the receipt.

use serde::{Deserialize, Serialize};
use tenure::{TenantName, Timestamp};
use uuid::Uuid;

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;
use crate::version::{BuildId, VersionKey};

/// What a receipt of this shape says it is.
pub const FORMAT: &str = "BPC-RECEIPT-1";

/// What a passport version consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whose, of which passport, from which snapshot, by which rules and build, as of when.
    pub key: VersionKey,
    /// Follows from the key.
    pub passport_version_id: Uuid,
    /// The SHA-256 of the passport's canonical JSON.
    pub payload_hash: Digest,
    /// The root of the tree over its facts.
    pub proof_root: Digest,
    /// How many facts those are.
    pub facts: usize,
    /// The SHA-256 of the rule package's canonical JSON.
    pub rules_hash: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: String,
    tenant: String,
    passport_id: Uuid,
    passport_version_id: Uuid,
    snapshot_id: Uuid,
    rules_id: Uuid,
    build_id: String,
    issued_at: String,
    payload_hash: Digest,
    proof_root: Digest,
    facts: usize,
    rules_hash: Digest,
}

impl Receipt {
    /// Its canonical JSON; the hash of that is the receipt hash.
    pub fn canonical(&self) -> Result<Canonical, Refusal> {
        let VersionKey { tenant, passport_id, snapshot_id, rules_id, build_id, issued_at } = &self.key;
        let text = Text {
            format: FORMAT.to_owned(),
            tenant: tenant.as_str().to_owned(),
            passport_id: *passport_id,
            passport_version_id: self.passport_version_id,
            snapshot_id: *snapshot_id,
            rules_id: *rules_id,
            build_id: build_id.as_str().to_owned(),
            issued_at: issued_at.to_string(),
            payload_hash: self.payload_hash,
            proof_root: self.proof_root,
            facts: self.facts,
            rules_hash: self.rules_hash,
        };
        Canonical::of("receipt", &text)
    }

    /// Reads a receipt; it must be canonical, of this format, and its version id must follow from its key.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let refuse = |why: &str| Refusal::invalid(format!("receipt is refused: {why}"));
        Canonical::read("receipt", text)?;
        let text: Text = serde_json::from_str(text).map_err(|error| refuse(&error.to_string()))?;
        if text.format != FORMAT {
            return Err(refuse(&format!("its format is not {FORMAT}")));
        }
        let key = VersionKey {
            tenant: TenantName::new(text.tenant)?,
            passport_id: text.passport_id,
            snapshot_id: text.snapshot_id,
            rules_id: text.rules_id,
            build_id: BuildId::new(text.build_id)?,
            issued_at: Timestamp::parse("issued_at", &text.issued_at)?,
        };
        // A moment has many spellings; the one that we write is the one that counts.
        if key.issued_at.to_string() != text.issued_at {
            return Err(refuse(&format!("its issued_at is not written as {}", key.issued_at)));
        }
        let wanted = key.version_id()?;
        if wanted != text.passport_version_id {
            return Err(refuse(&format!("its passport_version_id does not follow from its key, that gives {wanted}")));
        }
        let (payload_hash, proof_root, rules_hash) = (text.payload_hash, text.proof_root, text.rules_hash);
        Ok(Self { key, passport_version_id: wanted, payload_hash, proof_root, facts: text.facts, rules_hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        let key = VersionKey::example();
        Receipt {
            passport_version_id: key.version_id().unwrap(),
            key,
            payload_hash: Digest::of(b"payload"),
            proof_root: Digest::of(b"root"),
            facts: 3,
            rules_hash: Digest::of(b"rules"),
        }
    }

    #[test]
    fn a_receipt_is_read_back_as_it_was_written() {
        let canonical = receipt().canonical().unwrap();
        assert_eq!(Receipt::read(canonical.as_str()).unwrap(), receipt());
        assert_eq!(canonical.hash(), Digest::of(canonical.as_str().as_bytes()));
        assert!(
            canonical.as_str().starts_with(r#"{"build_id":"0.1.0","facts":3,"format":"BPC-RECEIPT-1","issued_at":"#)
        );
    }

    #[test]
    fn every_part_changes_the_hash() {
        type Change = fn(&mut Receipt);
        let changes: [Change; 5] = [
            |receipt| receipt.payload_hash = Digest::of(b"other"),
            |receipt| receipt.proof_root = Digest::of(b"other"),
            |receipt| receipt.rules_hash = Digest::of(b"other"),
            |receipt| receipt.facts += 1,
            |receipt| receipt.key.tenant = TenantName::new("other").unwrap(),
        ];
        let hash = receipt().canonical().unwrap().hash();
        for change in changes {
            let mut other = receipt();
            change(&mut other);
            assert_ne!(other.canonical().unwrap().hash(), hash, "{other:?}");
        }
    }

    #[test]
    fn what_is_not_a_receipt_is_refused() {
        let text = receipt().canonical().unwrap().as_str().to_owned();
        for (from, to, why) in [
            ("BPC-RECEIPT-1", "BPC-RECEIPT-2", "its format"),
            ("\"facts\":3", "\"facts\": 3", "canonical"),
            ("\"facts\":3,", "", "missing field"),
            ("}", ",\"zebra\":1}", "unknown field"),
            ("acme", "other", "does not follow from its key"),
            ("acme", "a me", "tenant `a me`"),
            ("09:30:00Z", "09:30:00.0Z", "is not written as"),
            ("09:30:00Z", "10:30:00+01:00", "is not written as"),
            ("2026-11-15T", "soon", "issued_at"),
        ] {
            let refused = Receipt::read(&text.replace(from, to)).unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
        }
    }
}
