//! Answers that are kept for a while. Losing them costs a call, so nothing here is part of a transaction.

use std::time::Duration;

use tenure_core::name::check_text;
use tenure_core::{Invalid, Json, Timestamp};

/// Largest answer, in bytes of JSON.
pub const CACHED_BYTES_MAX: usize = 1 << 20;
/// Longest time that one is kept.
pub const CACHE_TTL_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Keep an answer.
#[derive(Debug, Clone)]
pub struct PutCached {
    /// By this key; what was there goes.
    pub key: String,
    /// The answer.
    pub value: Json,
    /// For so long, by the store's clock.
    pub ttl: Duration,
}

/// An answer that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The answer.
    pub value: Json,
    /// It is good until then.
    pub expires_at: Timestamp,
}

impl PutCached {
    /// Refuses a key that is no text, an answer that is too large, and a time that is none.
    pub fn check(&self) -> Result<(), Invalid> {
        check_key(&self.key)?;
        self.value.check_bytes("cached value", CACHED_BYTES_MAX)?;
        if !self.ttl.is_zero() && self.ttl <= CACHE_TTL_MAX {
            return Ok(());
        }
        let value = tenure_core::duration::format(self.ttl);
        Err(Invalid::new("ttl", value, "an answer is kept for more than nothing and at most 365d"))
    }
}

/// Refuses a key that is no text.
pub fn check_key(key: &str) -> Result<(), Invalid> {
    check_text("cache key", key)
}
