//! Answers that are kept for a while.

use async_trait::async_trait;
use tenure_core::Json;
use tenure_store::cache::{Cached, PutCached, check_key};
use tenure_store::{CacheStore, StoreError};
use tokio_postgres::types::Type;

use crate::call::Param;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, millis, time};

const FIND_CACHED: Statement = Statement {
    name: "find_cached",
    sql: "select value::text as value, expires_at from tenure.cache where key = $1 and expires_at > coalesce($2, clock_timestamp())",
};
const FORGET_CACHED: Statement = Statement { name: "forget_cached", sql: "delete from tenure.cache where key = $1" };

#[async_trait]
impl CacheStore for PgStore {
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError> {
        check_key(key)?;
        let now = self.moment();
        let rows = self.call(Desk::Short, FIND_CACHED, &[(&key, Type::TEXT), (&now, Type::TIMESTAMPTZ)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let value = Json::from_store(get::<String>(row, "value")?);
        Ok(Some(Cached { value, expires_at: time(row, "expires_at")? }))
    }

    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError> {
        request.check()?;
        let (value, ttl, now) = (request.value.as_str(), millis(request.ttl), self.moment());
        let params: [Param<'_>; 4] =
            [(&request.key, Type::TEXT), (&value, Type::TEXT), (&ttl, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        self.call(Desk::Short, statement::PUT_CACHED, &params).await?;
        Ok(())
    }

    async fn forget_cached(&self, key: &str) -> Result<(), StoreError> {
        check_key(key)?;
        self.call(Desk::Short, FORGET_CACHED, &[(&key, Type::TEXT)]).await?;
        Ok(())
    }

    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError> {
        let (most, now) = (i64::try_from(most).unwrap_or(i64::MAX), self.moment());
        let rows =
            self.call(Desk::Long, statement::PRUNE_CACHE, &[(&most, Type::INT8), (&now, Type::TIMESTAMPTZ)]).await?;
        Ok(rows.len() as u64)
    }
}
