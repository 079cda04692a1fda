//! [`LinkId`]: what a canonical link is called, by everybody alike; [`Link`]: what its user reads of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::{Database, Record, StoreError, row};

use crate::canonical::CanonicalUrl;

/// Longest name that a gate may have.
const GATE_BYTES_MAX: usize = 100;
/// Most links of one answer.
pub const LINKS_MAX: u32 = 1_000;

/// The first 128 bits of the SHA-256 of a canonical address, in hexadecimal: two processes that meet a link for the first
/// time at once call it the same, and its job has one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(String);

impl LinkId {
    /// The name of this link.
    pub fn of(url: &CanonicalUrl) -> Self {
        let hash = Sha256::digest(url.as_str().as_bytes());
        Self(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// The name in a row's `id`.
    pub(crate) fn read(row: &Record) -> Result<Self, StoreError> {
        row.get("id").map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The gate that links of a [site](CanonicalUrl::site) pass. Of a very long name the end is taken: who shares it shares
/// the limit.
pub fn gate(site: &str) -> String {
    let prefix = "domain:";
    let from = (prefix.len() + site.len()).saturating_sub(GATE_BYTES_MAX);
    // Names are ASCII.
    format!("{prefix}{}", site.get(from..).unwrap_or_default())
}

/// A link of a user, in however many folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its name.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Whom it belongs to.
    pub domain: String,
    /// `waiting`, `enriched` or `dead`.
    pub status: &'static str,
    /// What it is called.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// What it says its address is.
    pub canonical_url: Option<String>,
    /// The language it is in.
    pub language: Option<String>,
    /// Where it has moved to.
    pub redirects_to: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// In how many places the user has it.
    pub placements: u32,
}

impl Link {
    /// Links of a user, by name, behind this one, at most so many; nobody else's.
    pub async fn list(database: &Database, user: &str, after: &str, limit: u32) -> Result<Vec<Self>, StoreError> {
        let params = row![user, after, limit.clamp(1, LINKS_MAX)];
        let rows = database.query(include_str!("sql/list_links.sql"), params).await?;
        rows.iter().map(Self::read).collect()
    }

    fn read(row: &Record) -> Result<Self, StoreError> {
        let status = match row.get::<String>("state")?.as_str() {
            "enriched" => "enriched",
            "dead" => "dead",
            _ => "waiting",
        };
        Ok(Self {
            id: row.get("id")?,
            url: row.get("url")?,
            domain: row.get("domain")?,
            status,
            title: row.get("title")?,
            description: row.get("description")?,
            canonical_url: row.get("canonical_url")?,
            language: row.get("language")?,
            redirects_to: row.get("redirects_to")?,
            last_error: row.get("last_error")?,
            placements: row.get("placements")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_one_name_wherever_it_comes_from() {
        let name = |text| LinkId::of(&CanonicalUrl::parse(text).unwrap());
        assert_eq!(name("https://A.example/?utm_source=x#top"), name("https://a.example/"));
        assert_ne!(name("https://a.example/"), name("http://a.example/"));
        assert_eq!(name("https://a.example/").as_str().len(), 32);
    }

    #[test]
    fn every_domain_has_a_gate_that_is_a_name() {
        let long = format!("{}example", "abcdefgh.".repeat(25));
        for domain in ["a.example", "2001:db8::7", "192.0.2.7", long.as_str()] {
            let gate = gate(domain);
            assert!(tenure::core::GateName::new(gate.as_str()).is_ok(), "{gate}");
        }
        assert_eq!(gate("a.example"), "domain:a.example");
        assert!(gate(&long).ends_with(".example"));
    }
}
