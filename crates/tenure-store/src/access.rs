//! Who may do what: tenants, their keys, and the tokens of workers that come over HTTP.

use std::time::Duration;

use tenure_core::key::SecretHash;
use tenure_core::name::{TenantName, WorkerName, check_text};
use tenure_core::{Invalid, KeyId, Scope, Scopes, Timestamp};

use crate::error::StoreError;
use crate::operate::{Quota, Word};
use crate::record::Sight;

/// Longest time that a key is given; one without an end is good until it is revoked.
pub const KEY_LIFE_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// Most keys of one tenant that can be used at the same time.
pub const KEYS_MAX: u32 = 200;
/// Most sessions of one tenant at the same time, those of revoked keys not counted.
pub const SESSIONS_MAX: u32 = 1_000;

/// Shortest time that a session is given.
pub const SESSION_MIN: Duration = Duration::from_secs(60);
/// Longest time that a session is given.
pub const SESSION_MAX: Duration = Duration::from_secs(7 * 86_400);
/// How many sessions that are over one begin deletes at most.
pub const SESSIONS_ENDED_MAX: u32 = 100;

/// Make a tenant, or change it.
#[derive(Debug, Clone)]
pub struct SetTenant {
    /// Which.
    pub tenant: TenantName,
    /// How many jobs it may have pending in each fair queue, instead of the queue's own quota; `None` leaves it as it is.
    pub quota: Option<Quota>,
    /// Who and why.
    pub word: Word,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRecord {
    /// Its name.
    pub name: TenantName,
    /// How many jobs it may have pending in each fair queue, where that is not the queue's own quota.
    pub quota: Option<u32>,
    /// Keys that can be used now.
    pub keys: u64,
}

/// Which tenants to list, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantFilter {
    /// Only names after this one: the last of the page before.
    pub after: Option<TenantName>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// Make a key. The caller made its text and keeps it; here is what the store knows of it.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its public name.
    pub id: KeyId,
    /// Of its secret.
    pub hash: SecretHash,
    /// Whose it is; `None` for operators, who see every tenant.
    pub tenant: Option<TenantName>,
    /// What it is for, in a person's words.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// How long it is good, at most [`KEY_LIFE_MAX`]; `None`: until it is revoked, or until the end of the key that it
    /// replaces.
    pub life: Option<Duration>,
    /// The key whose place it takes, and how long that one is good yet.
    pub replaces: Option<(KeyId, Duration)>,
    /// Who and why.
    pub word: Word,
}

/// A key, as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its public name.
    pub id: KeyId,
    /// Of its secret.
    pub hash: SecretHash,
    /// Whose it is; `None` for operators.
    pub tenant: Option<TenantName>,
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When somebody ended it.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub used_at: Option<Timestamp>,
}

/// Which keys to list, by tenant (operators' first) and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFilter {
    /// What the caller may see: a tenant sees its own, not the operators'. Where a second wall stands it is told no
    /// hashes: they are all zero.
    pub sight: Sight,
    /// Also those that have ended.
    pub ended_too: bool,
    /// Only ids after this one: the last of the page before.
    pub after: Option<KeyId>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// End a key.
#[derive(Debug, Clone)]
pub struct RevokeKey {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub key: KeyId,
    /// Who and why.
    pub word: Word,
}

/// Enter a worker that comes over HTTP.
#[derive(Debug, Clone)]
pub struct NewRemote {
    /// As people read it.
    pub name: WorkerName,
    /// The key it came with.
    pub key: KeyId,
    /// Of its token's secret.
    pub token: SecretHash,
}

/// What proves a worker that comes over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteToken {
    /// The key it came with.
    pub key: KeyId,
    /// Of its token's secret.
    pub token: SecretHash,
}

/// Begin a session of somebody who signed in with a key. The caller made its token and keeps it.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Of its token.
    pub token_hash: SecretHash,
    /// The key that was shown.
    pub key: KeyId,
    /// How long it lasts, [`SESSION_MIN`] to [`SESSION_MAX`].
    pub lasts: Duration,
}

/// A session, as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The key it began with.
    pub key: KeyId,
    /// When it began.
    pub began_at: Timestamp,
    /// When it is over.
    pub expires_at: Timestamp,
}

/// The refusal of a tenant's session beyond [`SESSIONS_MAX`].
pub fn beyond_sessions_limit(tenant: &TenantName) -> StoreError {
    StoreError::limit("sessions", tenant, SESSIONS_MAX, "sign out elsewhere, or revoke the key that has most of them")
}

impl NewSession {
    /// Refuses a session that is over at once or never.
    pub fn check(&self) -> Result<(), Invalid> {
        if (SESSION_MIN..=SESSION_MAX).contains(&self.lasts) {
            return Ok(());
        }
        Err(Invalid::new("lasts", tenure_core::duration::format(self.lasts), "a session lasts 1m to 7d"))
    }
}

impl SetTenant {
    /// Refuses a quota out of bounds and words that are no text.
    pub fn check(&self) -> Result<(), Invalid> {
        self.quota.map_or(Ok(()), Quota::check)?;
        self.word.check()
    }
}

impl TenantFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

impl NewKey {
    /// The refusal of a tenant's key beyond [`KEYS_MAX`]; `None` for an operator's key, which no limit counts.
    pub fn beyond_limit(&self) -> Option<StoreError> {
        let way_out = "revoke one with `tenure keys revoke KEY`";
        self.tenant.as_ref().map(|tenant| StoreError::limit("keys", tenant, KEYS_MAX, way_out))
    }

    /// Refuses a name that is no text, a life without end or length, and a worker's key for one tenant: queues belong to
    /// all of them.
    pub fn check(&self) -> Result<(), Invalid> {
        check_text("name", &self.name)?;
        self.word.check()?;
        if self.tenant.is_some() && self.scopes.allow(Scope::Worker) {
            let limit = "a worker claims jobs of every tenant: its key belongs to none";
            return Err(Invalid::new("scopes", self.scopes, limit));
        }
        let overlap = self.replaces.as_ref().map(|(_, overlap)| *overlap);
        for (field, time, least) in [("life", self.life, 1), ("overlap", overlap, 0)] {
            let bounds = Duration::from_secs(least)..=KEY_LIFE_MAX;
            if let Some(time) = time.filter(|time| !bounds.contains(time)) {
                let value = tenure_core::duration::format(time);
                return Err(Invalid::new(field, value, format!("it is {least}s to 3650d")));
            }
        }
        Ok(())
    }
}

impl KeyRecord {
    /// Whether it can be used at `now`.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }

    /// Whether it is made of the same as `new`: the answer to a repetition.
    pub fn is_made_of(&self, new: &NewKey) -> bool {
        (&self.hash, &self.tenant, &self.name, self.scopes) == (&new.hash, &new.tenant, &new.name, new.scopes)
    }
}

impl KeyFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}
