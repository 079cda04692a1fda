//! Tenants and keys as JSON.

use serde::Serialize;
use tenure_core::Credential;
use tenure_store::access::{KeyRecord, TenantRecord};
use utoipa::ToSchema;

use super::date;

/// One tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct TenantLine {
    name: String,
    /// Pending jobs it may have in each fair queue; null: as the queue says.
    quota: Option<u32>,
    /// Keys that can be used now.
    keys: u64,
}

/// One key. Its secret is nowhere.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyLine {
    id: String,
    /// Null: operators, who see every tenant.
    tenant: Option<String>,
    name: String,
    scopes: Vec<&'static str>,
    created_at: String,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    /// To the minute.
    used_at: Option<String>,
}

/// A key that was just made, with its text: it is shown this once.
#[derive(Serialize, ToSchema)]
pub struct NewKeyDocument {
    #[serde(flatten)]
    line: KeyLine,
    key: String,
}

impl From<&TenantRecord> for TenantLine {
    fn from(tenant: &TenantRecord) -> Self {
        Self { name: tenant.name.to_string(), quota: tenant.quota, keys: tenant.keys }
    }
}

impl From<&KeyRecord> for KeyLine {
    fn from(key: &KeyRecord) -> Self {
        Self {
            id: key.id.to_string(),
            tenant: key.tenant.as_ref().map(ToString::to_string),
            name: key.name.clone(),
            scopes: key.scopes.iter().map(|scope| scope.as_str()).collect(),
            created_at: key.created_at.to_string(),
            expires_at: date(key.expires_at),
            revoked_at: date(key.revoked_at),
            used_at: date(key.used_at),
        }
    }
}

impl NewKeyDocument {
    /// A new key and its text.
    pub fn new(record: &KeyRecord, credential: &Credential) -> Self {
        Self { line: KeyLine::from(record), key: credential.reveal().to_owned() }
    }
}
