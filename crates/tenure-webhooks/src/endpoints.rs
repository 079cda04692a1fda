//! [`Endpoints`]: how endpoints are made and given other secrets, by whoever serves people: the API, the command line.

use std::time::Duration;

use tenure_core::{EndpointId, Events, Invalid, TenantName};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{ChangeEndpoint, EndpointRecord, NewEndpoint};
use tenure_store::{Store, StoreError};

use crate::guard::{Guard, Refused};
use crate::ids::new_ids;
use crate::prefix::Prefix;
use crate::seal::{MasterKeys, Owner};
use crate::secret::Secret;

/// How long a secret is good beside the one that took its place, where nothing is said.
pub const OVERLAP: Duration = Duration::from_secs(86_400);

/// Makes endpoints: checks where they lead, seals their secrets.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    guard: Guard,
    keys: Option<MasterKeys>,
}

/// What somebody wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Whose jobs it is told of.
    pub tenant: TenantName,
    /// Where to; `None`: wherever a job's `callback_url` says.
    pub url: Option<String>,
    /// What it is told.
    pub events: Events,
    /// How its own headers begin.
    pub prefix: Prefix,
    /// A secret that its receiver has already; a new one is made otherwise.
    pub secret: Option<Secret>,
    /// Who and why.
    pub word: Word,
}

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Secrets cannot be kept.
    #[error(
        "no webhook key is configured, and secrets are kept sealed: set `webhook_keys`, made by `tenure webhooks key`"
    )]
    NoKeys,
    /// Its URL is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Endpoints {
    /// Seals with these keys what leads where this guard lets it.
    pub fn new(guard: Guard, keys: Option<MasterKeys>) -> Self {
        Self { guard, keys }
    }

    /// Refuses a URL that would never be called.
    pub fn check_url(&self, url: &str) -> Result<(), Refused> {
        self.guard.check_url(url).map(|_| ())
    }

    /// Makes an endpoint; its secret is told to its owner now or never.
    pub async fn create(&self, store: &dyn Store, wish: Wish) -> Result<(EndpointRecord, Secret), EndpointError> {
        let keys = self.keys.as_ref().ok_or(EndpointError::NoKeys)?;
        wish.url.as_deref().map_or(Ok(()), |url| self.check_url(url))?;
        let job = new_ids(store.now().await?, 1).remove(0);
        let id = EndpointId::from_uuid(*job.as_uuid());
        let secret = wish.secret.unwrap_or_else(Secret::generate);
        let sealed = seal(keys, &secret, &wish.tenant, id);
        let Wish { tenant, url, events, prefix, word, .. } = wish;
        let prefix = prefix.to_string();
        let request = NewEndpoint { id, tenant, url, events, prefix, secret: sealed, word };
        Ok((store.create_endpoint(request).await?, secret))
    }

    /// Gives an endpoint another secret; both sign until `overlap` is over.
    pub async fn rotate(
        &self,
        store: &dyn Store,
        sight: Sight,
        id: EndpointId,
        overlap: Duration,
        word: Word,
    ) -> Result<(EndpointRecord, Secret), EndpointError> {
        let keys = self.keys.as_ref().ok_or(EndpointError::NoKeys)?;
        let endpoint = store.show_endpoint(&sight, id).await?;
        let secret = Secret::generate();
        let sealed = seal(keys, &secret, &endpoint.tenant, id);
        let change = ChangeEndpoint { secret: Some((sealed, overlap)), ..ChangeEndpoint::new(sight, id, word) };
        Ok((store.change_endpoint(change).await?, secret))
    }
}

fn seal(keys: &MasterKeys, secret: &Secret, tenant: &TenantName, id: EndpointId) -> Vec<u8> {
    keys.seal(secret, Owner { tenant, endpoint: &id.to_string() }).to_bytes()
}

impl From<Invalid> for EndpointError {
    fn from(refused: Invalid) -> Self {
        Self::Refused(Refused::Url(refused))
    }
}
