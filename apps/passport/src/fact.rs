//! [`Fact`]: one statement about a battery, as it was read from a document.
//!
//! A fact is named by its type and key; a document that says the same again adds nothing (`fact_type`, `fact_key`,
//! `schema_version` and `payload_hash` are unique for a tenant), one that says something else adds a fact beside the old.

use serde::Serialize;

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;

/// What is known about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What kind of thing: `bom.component`.
    pub fact_type: String,
    /// Which one: `cathode/nickel`.
    pub fact_key: String,
    /// By which version of its shape the payload was written.
    pub schema_version: u32,
    /// What is said, as canonical JSON.
    pub payload: Canonical,
}

/// What a fact's own hash covers. A change here breaks every proof that was given: it needs another label than `BPC1`.
#[derive(Serialize)]
struct Identity<'a> {
    fact_type: &'a str,
    fact_key: &'a str,
    schema_version: u32,
    payload_hash: Digest,
}

impl Fact {
    /// The hash of what is said.
    pub const fn payload_hash(&self) -> Digest {
        self.payload.hash()
    }

    /// The hash of the whole fact, of which the proof is made: the SHA-256 of the canonical JSON of `fact_key`,
    /// `fact_type`, `payload_hash` and `schema_version`. The payload's hash alone would fit a fact of another name.
    pub fn hash(&self) -> Result<Digest, Refusal> {
        let Self { fact_type, fact_key, schema_version, payload } = self;
        let (schema_version, payload_hash) = (*schema_version, payload.hash());
        Ok(Canonical::of("fact", &Identity { fact_type, fact_key, schema_version, payload_hash })?.hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact() -> Fact {
        Fact {
            fact_type: "bom.component".to_owned(),
            fact_key: "cathode/nickel".to_owned(),
            schema_version: 1,
            payload: Canonical::of("payload", &serde_json::json!({"mass_mg": 1})).unwrap(),
        }
    }

    #[test]
    fn every_part_of_a_fact_counts() {
        type Change = fn(&mut Fact);
        let changes: [Change; 4] = [
            |fact| fact.fact_type.push('x'),
            |fact| fact.fact_key.push('x'),
            |fact| fact.schema_version += 1,
            |fact| fact.payload = Canonical::of("payload", &2).unwrap(),
        ];
        for change in changes {
            let mut other = fact();
            change(&mut other);
            assert_ne!(other.hash(), fact().hash(), "{other:?}");
        }
    }

    #[test]
    fn a_known_fact_keeps_its_hash() {
        // sha256 of {"fact_key":"cathode/nickel","fact_type":"bom.component","payload_hash":"<64 digits>","schema_version":1}
        assert_eq!(fact().payload_hash(), Digest::of(br#"{"mass_mg":1}"#));
        let text = format!(
            r#"{{"fact_key":"cathode/nickel","fact_type":"bom.component","payload_hash":"{}","schema_version":1}}"#,
            Digest::of(br#"{"mass_mg":1}"#)
        );
        assert_eq!(fact().hash().unwrap(), Digest::of(text.as_bytes()));
    }
}
