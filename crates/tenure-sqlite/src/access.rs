//! Tenants, keys, and the tokens of workers that come over HTTP.

use async_trait::async_trait;
use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::key::{SecretHash, end_of_successor};
use tenure_core::name::TenantName;
use tenure_core::{KeyId, Timestamp, WorkerId};
use tenure_store::access::{
    KEYS_MAX, KeyFilter, KeyRecord, NewKey, NewRemote, NewSession, RemoteToken, RevokeKey, SESSIONS_ENDED_MAX,
    SESSIONS_MAX, SessionRecord, SetTenant, TenantFilter, TenantRecord, beyond_sessions_limit,
};
use tenure_store::operate::{Quota, Word};
use tenure_store::record::Sight;
use tenure_store::{AccessStore, StoreError};

use crate::fault::Result;
use crate::journal::{self, Entry};
use crate::lane::Urgency;
use crate::queue;
use crate::row::{number, optional_time, optional_word, time, word};
use crate::store::SqliteStore;
use crate::tx::Tx;
use crate::worker;

const LIST_TENANTS: &str = include_str!("sql/list_tenants.sql");
const SET_TENANT: &str = include_str!("sql/set_tenant.sql");
const COUNT_USABLE_KEYS: &str = include_str!("sql/count_usable_keys.sql");
const COUNT_SESSIONS: &str = include_str!("sql/count_sessions.sql");
const ADD_KEY: &str = include_str!("sql/add_api_key.sql");
const FIND_KEY: &str = include_str!("sql/find_api_key.sql");
const LIST_KEYS: &str = include_str!("sql/list_api_keys.sql");
const END_KEY: &str = include_str!("sql/end_api_key.sql");
const USE_KEY: &str = include_str!("sql/use_api_key.sql");
const SET_REMOTE: &str = include_str!("sql/set_remote.sql");
const FIND_REMOTE: &str = include_str!("sql/find_remote.sql");
const ADD_SESSION: &str = include_str!("sql/add_session.sql");
const FIND_SESSION: &str = include_str!("sql/find_session.sql");
const END_SESSION: &str = include_str!("sql/end_session.sql");
const DROP_SESSIONS: &str = include_str!("sql/drop_sessions.sql");

#[async_trait]
impl AccessStore for SqliteStore {
    async fn set_tenant(&self, request: SetTenant) -> std::result::Result<bool, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| set_tenant(tx, &request)).await
    }

    async fn list_tenants(&self, filter: &TenantFilter) -> std::result::Result<Vec<TenantRecord>, StoreError> {
        filter.check()?;
        let TenantFilter { after, limit } = filter.clone();
        self.read(move |tx| list_tenants(tx, None, after.as_ref(), limit)).await
    }

    async fn show_tenant(&self, tenant: &TenantName) -> std::result::Result<TenantRecord, StoreError> {
        let name = tenant.clone();
        let found = self.read(move |tx| list_tenants(tx, Some(&name), None, 1)).await?.pop();
        found.ok_or_else(|| StoreError::NotFound(format!("tenant {tenant}")))
    }

    async fn create_key(&self, request: NewKey) -> std::result::Result<KeyRecord, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| create_key(tx, &request)).await
    }

    async fn find_key(&self, key: &KeyId) -> std::result::Result<Option<KeyRecord>, StoreError> {
        let key = key.clone();
        self.read(move |tx| find_key(tx, &key, &Sight::All)).await
    }

    async fn list_keys(&self, filter: &KeyFilter) -> std::result::Result<Vec<KeyRecord>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list_keys(tx, &filter)).await
    }

    async fn revoke_key(&self, request: RevokeKey) -> std::result::Result<bool, StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| revoke_key(tx, &request)).await
    }

    async fn use_keys(&self, keys: Vec<KeyId>) -> std::result::Result<(), StoreError> {
        self.write(Urgency::Bulk, move |tx| {
            for key in &keys {
                tx.execute(USE_KEY, named_params! { ":id": key.as_str(), ":now": tx.now.as_micros() })?;
            }
            Ok(())
        })
        .await
    }

    async fn register_remote(&self, request: NewRemote) -> std::result::Result<WorkerId, StoreError> {
        self.write(Urgency::Verb, move |tx| {
            let worker = worker::register_worker(tx, &request.name)?;
            let params =
                named_params! { ":worker": worker.0, ":key": request.key.as_str(), ":hash": request.token.as_slice() };
            tx.execute(SET_REMOTE, params)?;
            Ok(worker)
        })
        .await
    }

    async fn find_remote(&self, worker: WorkerId) -> std::result::Result<Option<RemoteToken>, StoreError> {
        self.read(move |tx| {
            tx.one(FIND_REMOTE, named_params! { ":worker": worker.0 }, |row| {
                Ok(RemoteToken { key: word(row, 0)?, token: row.get(1)? })
            })
        })
        .await
    }

    async fn begin_session(&self, request: NewSession) -> std::result::Result<(), StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| begin_session(tx, &request)).await
    }

    async fn find_session(&self, token: &SecretHash) -> std::result::Result<Option<SessionRecord>, StoreError> {
        let token = *token;
        self.read(move |tx| Ok(find_session(tx, &token)?.filter(|session| session.expires_at > tx.now))).await
    }

    async fn end_session(&self, token: &SecretHash) -> std::result::Result<(), StoreError> {
        let token = *token;
        self.write(Urgency::Verb, move |tx| {
            tx.execute(END_SESSION, named_params! { ":hash": token.as_slice() })?;
            Ok(())
        })
        .await
    }
}

fn begin_session(tx: &Tx<'_>, request: &NewSession) -> Result<()> {
    let NewSession { token_hash, key, lasts } = request;
    tx.execute(DROP_SESSIONS, named_params! { ":now": tx.now.as_micros(), ":limit": SESSIONS_ENDED_MAX })?;
    let owner = found(tx, key, &Sight::All)?.tenant;
    let (now, expires_at) = (tx.now.as_micros(), tx.now.plus(*lasts).as_micros());
    tx.execute(
        ADD_SESSION,
        named_params! { ":hash": token_hash.as_slice(), ":key": key.as_str(), ":now": now, ":expires_at": expires_at },
    )?;
    if find_session(tx, token_hash)?.is_none_or(|session| session.key != *key) {
        return Err(StoreError::Conflict("a session of this hash is there already".to_owned()).into());
    }
    if let Some(owner) = owner {
        let tenant = queue::ensure_tenant(tx, &owner)?;
        let params = named_params! { ":tenant": tenant, ":now": now };
        if queue::count_of_tenant(tx, COUNT_SESSIONS, params)? > SESSIONS_MAX {
            return Err(beyond_sessions_limit(&owner).into());
        }
    }
    Ok(())
}

fn find_session(tx: &Tx<'_>, token: &SecretHash) -> Result<Option<SessionRecord>> {
    tx.one(FIND_SESSION, named_params! { ":hash": token.as_slice() }, |row| {
        Ok(SessionRecord { key: word(row, 0)?, began_at: time(row, 1)?, expires_at: time(row, 2)? })
    })
}

fn set_tenant(tx: &Tx<'_>, request: &SetTenant) -> Result<bool> {
    let is_new = queue::find_tenant(tx, &request.tenant)?.is_none();
    let tenant = queue::ensure_tenant(tx, &request.tenant)?;
    let before = queue::tenant_quota(tx, tenant)?;
    let after = request.quota.map_or(before, Quota::pending);
    if is_new || before != after {
        tx.execute(SET_TENANT, named_params! { ":tenant": tenant, ":quota": after })?;
        let quota = after.map_or_else(String::new, |quota| format!(",\"quota\":{quota}"));
        let details = format!("{{\"tenant\":{}{quota}}}", quote(request.tenant.as_str()));
        write_down(tx, JournalEvent::TenantSet, details, &request.word)?;
    }
    Ok(is_new)
}

fn list_tenants(
    tx: &Tx<'_>,
    name: Option<&TenantName>,
    after: Option<&TenantName>,
    limit: u32,
) -> Result<Vec<TenantRecord>> {
    let params = named_params! {
        ":name": name.map(TenantName::as_str), ":after": after.map(TenantName::as_str), ":limit": limit,
        ":now": tx.now.as_micros(),
    };
    tx.all(LIST_TENANTS, params, |row| {
        Ok(TenantRecord { name: word(row, 0)?, quota: row.get(1)?, keys: number::<i64, u64>(row, 2, "keys")? })
    })
}

fn create_key(tx: &Tx<'_>, request: &NewKey) -> Result<KeyRecord> {
    if let Some(known) = find_key(tx, &request.id, &Sight::All)? {
        return match known.is_made_of(request) {
            true => Ok(known),
            false => Err(StoreError::Conflict(format!("key {} is there already", request.id)).into()),
        };
    }
    let tenant = match &request.tenant {
        Some(name) => {
            let known = queue::find_tenant(tx, name)?;
            Some(known.ok_or_else(|| StoreError::NotFound(format!("tenant {name}")))?)
        }
        None => None,
    };
    let whose =
        request.tenant.as_ref().map_or_else(String::new, |name| format!(",\"tenant\":{}", quote(name.as_str())));
    let mut ends = request.life.map(|life| tx.now.plus(life));
    if let Some((old, overlap)) = &request.replaces {
        let sight = request.tenant.clone().map_or(Sight::All, Sight::Tenant);
        let known = found(tx, old, &sight)?;
        if known.revoked_at.is_some() {
            return Err(StoreError::Conflict(format!("key {old} is revoked: make a new one")).into());
        }
        ends = end_of_successor(known.expires_at, ends, tx.now)
            .ok_or_else(|| StoreError::Conflict(format!("key {old} has ended: make a new one")))?;
        let end = tx.now.plus(*overlap);
        let end = known.expires_at.map_or(end, |sooner| sooner.min(end));
        end_key(tx, old, Some(end), known.revoked_at)?;
        let details = format!("{{\"key\":\"{old}\",\"replaced_by\":\"{}\"{whose}}}", request.id);
        write_down(tx, JournalEvent::KeyRevoked, details, &request.word)?;
    }
    tx.execute(
        ADD_KEY,
        named_params! {
            ":id": request.id.as_str(),
            ":hash": request.hash.as_slice(),
            ":tenant": tenant,
            ":name": request.name,
            ":scopes": request.scopes.to_string(),
            ":now": tx.now.as_micros(),
            ":expires_at": ends.map(Timestamp::as_micros),
        },
    )?;
    if let Some((tenant, refusal)) = tenant.zip(request.beyond_limit()) {
        let params = named_params! { ":tenant": tenant, ":now": tx.now.as_micros() };
        if queue::count_of_tenant(tx, COUNT_USABLE_KEYS, params)? > KEYS_MAX {
            return Err(refusal.into());
        }
    }
    let details = format!("{{\"key\":\"{}\",\"scopes\":\"{}\"{whose}}}", request.id, request.scopes);
    write_down(tx, JournalEvent::KeyCreated, details, &request.word)?;
    found(tx, &request.id, &Sight::All)
}

fn revoke_key(tx: &Tx<'_>, request: &RevokeKey) -> Result<bool> {
    let known = found(tx, &request.key, &request.sight)?;
    if known.revoked_at.is_some() {
        return Ok(false);
    }
    end_key(tx, &known.id, known.expires_at, Some(tx.now))?;
    let tenant = known.tenant.map_or_else(String::new, |name| format!(",\"tenant\":{}", quote(name.as_str())));
    write_down(tx, JournalEvent::KeyRevoked, format!("{{\"key\":\"{}\"{tenant}}}", known.id), &request.word)?;
    Ok(true)
}

fn end_key(tx: &Tx<'_>, key: &KeyId, expires_at: Option<Timestamp>, revoked_at: Option<Timestamp>) -> Result<()> {
    let micros = |time: Option<Timestamp>| time.map(|time| time.as_micros());
    let params = named_params! {
        ":id": key.as_str(), ":expires_at": micros(expires_at), ":revoked_at": micros(revoked_at),
    };
    tx.execute(END_KEY, params).map(|_| ())
}

fn found(tx: &Tx<'_>, key: &KeyId, sight: &Sight) -> Result<KeyRecord> {
    let known = find_key(tx, key, sight)?;
    known.ok_or_else(|| StoreError::NotFound(format!("key {key}")).into())
}

fn find_key(tx: &Tx<'_>, key: &KeyId, sight: &Sight) -> Result<Option<KeyRecord>> {
    tx.one(FIND_KEY, named_params! { ":id": key.as_str(), ":sight": sight.tenant().map(TenantName::as_str) }, read_key)
}

fn list_keys(tx: &Tx<'_>, filter: &KeyFilter) -> Result<Vec<KeyRecord>> {
    let params = named_params! {
        ":sight": filter.sight.tenant().map(TenantName::as_str),
        ":ended_too": filter.ended_too,
        ":after": filter.after.as_ref().map(KeyId::as_str),
        ":limit": filter.limit,
        ":now": tx.now.as_micros(),
    };
    tx.all(LIST_KEYS, params, read_key)
}

fn read_key(row: &Row<'_>) -> Result<KeyRecord> {
    Ok(KeyRecord {
        id: word(row, 0)?,
        hash: row.get::<_, SecretHash>(1)?,
        tenant: optional_word(row, 2)?,
        name: row.get(3)?,
        scopes: word(row, 4)?,
        created_at: time(row, 5)?,
        expires_at: optional_time(row, 6)?,
        revoked_at: optional_time(row, 7)?,
        used_at: optional_time(row, 8)?,
    })
}

fn write_down(tx: &Tx<'_>, event: JournalEvent, details: String, word: &Word) -> Result<()> {
    journal::add_json(tx, &Entry { details: Some(details), ..Entry::said(event, word) }, "[]")
}
