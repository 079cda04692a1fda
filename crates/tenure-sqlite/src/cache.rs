//! Answers that are kept for a while.

use rusqlite::named_params;
use tenure_core::Json;
use tenure_store::cache::{Cached, PutCached};

use crate::fault::Result;
use crate::row::{text, time};
use crate::tx::Tx;

const FIND_CACHED: &str = include_str!("sql/find_cached.sql");
const PUT_CACHED: &str = include_str!("sql/put_cached.sql");
const FORGET_CACHED: &str = include_str!("sql/forget_cached.sql");
const PRUNE_CACHE: &str = include_str!("sql/prune_cache.sql");

pub(crate) fn find_cached(tx: &Tx<'_>, key: &str) -> Result<Option<Cached>> {
    tx.one(FIND_CACHED, named_params! { ":key": key, ":now": tx.now.as_micros() }, |row| {
        Ok(Cached { value: Json::from_store(text(row, 0)?), expires_at: time(row, 1)? })
    })
}

pub(crate) fn put_cached(tx: &Tx<'_>, request: &PutCached) -> Result<()> {
    let expires_at = tx.now.plus(request.ttl).as_micros();
    let (key, value, now) = (request.key.as_str(), request.value.as_str(), tx.now.as_micros());
    let params = named_params! { ":key": key, ":value": value, ":now": now, ":expires_at": expires_at };
    tx.execute(PUT_CACHED, params).map(|_| ())
}

pub(crate) fn forget_cached(tx: &Tx<'_>, key: &str) -> Result<()> {
    tx.execute(FORGET_CACHED, named_params! { ":key": key }).map(|_| ())
}

pub(crate) fn prune_cache(tx: &Tx<'_>, most: u64) -> Result<u64> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let gone = tx.execute(PRUNE_CACHE, named_params! { ":now": tx.now.as_micros(), ":most": most })?;
    Ok(gone as u64)
}
