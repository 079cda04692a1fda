//! Tenants, keys, and the tokens of workers that come over HTTP. `migrations/0013_access.sql` does what is written down.

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tenure_core::key::SecretHash;
use tenure_core::name::TenantName;
use tenure_core::{KeyId, WorkerId};
use tenure_store::access::{
    KEYS_MAX, KeyFilter, KeyRecord, NewKey, NewRemote, NewSession, RemoteToken, RevokeKey, SESSIONS_ENDED_MAX,
    SESSIONS_MAX, SessionRecord, SetTenant, TenantFilter, TenantRecord, beyond_sessions_limit,
};
use tenure_store::record::Sight;
use tenure_store::{AccessStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param, transact};
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, millis, named, time, time_maybe};
use crate::wall::Seen;

const SET_TENANT: Statement =
    Statement { name: "set_tenant", sql: "select tenure.set_tenant($1, $2, $3, $4, $5) as is_new" };
const CREATE_KEY: Statement = Statement {
    name: "create_key",
    sql: "select tenure.create_key($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) as answer",
};
const REVOKE_KEY: Statement =
    Statement { name: "revoke_key", sql: "select tenure.revoke_key($1, $2, $3, $4, $5) as is_new" };
const USE_KEYS: Statement = Statement {
    name: "use_keys",
    sql: "update tenure.api_key set used_at = coalesce($2, clock_timestamp()) where id = any ($1::text[])",
};
const REGISTER_REMOTE: Statement = Statement {
    name: "register_remote",
    sql: "insert into tenure.worker (name, registered_at, remote_key, remote_hash) \
          values ($1, coalesce($2, clock_timestamp()), $3, $4) returning id",
};
const FIND_REMOTE: Statement = Statement {
    name: "find_remote",
    sql: "select remote_key, remote_hash from tenure.worker where id = $1 and remote_hash is not null",
};
const FIND_SESSION: Statement = Statement {
    name: "find_session",
    sql: "select key, began_at, expires_at from tenure.session \
          where hash = $1 and expires_at > coalesce($2, clock_timestamp())",
};
const END_SESSION: Statement = Statement { name: "end_session", sql: "delete from tenure.session where hash = $1" };

#[async_trait]
impl AccessStore for PgStore {
    async fn set_tenant(&self, request: SetTenant) -> Result<bool, StoreError> {
        request.check()?;
        let quota = request.quota.map(|quota| quota.pending().map_or(0, u32::cast_signed));
        let (tenant, now) = (request.tenant.as_str(), self.moment());
        let params: [Param<'_>; 5] = [
            (&tenant, Type::TEXT),
            (&quota, Type::INT4),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        is_new(&self.call(Desk::Short, SET_TENANT, &params).await?)
    }

    async fn list_tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>, StoreError> {
        filter.check()?;
        self.tenants(None, filter.after.as_ref(), filter.limit).await
    }

    async fn show_tenant(&self, tenant: &TenantName) -> Result<TenantRecord, StoreError> {
        let found = self.tenants(Some(tenant), None, 1).await?.pop();
        found.ok_or_else(|| StoreError::NotFound(format!("tenant {tenant}")))
    }

    async fn create_key(&self, request: NewKey) -> Result<KeyRecord, StoreError> {
        request.check()?;
        let NewKey { id, hash, tenant, name, scopes, life, replaces, word } = &request;
        let (tenant, scopes) = (tenant.as_ref().map(TenantName::as_str), scopes.to_string());
        let (life, overlap) = (life.map(millis), replaces.as_ref().map(|(_, overlap)| millis(*overlap)));
        let (hash, replaces) = (hash.as_slice(), replaces.as_ref().map(|(key, _)| key.as_str()));
        let (text, now) = (id.as_str(), self.moment());
        let (max, refusal) = (i64::from(KEYS_MAX), request.beyond_limit().map(|refusal| refusal.to_string()));
        let params: [Param<'_>; 13] = [
            (&text, Type::TEXT),
            (&hash, Type::BYTEA),
            (&tenant, Type::TEXT),
            (name, Type::TEXT),
            (&scopes, Type::TEXT),
            (&life, Type::INT8),
            (&replaces, Type::TEXT),
            (&overlap, Type::INT8),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
            (&max, Type::INT8),
            (&refusal, Type::TEXT),
        ];
        // A new key has nothing to be seen yet, but one that it replaces has.
        let rows = match replaces {
            Some(replaced) => self.call_past(tenant, Seen::Key(replaced), CREATE_KEY, &params).await?,
            None => self.call(Desk::Short, CREATE_KEY, &params).await?,
        };
        if rows.first().map(|row| get::<&str>(row, "answer")).transpose()? == Some("taken") {
            return Err(StoreError::Conflict(format!("key {id} is there already")));
        }
        let key = self.find_key(id).await?;
        key.ok_or_else(|| StoreError::Corrupt(format!("key {id} was made and is not there")))
    }

    async fn find_key(&self, key: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let all = KeyFilter { sight: Sight::All, ended_too: true, after: None, limit: 1 };
        Ok(self.keys(Some(key), &all).await?.pop())
    }

    async fn list_keys(&self, filter: &KeyFilter) -> Result<Vec<KeyRecord>, StoreError> {
        filter.check()?;
        self.keys(None, filter).await
    }

    async fn revoke_key(&self, request: RevokeKey) -> Result<bool, StoreError> {
        request.word.check()?;
        let (key, sight, now) = (request.key.as_str(), request.sight.tenant().map(TenantName::as_str), self.moment());
        let params: [Param<'_>; 5] = [
            (&key, Type::TEXT),
            (&sight, Type::TEXT),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        is_new(&self.call_past(sight, Seen::Key(key), REVOKE_KEY, &params).await?)
    }

    async fn use_keys(&self, keys: Vec<KeyId>) -> Result<(), StoreError> {
        let (keys, now): (Vec<&str>, _) = (keys.iter().map(KeyId::as_str).collect(), self.moment());
        self.call(Desk::Short, USE_KEYS, &[(&keys, Type::TEXT_ARRAY), (&now, Type::TIMESTAMPTZ)]).await?;
        Ok(())
    }

    async fn register_remote(&self, request: NewRemote) -> Result<WorkerId, StoreError> {
        let (name, key, token, now) =
            (request.name.as_str(), request.key.as_str(), request.token.as_slice(), self.moment());
        let params: [Param<'_>; 4] =
            [(&name, Type::TEXT), (&now, Type::TIMESTAMPTZ), (&key, Type::TEXT), (&token, Type::BYTEA)];
        let rows = self.call(Desk::Short, REGISTER_REMOTE, &params).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the registry gave no number".to_owned()))?;
        get(row, "id").map(WorkerId)
    }

    async fn find_remote(&self, worker: WorkerId) -> Result<Option<RemoteToken>, StoreError> {
        let rows = self.call(Desk::Short, FIND_REMOTE, &[(&worker.0, Type::INT4)]).await?;
        let token = |row| Ok(RemoteToken { key: named(row, "remote_key")?, token: hash(row, "remote_hash")? });
        rows.first().map(token).transpose()
    }

    async fn begin_session(&self, request: NewSession) -> Result<(), StoreError> {
        request.check()?;
        transact!(self, |tx| self.begin_one_session(&tx, &request).await)
    }

    async fn find_session(&self, token: &SecretHash) -> Result<Option<SessionRecord>, StoreError> {
        let (hash, now) = (token.as_slice(), self.moment());
        let rows = self.call(Desk::Short, FIND_SESSION, &[(&hash, Type::BYTEA), (&now, Type::TIMESTAMPTZ)]).await?;
        let session = |row| {
            Ok(SessionRecord {
                key: named(row, "key")?,
                began_at: time(row, "began_at")?,
                expires_at: time(row, "expires_at")?,
            })
        };
        rows.first().map(session).transpose()
    }

    async fn end_session(&self, token: &SecretHash) -> Result<(), StoreError> {
        self.call(Desk::Short, END_SESSION, &[(&token.as_slice(), Type::BYTEA)]).await?;
        Ok(())
    }
}

impl PgStore {
    async fn begin_one_session(&self, tx: &Transaction<'_>, request: &NewSession) -> Result<(), Failed> {
        let NewSession { token_hash, key, lasts } = request;
        let (hash, text, lasts) = (token_hash.as_slice(), key.as_str(), millis(*lasts));
        // Sessions of a tenant begin one after the other: they are counted.
        let sql =
            "select tenure.count_alone(4, k.tenant) from tenure.api_key k where k.id = $1 and k.tenant is not null";
        tx.query_typed(sql, &[(&text, Type::TEXT)]).await?;
        let (ended_max, max, now) = (i64::from(SESSIONS_ENDED_MAX), i64::from(SESSIONS_MAX), self.moment());
        let params: [Param<'_>; 6] = [
            (&hash, Type::BYTEA),
            (&text, Type::TEXT),
            (&lasts, Type::INT8),
            (&ended_max, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
            (&max, Type::INT8),
        ];
        let row = tx.query_typed_one(&self.text(statement::BEGIN_SESSION), &params).await?;
        match get::<Option<&str>>(&row, "answer")? {
            Some("began") => Ok(()),
            Some("taken") => Err(StoreError::Conflict("a session of this hash is there already".to_owned()).into()),
            Some("full") => Err(beyond_sessions_limit(&named(&row, "tenant")?).into()),
            _ => Err(StoreError::NotFound(format!("key {key}")).into()),
        }
    }

    async fn tenants(
        &self,
        name: Option<&TenantName>,
        after: Option<&TenantName>,
        limit: u32,
    ) -> Result<Vec<TenantRecord>, StoreError> {
        let (name, after) = (name.map(TenantName::as_str), after.map(TenantName::as_str));
        let (limit, now) = (i64::from(limit), self.moment());
        let params: [Param<'_>; 4] =
            [(&name, Type::TEXT), (&after, Type::TEXT), (&limit, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Long, statement::LIST_TENANTS, &params).await?;
        let record = |row| {
            Ok(TenantRecord {
                name: named(row, "name")?,
                quota: get::<Option<i32>>(row, "quota")?.map(i32::cast_unsigned),
                keys: get::<i64>(row, "keys")?.cast_unsigned(),
            })
        };
        rows.iter().map(record).collect()
    }

    async fn keys(&self, key: Option<&KeyId>, filter: &KeyFilter) -> Result<Vec<KeyRecord>, StoreError> {
        let (key, sight, after) = (
            key.map(KeyId::as_str),
            filter.sight.tenant().map(TenantName::as_str),
            filter.after.as_ref().map(KeyId::as_str),
        );
        let (limit, now) = (i64::from(filter.limit), self.moment());
        let params: [Param<'_>; 6] = [
            (&key, Type::TEXT),
            (&sight, Type::TEXT),
            (&filter.ended_too, Type::BOOL),
            (&after, Type::TEXT),
            (&limit, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.call_within(sight, Desk::Short, statement::LIST_API_KEYS, &params).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: named(row, "id")?,
        hash: hash(row, "hash")?,
        tenant: get::<Option<&str>>(row, "tenant")?.map(|_| named(row, "tenant")).transpose()?,
        name: get(row, "name")?,
        scopes: named(row, "scopes")?,
        created_at: time(row, "created_at")?,
        expires_at: time_maybe(row, "expires_at")?,
        revoked_at: time_maybe(row, "revoked_at")?,
        used_at: time_maybe(row, "used_at")?,
    })
}

fn hash(row: &Row, column: &str) -> Result<SecretHash, StoreError> {
    let hash: &[u8] = get(row, column)?;
    hash.try_into().map_err(|_| StoreError::Corrupt(format!("column {column} is {} bytes long", hash.len())))
}

fn is_new(rows: &[Row]) -> Result<bool, StoreError> {
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("a function answered nothing".to_owned()))?;
    get(row, "is_new")
}
