//! Webhooks: endpoints, and the deliveries that the journal made.
//!
//! A delivery is a job with a body: its id is the job's, its attempts are the job's, and it goes when the job is pruned.
//! What an endpoint's secret is no store knows: it keeps sealed bytes.

mod change;
mod delivery;

use std::time::Duration;

use tenure_core::name::{TenantName, check_text};
use tenure_core::webhook::check_url;
use tenure_core::{EndpointId, Events, Invalid, Timestamp};

use crate::error::StoreError;
use crate::operate::Word;
use crate::record::Sight;

pub(crate) use delivery::own_gate;

pub use change::EndpointChange;
pub use delivery::{
    Cursor, DeliveryFilter, DeliveryRecord, DeliveryState, DeliverySummary, EventSubject, NewDelivery, PutDeliveries,
    RecordTry, ResendDeliveries, TRIES_MAX, Tried, VALUE_BYTES_MAX, delivery_job,
};

/// Most endpoints of one tenant.
pub const ENDPOINTS_MAX: u32 = 20;
/// Longest time that a secret is good beside the one that took its place.
pub const OVERLAP_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Most sealed bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 400;
/// Longest prefix of headers.
const PREFIX_BYTES_MAX: usize = 40;

/// The refusal of a tenant's endpoint beyond [`ENDPOINTS_MAX`].
pub fn beyond_endpoints_limit(tenant: &TenantName) -> StoreError {
    StoreError::limit("webhook endpoints", tenant, ENDPOINTS_MAX, "remove one with `tenure webhooks remove ENDPOINT`")
}

/// Make an endpoint. The caller made its secret and keeps it; here is what the store keeps.
#[derive(Debug, Clone)]
pub struct NewEndpoint {
    /// Its name, made by the caller: a repeated request is the same endpoint.
    pub id: EndpointId,
    /// Whose jobs it is told of.
    pub tenant: TenantName,
    /// Where to; `None`: wherever a job's `callback_url` says. A tenant has at most one of those.
    pub url: Option<String>,
    /// What it is told.
    pub events: Events,
    /// How its own headers begin.
    pub prefix: String,
    /// Its sealed secret.
    pub secret: Vec<u8>,
    /// Who and why.
    pub word: Word,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointRecord {
    /// Its name.
    pub id: EndpointId,
    /// Whose it is.
    pub tenant: TenantName,
    /// Where to; `None`: wherever a job's `callback_url` says.
    pub url: Option<String>,
    /// What it is told.
    pub events: Events,
    /// How its own headers begin.
    pub prefix: String,
    /// Its sealed secret.
    pub secret: Vec<u8>,
    /// The sealed secret before it, and how long that one is good yet.
    pub previous: Option<(Vec<u8>, Timestamp)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// It is told what happened from then on: when it was made, or enabled again.
    pub listens_since: Timestamp,
    /// Since when it gets nothing, and why.
    pub disabled: Option<(Timestamp, String)>,
    /// Since when no delivery has arrived, while some were given up.
    pub failing_since: Option<Timestamp>,
}

/// Change an endpoint; `None` leaves things as they are.
#[derive(Debug, Clone)]
pub struct ChangeEndpoint {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub endpoint: EndpointId,
    /// Where to.
    pub url: Option<String>,
    /// What it is told.
    pub events: Option<Events>,
    /// How its own headers begin.
    pub prefix: Option<String>,
    /// Another sealed secret, and how long the one before is good yet.
    pub secret: Option<(Vec<u8>, Duration)>,
    /// Whether it gets anything.
    pub enabled: Option<bool>,
    /// Who and why.
    pub word: Word,
}

/// Remove an endpoint, or ask it whether it hears.
#[derive(Debug, Clone)]
pub struct OperateEndpoint {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub endpoint: EndpointId,
    /// Who and why.
    pub word: Word,
}

/// Which endpoints to list, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointFilter {
    /// What the caller may see.
    pub sight: Sight,
    /// Only ids after this one: the last of the page before.
    pub after: Option<EndpointId>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

impl NewEndpoint {
    /// Refuses what is no URL, no secret or no prefix.
    pub fn check(&self) -> Result<(), Invalid> {
        self.url.as_deref().map_or(Ok(()), |url| check_url("url", url))?;
        check_secret(&self.secret)?;
        check_prefix(&self.prefix)?;
        self.word.check()
    }
}

impl ChangeEndpoint {
    /// Nothing changes.
    pub fn new(sight: Sight, endpoint: EndpointId, word: Word) -> Self {
        Self { sight, endpoint, url: None, events: None, prefix: None, secret: None, enabled: None, word }
    }

    /// Refuses what is no URL, no secret or no prefix, and an overlap without end.
    pub fn check(&self) -> Result<(), Invalid> {
        self.url.as_deref().map_or(Ok(()), |url| check_url("url", url))?;
        self.prefix.as_deref().map_or(Ok(()), check_prefix)?;
        if let Some((secret, overlap)) = &self.secret {
            check_secret(secret)?;
            if *overlap > OVERLAP_MAX {
                let value = tenure_core::duration::format(*overlap);
                return Err(Invalid::new("overlap", value, "a secret is good beside the next one for at most 30d"));
            }
        }
        self.word.check()
    }
}

impl EndpointRecord {
    /// Whether it is made of the same as `new`: the answer to a repetition.
    pub fn is_made_of(&self, new: &NewEndpoint) -> bool {
        (&self.tenant, &self.url, &self.events) == (&new.tenant, &new.url, &new.events)
    }
}

impl EndpointFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

fn check_secret(secret: &[u8]) -> Result<(), Invalid> {
    match secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
        true => Err(Invalid::new("secret", "given", format!("sealed it is 1 to {SECRET_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

fn check_prefix(prefix: &str) -> Result<(), Invalid> {
    check_text("header prefix", prefix)?;
    match prefix.len() <= PREFIX_BYTES_MAX {
        true => Ok(()),
        false => Err(Invalid::new("header prefix", prefix, format!("it is at most {PREFIX_BYTES_MAX} bytes"))),
    }
}
