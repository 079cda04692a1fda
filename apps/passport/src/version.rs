//! [`VersionKey`]: what makes a passport version the one it is, and the id that follows from it.
//!
//! The id is computed, not drawn: a compilation that runs a second time, because a worker died with its lease, makes the
//! same id, the same receipt and the same row, and the unique key over these six finds it there.

use serde::Serialize;
use tenure::{Invalid, TenantName, Timestamp};
use uuid::Uuid;

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::id::of_digest;

/// Longest build id, in bytes.
const BUILD_ID_BYTES_MAX: usize = 100;

/// What is unique among passport versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionKey {
    /// Whose it is.
    pub tenant: TenantName,
    /// Of which passport.
    pub passport_id: Uuid,
    /// From which facts.
    pub snapshot_id: Uuid,
    /// By which rules.
    pub rules_id: Uuid,
    /// By which build of the compiler.
    pub build_id: BuildId,
    /// As of when. It comes with the job, so that a repetition has the same.
    pub issued_at: Timestamp,
}

/// Names a build of the compiler: 1 to 100 of `a-z A-Z 0-9 . _ + -`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId(String);

#[derive(Serialize)]
struct Text<'a> {
    tenant: &'a str,
    passport_id: Uuid,
    snapshot_id: Uuid,
    rules_id: Uuid,
    build_id: &'a str,
    issued_at: String,
}

impl VersionKey {
    /// The version's id: the first 16 bytes of the SHA-256 of the key's canonical JSON, marked as a UUID of version 8.
    pub fn version_id(&self) -> Result<Uuid, Refusal> {
        let Self { tenant, passport_id, snapshot_id, rules_id, build_id, issued_at } = self;
        let text = Text {
            tenant: tenant.as_str(),
            passport_id: *passport_id,
            snapshot_id: *snapshot_id,
            rules_id: *rules_id,
            build_id: build_id.as_str(),
            issued_at: issued_at.to_string(),
        };
        Ok(of_digest(Canonical::of("version key", &text)?.hash()))
    }
}

impl BuildId {
    /// Checks `text` and keeps it.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-');
        if text.is_empty() || text.len() > BUILD_ID_BYTES_MAX || !text.bytes().all(allowed) {
            let limit = format!("it is 1 to {BUILD_ID_BYTES_MAX} of a-z A-Z 0-9 . _ + -, such as 0.1.0");
            return Err(Invalid::new("build_id", text, limit));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
impl VersionKey {
    /// For unit tests.
    pub(crate) fn example() -> Self {
        Self {
            tenant: TenantName::new("acme").unwrap(),
            passport_id: Uuid::from_u128(1),
            snapshot_id: Uuid::from_u128(2),
            rules_id: Uuid::from_u128(3),
            build_id: BuildId::new("0.1.0").unwrap(),
            issued_at: Timestamp::parse("issued_at", "2026-11-15T09:30:00Z").unwrap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: S4.54
    #[test]
    fn the_same_six_make_the_same_id_and_each_of_them_counts() {
        type Change = fn(&mut VersionKey);
        let changes: [Change; 6] = [
            |key| key.tenant = TenantName::new("other").unwrap(),
            |key| key.passport_id = Uuid::from_u128(9),
            |key| key.snapshot_id = Uuid::from_u128(9),
            |key| key.rules_id = Uuid::from_u128(9),
            |key| key.build_id = BuildId::new("0.1.1").unwrap(),
            |key| key.issued_at = Timestamp::from_micros(key.issued_at.as_micros() + 1),
        ];
        let id = VersionKey::example().version_id().unwrap();
        assert_eq!(VersionKey::example().version_id().unwrap(), id);
        assert_eq!(id.get_version_num(), 8);
        for change in changes {
            let mut other = VersionKey::example();
            change(&mut other);
            assert_ne!(other.version_id().unwrap(), id, "{other:?}");
        }
    }

    #[test]
    fn build_ids_are_of_a_small_alphabet() {
        for bad in ["", "a b", "a|b", "é", &"x".repeat(BUILD_ID_BYTES_MAX + 1)] {
            assert_eq!(BuildId::new(bad).unwrap_err().field, "build_id", "{bad:?}");
        }
        assert_eq!(BuildId::new("0.1.0+a1b2").unwrap().as_str(), "0.1.0+a1b2");
    }
}
