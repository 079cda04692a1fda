//! Who calls, and what they may do.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use tenure_core::name::TenantName;
use tenure_core::{Credential, Invalid, KeyId, Scope, Scopes, WorkerId};
use tenure_store::access::KeyRecord;
use tenure_store::operate::Word;
use tenure_store::record::Sight;

use crate::app::App;
use crate::options::Auth;
use crate::problem::{FORBIDDEN, Problem, UNAUTHORIZED, UNKNOWN_WORKER};

/// The header of a worker's token.
pub const WORKER_HEADER: &str = "tenure-worker";

/// Whoever sent a request, known by the key in it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key; `None` where everybody may do everything.
    pub key: Option<KeyId>,
    /// Whose it is; `None` for operators.
    pub tenant: Option<TenantName>,
    /// What it allows.
    pub scopes: Scopes,
    /// What the journal calls one who needs no key.
    pub via: &'static str,
}

impl Caller {
    /// Whoever has this key.
    pub fn of(key: KeyRecord) -> Self {
        Self { key: Some(key.id), tenant: key.tenant, scopes: key.scopes, via: "api" }
    }

    /// Anybody, where no keys are needed: from this machine only.
    pub fn anybody(headers: &HeaderMap, via: &'static str) -> Result<Self, Problem> {
        check_from_here(headers)?;
        Ok(Self { key: None, tenant: None, scopes: Scopes::new(Scope::ALL)?, via })
    }

    /// Refuses a caller whose key does not allow this.
    pub fn need(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.allow(scope) {
            return Ok(());
        }
        let detail = format!("this key allows {} and not {}", self.scopes, scope.as_str());
        Err(Problem::new(FORBIDDEN, detail))
    }

    /// Refuses a caller who is no operator: what it asks for belongs to all tenants.
    pub fn need_operator(&self, scope: Scope) -> Result<(), Problem> {
        self.need(scope)?;
        match self.tenant {
            None => Ok(()),
            Some(_) => Err(Problem::new(FORBIDDEN, "this is the operators': it takes a key that belongs to no tenant")),
        }
    }

    /// What it may see; an operator may look at one tenant only.
    pub fn sight(&self, asked: Option<TenantName>) -> Result<Sight, Problem> {
        match (&self.tenant, asked) {
            (None, None) => Ok(Sight::All),
            (None, Some(tenant)) => Ok(Sight::Tenant(tenant)),
            (Some(own), asked) => {
                self.check_own(own, asked.as_ref())?;
                Ok(Sight::Tenant(own.clone()))
            }
        }
    }

    /// For whom it does something: its own tenant, or the one that an operator names, or `default`.
    pub fn acts_for(&self, asked: Option<TenantName>) -> Result<TenantName, Problem> {
        match &self.tenant {
            None => Ok(asked.unwrap_or_default()),
            Some(own) => {
                self.check_own(own, asked.as_ref())?;
                Ok(own.clone())
            }
        }
    }

    fn check_own(&self, own: &TenantName, asked: Option<&TenantName>) -> Result<(), Problem> {
        match asked {
            Some(asked) if asked != own => Err(Problem::new(FORBIDDEN, format!("this key is tenant `{own}`'s"))),
            _ => Ok(()),
        }
    }

    /// Who it is and why, for the journal.
    pub fn word(&self, reason: Option<String>) -> Result<Word, Invalid> {
        let actor = self.key.as_ref().map_or_else(|| self.via.to_owned(), |key| format!("key:{key}"));
        let word = Word { actor: Some(actor), reason };
        word.check()?;
        Ok(word)
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // Pages of the server's own know who looks at them.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let caller = Self::read(parts, app).await?;
        // Asked for again before the body is read.
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}

impl Caller {
    async fn read(parts: &Parts, app: &App) -> Result<Self, Problem> {
        if app.options.auth == Auth::Open {
            return Self::anybody(&parts.headers, "api");
        }
        let refused = || Problem::new(UNAUTHORIZED, "a good key is missing: `Authorization: Bearer tnk_…`");
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let text = header.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(refused)?;
        let (id, credential) = Credential::parse_key(text.trim()).ok_or_else(refused)?;
        let record = app.keyring.find(&*app.store, &id, &credential).await?.ok_or_else(refused)?;
        Ok(Self::of(record))
    }
}

/// Without keys a request has to come from this machine, and not from a page of somebody else's that a browser here shows:
/// such a page can send requests, and with a name that leads here it could read the answers.
fn check_from_here(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let host = text(HOST).is_some_and(is_here);
    let origin = text(ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|(_, host)| is_here(host)));
    let site = text(HeaderName::from_static("sec-fetch-site")).is_none_or(|site| site != "cross-site");
    match host && origin && site {
        true => Ok(()),
        false => Err(Problem::new(
            FORBIDDEN,
            "without keys only programs and pages of this machine are served: http://127.0.0.1",
        )),
    }
}

/// Whether a name with or without a port is this machine's own.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A worker that comes over HTTP, proven by its token; its key allows it to work.
#[derive(Debug, Clone)]
pub struct RemoteWorker {
    /// Its number.
    pub id: WorkerId,
}

impl FromRequestParts<App> for RemoteWorker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Caller::from_request_parts(parts, app).await?.need_operator(Scope::Worker)?;
        let refused =
            || Problem::new(UNKNOWN_WORKER, "the token in `Tenure-Worker` is missing or not known: register again");
        let header = parts.headers.get(WORKER_HEADER).and_then(|value| value.to_str().ok());
        let (id, token) = header.and_then(Credential::parse_token).ok_or_else(refused)?;
        match app.keyring.is_worker(&*app.store, id, &token).await? {
            true => Ok(Self { id }),
            false => Err(refused()),
        }
    }
}
