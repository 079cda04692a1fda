//! The verbs of access.

use async_trait::async_trait;
use tenure_core::key::SecretHash;
use tenure_core::name::TenantName;
use tenure_core::{KeyId, WorkerId};

use crate::access::{
    KeyFilter, KeyRecord, NewKey, NewRemote, NewSession, RemoteToken, RevokeKey, SessionRecord, SetTenant,
    TenantFilter, TenantRecord,
};
use crate::error::StoreError;

/// Who may do what.
#[async_trait]
pub trait AccessStore: Send + Sync {
    /// Makes a tenant or changes it; answers whether it is new. The same again changes nothing and is not journaled.
    async fn set_tenant(&self, request: SetTenant) -> Result<bool, StoreError>;

    /// Tenants, by name.
    async fn list_tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>, StoreError>;

    /// One tenant. `NotFound` when nobody made it and it never had a job.
    async fn show_tenant(&self, tenant: &TenantName) -> Result<TenantRecord, StoreError>;

    /// Makes a key. `NotFound` when there is no such tenant, or no such key to replace; `Conflict` when the id is taken.
    async fn create_key(&self, request: NewKey) -> Result<KeyRecord, StoreError>;

    /// A key, also one that has ended: whoever asks has to look.
    async fn find_key(&self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError>;

    /// Keys that match.
    async fn list_keys(&self, filter: &KeyFilter) -> Result<Vec<KeyRecord>, StoreError>;

    /// Ends a key at once; answers whether it was not revoked before. `NotFound` for an unknown id and for one out of
    /// sight alike.
    async fn revoke_key(&self, request: RevokeKey) -> Result<bool, StoreError>;

    /// Writes down that these keys were used now.
    async fn use_keys(&self, keys: Vec<KeyId>) -> Result<(), StoreError>;

    /// Enters a start of a worker that comes over HTTP.
    async fn register_remote(&self, request: NewRemote) -> Result<WorkerId, StoreError>;

    /// What proves a worker; `None` for a number that nobody was given and for a worker that is no remote one.
    async fn find_remote(&self, worker: WorkerId) -> Result<Option<RemoteToken>, StoreError>;

    /// Begins a session of somebody who signed in with a key, and deletes a bounded batch of those that are over.
    /// `NotFound` when there is no such key; `Conflict` when the hash is another session's.
    async fn begin_session(&self, request: NewSession) -> Result<(), StoreError>;

    /// The session of a token, while it lasts. Whether its key is still good the caller has to look.
    async fn find_session(&self, token: &SecretHash) -> Result<Option<SessionRecord>, StoreError>;

    /// Ends a session, if there is one.
    async fn end_session(&self, token: &SecretHash) -> Result<(), StoreError>;
}
