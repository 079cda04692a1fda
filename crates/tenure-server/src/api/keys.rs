//! Keys: operators make them for everybody, a tenant's admin for its tenant, and nobody one that allows more than its own.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::name::TenantName;
use tenure_core::{Credential, Invalid, KeyId, Scope, Scopes};
use tenure_store::StoreError;
use tenure_store::access::{KeyFilter, KeyRecord, NewKey, RevokeKey};
use tenure_store::operate::Word;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::{Reason, answer, ok};
use crate::app::App;
use crate::body::{Json, at_most};
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::{FORBIDDEN, Problem, UNAUTHORIZED};
use crate::query::{Query, Segments};
use crate::right::Admin;
use crate::wire::access::{KeyLine, NewKeyDocument};

/// How long a key that was replaced is good yet, where nothing is said.
const OVERLAP: Duration = Duration::from_secs(86_400);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_keys, create_key)).routes(routes!(rotate_key)).routes(routes!(revoke_key))
}

/// Which keys to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListKeys {
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// Also those that have expired or were revoked
    all: Option<bool>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List keys by id; secrets are nowhere
#[utoipa::path(get, path = "/v1/keys", tag = "tenants", params(ListKeys), security(("key" = ["admin"])),
    responses((status = 200, body = Page<KeyLine>)))]
async fn list_keys(State(app): State<App>, caller: Caller, Query(asked): Query<ListKeys>) -> Result<Response, Problem> {
    caller.need(Scope::Admin)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = KeyFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        ended_too: asked.all.unwrap_or(false),
        after: cursor::read("keys", asked.cursor.as_deref())?,
        limit: limit + 1,
    };
    let keys = app.store.list_keys(&filter).await?;
    ok(&Page::cut("keys", keys, limit, |key| key.id.to_string(), |key| KeyLine::from(key)))
}

/// A new key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeyBody {
    /// What it is for
    #[schema(min_length = 1, max_length = 500)]
    name: String,
    /// Some of enqueue, read, operate, worker, admin
    #[serde(deserialize_with = "at_most::<_, _, 5>")]
    #[schema(min_items = 1, max_items = 5, value_type = Vec<String>)]
    scopes: Vec<String>,
    /// Whose it is; an operator's where nothing is said
    tenant: Option<String>,
    /// How long it is good; until it is revoked where nothing is said
    #[schema(minimum = 1000, maximum = 315360000000_u64)]
    life_ms: Option<u64>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Make a key; its text is in the answer, once
#[utoipa::path(post, path = "/v1/keys", tag = "tenants", request_body = KeyBody, security(("key" = ["admin"])),
    responses((status = 201, body = NewKeyDocument)))]
async fn create_key(
    State(app): State<App>,
    caller: Caller,
    Json(body, _held): Json<Admin, KeyBody>,
) -> Result<Response, Problem> {
    let tenant = match (&caller.tenant, parse::<TenantName>(body.tenant.as_deref())?) {
        (None, asked) => asked,
        (Some(_), asked) => Some(caller.acts_for(asked)?),
    };
    let scopes: Scopes = body.scopes.join(",").parse()?;
    not_more_than_own(&caller, scopes)?;
    let life = not_longer_than_own(&app, &caller, body.life_ms.map(Duration::from_millis)).await?;
    let word = caller.word(body.reason)?;
    make(&app, tenant, body.name, scopes, life, None, word).await
}

/// How the new key takes the old one's place.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RotateBody {
    /// How long the old one is good yet; a day where nothing is said
    #[schema(maximum = 315360000000_u64)]
    overlap_ms: Option<u64>,
    /// How long the new one is good; as long as the old one was to be where nothing is said
    #[schema(minimum = 1000, maximum = 315360000000_u64)]
    life_ms: Option<u64>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Make a key that takes another one's place: same name, tenant, scopes and end
///
/// A key that has ended is not rotated.
#[utoipa::path(post, path = "/v1/keys/{key}/rotate", tag = "tenants", params(("key" = String, Path)),
    request_body = RotateBody, security(("key" = ["admin"])), responses((status = 201, body = NewKeyDocument)))]
async fn rotate_key(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Admin, RotateBody>,
) -> Result<Response, Problem> {
    let id: KeyId = path.get("key")?;
    let is_seen = |key: &KeyRecord| caller.tenant.is_none() || key.tenant == caller.tenant;
    let old = app.store.find_key(&id).await?.filter(is_seen);
    let old = old.ok_or_else(|| StoreError::NotFound(format!("key {id}")))?;
    not_more_than_own(&caller, old.scopes)?;
    if old.revoked_at.is_some() {
        return Err(StoreError::Conflict(format!("key {id} is revoked: make a new one")).into());
    }
    let overlap = body.overlap_ms.map_or(OVERLAP, Duration::from_millis);
    // Where nothing is asked for, the store hands the old one's end on, unless the caller's own key ends before.
    let asked = body.life_ms.map(Duration::from_millis);
    let life = not_longer_than_own(&app, &caller, asked).await?;
    let now = app.store.now().await?;
    let life = match life {
        Some(own) if asked.is_none() && old.expires_at.is_some_and(|end| end <= now.plus(own)) => None,
        life => life,
    };
    let word = caller.word(body.reason)?;
    let made = make(&app, old.tenant, old.name, old.scopes, life, Some((id.clone(), overlap)), word).await?;
    app.keyring.forget(&id);
    Ok(made)
}

/// End a key at once
#[utoipa::path(post, path = "/v1/keys/{key}/revoke", tag = "tenants", params(("key" = String, Path)),
    request_body = Reason, security(("key" = ["admin"])), responses((status = 200, body = KeyLine)))]
async fn revoke_key(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Admin, Reason>,
) -> Result<Response, Problem> {
    let (sight, key): (_, KeyId) = (caller.sight(None)?, path.get("key")?);
    let word = caller.word(body.reason)?;
    app.store.revoke_key(RevokeKey { sight, key: key.clone(), word }).await?;
    app.keyring.forget(&key);
    let record = app.store.find_key(&key).await?;
    ok(&KeyLine::from(&record.ok_or_else(|| StoreError::NotFound(format!("key {key}")))?))
}

async fn make(
    app: &App,
    tenant: Option<TenantName>,
    name: String,
    scopes: Scopes,
    life: Option<Duration>,
    replaces: Option<(KeyId, Duration)>,
    word: Word,
) -> Result<Response, Problem> {
    let mut random = [0; tenure_core::key::KEY_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| Problem::internal("no random bits for a key", &error))?;
    let (id, credential) = Credential::new_key(random);
    let request = NewKey { id, hash: credential.hash(), tenant, name, scopes, life, replaces, word };
    let record = app.store.create_key(request).await?;
    answer(StatusCode::CREATED, &NewKeyDocument::new(&record, &credential))
}

/// A key makes no key that outlives itself, and one that has ended since it was looked up makes none at all.
async fn not_longer_than_own(app: &App, caller: &Caller, asked: Option<Duration>) -> Result<Option<Duration>, Problem> {
    let Some(own) = &caller.key else { return Ok(asked) };
    let (record, now) = (app.store.find_key(own).await?, app.store.now().await?);
    let ended = || Problem::new(UNAUTHORIZED, "a good key is missing: `Authorization: Bearer tnk_…`");
    let record = record.filter(|record| record.is_good(now)).ok_or_else(ended)?;
    let left = record.expires_at.map(|end| end.since(now));
    Ok(match (asked, left) {
        (Some(asked), Some(left)) => Some(asked.min(left)),
        (asked, left) => asked.or(left),
    })
}

/// A key makes no key that allows what it does not allow itself.
fn not_more_than_own(caller: &Caller, scopes: Scopes) -> Result<(), Problem> {
    match scopes.iter().find(|scope| !caller.scopes.allow(*scope)) {
        None => Ok(()),
        Some(scope) => {
            let why = Invalid::new("scopes", scope.as_str(), "a key makes no key that allows more than itself");
            Err(Problem::new(FORBIDDEN, why.to_string()))
        }
    }
}
