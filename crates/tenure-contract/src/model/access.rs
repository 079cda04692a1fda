//! Tenants, keys, and the tokens of workers that come over HTTP.

use async_trait::async_trait;
use tenure_core::journal::JournalEvent;
use tenure_core::key::{SecretHash, end_of_successor};
use tenure_core::name::TenantName;
use tenure_core::{KeyId, Timestamp, WorkerId};
use tenure_store::access::{
    KEYS_MAX, KeyFilter, KeyRecord, NewKey, NewRemote, NewSession, RemoteToken, RevokeKey, SESSIONS_ENDED_MAX,
    SESSIONS_MAX, SessionRecord, SetTenant, TenantFilter, TenantRecord, beyond_sessions_limit,
};
use tenure_store::operate::Quota;
use tenure_store::record::Sight;
use tenure_store::{AccessStore, StoreError};

use super::ModelStore;
use super::admin::register;
use super::tables::Tables;

#[async_trait]
impl AccessStore for ModelStore {
    async fn set_tenant(&self, request: SetTenant) -> Result<bool, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let is_new = !tables.tenants.contains(&request.tenant);
            tables.tenant_no(&request.tenant);
            let before = tables.tenant_quotas.get(&request.tenant).copied();
            let after = request.quota.map_or(before, Quota::pending);
            match after {
                Some(quota) => tables.tenant_quotas.insert(request.tenant.clone(), quota),
                None => tables.tenant_quotas.remove(&request.tenant),
            };
            if is_new || before != after {
                tables.write(now, None, JournalEvent::TenantSet, None, Vec::new(), &request.word);
                tables.naming(&[("tenant", request.tenant.as_str())]);
            }
            Ok(is_new)
        })
    }

    async fn list_tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let mut names: Vec<&TenantName> = tables.tenants.iter().collect();
            names.sort_unstable();
            let wanted = names.into_iter().filter(|name| filter.after.as_ref().is_none_or(|after| *name > after));
            Ok(wanted.take(filter.limit as usize).map(|name| tenant(tables, name, now)).collect())
        })
    }

    async fn show_tenant(&self, name: &TenantName) -> Result<TenantRecord, StoreError> {
        self.look(|tables, now| match tables.tenants.contains(name) {
            true => Ok(tenant(tables, name, now)),
            false => Err(StoreError::NotFound(format!("tenant {name}"))),
        })
    }

    async fn create_key(&self, request: NewKey) -> Result<KeyRecord, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            if let Some(known) = tables.api_keys.get(&request.id) {
                return match known.is_made_of(&request) {
                    true => Ok(known.clone()),
                    false => Err(StoreError::Conflict(format!("key {} is there already", request.id))),
                };
            }
            if let Some(tenant) = request.tenant.as_ref().filter(|tenant| !tables.tenants.contains(tenant)) {
                return Err(StoreError::NotFound(format!("tenant {tenant}")));
            }
            let mut ends = request.life.map(|life| now.plus(life));
            if let Some((old, overlap)) = &request.replaces {
                let sight = request.tenant.clone().map_or(Sight::All, Sight::Tenant);
                let old = find(tables, old, &sight)?;
                if old.revoked_at.is_some() {
                    return Err(StoreError::Conflict(format!("key {} is revoked: make a new one", old.id)));
                }
                ends = end_of_successor(old.expires_at, ends, now)
                    .ok_or_else(|| StoreError::Conflict(format!("key {} has ended: make a new one", old.id)))?;
                let end = now.plus(*overlap);
                old.expires_at = Some(old.expires_at.map_or(end, |sooner| sooner.min(end)));
                let old = old.id.clone();
                tables.write(now, None, JournalEvent::KeyRevoked, None, Vec::new(), &request.word);
                tables.naming(&named(&old, request.tenant.as_ref()));
            }
            if let Some((tenant, refusal)) = request.tenant.as_ref().zip(request.beyond_limit()) {
                let usable =
                    tables.api_keys.values().filter(|key| key.tenant.as_ref() == Some(tenant) && key.is_good(now));
                if usable.count() >= KEYS_MAX as usize {
                    return Err(refusal);
                }
            }
            let record = KeyRecord {
                id: request.id.clone(),
                hash: request.hash,
                tenant: request.tenant,
                name: request.name,
                scopes: request.scopes,
                created_at: now,
                expires_at: ends,
                revoked_at: None,
                used_at: None,
            };
            tables.api_keys.insert(request.id, record.clone());
            tables.write(now, None, JournalEvent::KeyCreated, None, Vec::new(), &request.word);
            tables.naming(&named(&record.id, record.tenant.as_ref()));
            Ok(record)
        })
    }

    async fn find_key(&self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        self.look(|tables, _| Ok(tables.api_keys.get(key).cloned()))
    }

    async fn list_keys(&self, filter: &KeyFilter) -> Result<Vec<KeyRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let wanted = |key: &&KeyRecord| {
                is_seen(key, &filter.sight)
                    && (filter.ended_too || key.is_good(now))
                    && filter.after.as_ref().is_none_or(|after| key.id > *after)
            };
            Ok(tables.api_keys.values().filter(wanted).take(filter.limit as usize).cloned().collect())
        })
    }

    async fn revoke_key(&self, request: RevokeKey) -> Result<bool, StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let key = find(tables, &request.key, &request.sight)?;
            if key.revoked_at.is_some() {
                return Ok(false);
            }
            key.revoked_at = Some(now);
            let tenant = key.tenant.clone();
            tables.write(now, None, JournalEvent::KeyRevoked, None, Vec::new(), &request.word);
            tables.naming(&named(&request.key, tenant.as_ref()));
            Ok(true)
        })
    }

    async fn use_keys(&self, keys: Vec<KeyId>) -> Result<(), StoreError> {
        self.transact(|tables, now| {
            for key in keys {
                if let Some(known) = tables.api_keys.get_mut(&key) {
                    known.used_at = Some(now);
                }
            }
            Ok(())
        })
    }

    async fn register_remote(&self, request: NewRemote) -> Result<WorkerId, StoreError> {
        self.transact(|tables, now| {
            let worker = register(tables, request.name, now)?;
            tables.remotes.insert(worker, RemoteToken { key: request.key, token: request.token });
            Ok(worker)
        })
    }

    async fn find_remote(&self, worker: WorkerId) -> Result<Option<RemoteToken>, StoreError> {
        self.look(|tables, _| Ok(tables.remotes.get(&worker).cloned()))
    }

    async fn begin_session(&self, request: NewSession) -> Result<(), StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let over = tables.sessions.iter().filter(|(_, session)| session.expires_at <= now).map(|(token, _)| *token);
            for token in over.take(SESSIONS_ENDED_MAX as usize).collect::<Vec<_>>() {
                tables.sessions.remove(&token);
            }
            let NewSession { token_hash, key, lasts } = request;
            let known = tables.api_keys.get(&key).ok_or_else(|| StoreError::NotFound(format!("key {key}")))?;
            let owner = known.tenant.clone();
            let began = SessionRecord { key, began_at: now, expires_at: now.plus(lasts) };
            let known = tables.sessions.entry(token_hash).or_insert_with(|| began.clone());
            if known.key != began.key {
                return Err(StoreError::Conflict("a session of this hash is there already".to_owned()));
            }
            let counts = |session: &&SessionRecord| {
                let key = tables.api_keys.get(&session.key);
                session.expires_at > now && key.is_some_and(|key| key.tenant == owner && key.revoked_at.is_none())
            };
            match owner.as_ref() {
                Some(owner) if tables.sessions.values().filter(counts).count() > SESSIONS_MAX as usize => {
                    Err(beyond_sessions_limit(owner))
                }
                _ => Ok(()),
            }
        })
    }

    async fn find_session(&self, token: &SecretHash) -> Result<Option<SessionRecord>, StoreError> {
        self.look(|tables, now| Ok(tables.sessions.get(token).filter(|session| session.expires_at > now).cloned()))
    }

    async fn end_session(&self, token: &SecretHash) -> Result<(), StoreError> {
        self.transact(|tables, _| {
            tables.sessions.remove(token);
            Ok(())
        })
    }
}

fn tenant(tables: &Tables, name: &TenantName, now: Timestamp) -> TenantRecord {
    let mine = |key: &&KeyRecord| key.tenant.as_ref() == Some(name) && key.is_good(now);
    let keys = tables.api_keys.values().filter(mine).count() as u64;
    TenantRecord { name: name.clone(), quota: tables.tenant_quotas.get(name).copied(), keys }
}

/// What a row about a key names.
fn named<'n>(key: &'n KeyId, tenant: Option<&'n TenantName>) -> Vec<(&'static str, &'n str)> {
    let tenant = tenant.map(|tenant| ("tenant", tenant.as_str()));
    [("key", key.as_str())].into_iter().chain(tenant).collect()
}

fn is_seen(key: &KeyRecord, sight: &Sight) -> bool {
    sight.tenant().is_none_or(|own| key.tenant.as_ref() == Some(own))
}

fn find<'t>(tables: &'t mut Tables, id: &KeyId, sight: &Sight) -> Result<&'t mut KeyRecord, StoreError> {
    let key = tables.api_keys.get_mut(id).filter(|key| is_seen(key, sight));
    key.ok_or_else(|| StoreError::NotFound(format!("key {id}")))
}
