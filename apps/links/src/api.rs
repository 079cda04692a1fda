//! What users ask over HTTP: give us a file, see how far it is, stop it, read the links.
//!
//! | call | answers |
//! |---|---|
//! | `POST /imports`, the file as its body | 202 with the import |
//! | `GET /imports/{id}` | the import; 404 for one that is another user's |
//! | `DELETE /imports/{id}`, `POST /imports/{id}/cancel` | the import, canceled; 409 if it had ended |
//! | `GET /links?after=ID&limit=100` | the user's links, each once |
//!
//! The header `X-User` says who asks. It stands for whatever authenticates users in front of this; on its own it is no
//! protection, and the server listens on this machine only. What operators read is not among it: whose bookmarks lead where
//! is no other user's business.
//!
//! Nothing is fetched here: this side stores imports and reads tables, workers do the rest.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use tenure::core::Invalid;
use tenure::{Client, Database, StoreError};

use crate::bookmarks::{self, Limits};
use crate::import::{self, Import, check_user};
use crate::link::Link;
use crate::settings::Settings;

/// Links of one answer unless asked otherwise.
const LINKS_DEFAULT: u32 = 100;

/// What the calls share.
#[derive(Clone)]
pub struct Api {
    /// Jobs and tables.
    pub database: Database,
    /// Who puts jobs there.
    pub client: Client,
    /// How links are enriched.
    pub settings: Settings,
    /// How much a file may hold.
    pub limits: Limits,
}

/// The calls.
pub fn router(api: Api) -> Router {
    let bytes_max = api.limits.bytes_max;
    Router::new()
        .route("/imports", post(create))
        .route("/imports/{id}", get(show).delete(cancel))
        .route("/imports/{id}/cancel", post(cancel))
        .route("/links", get(links))
        .layer(DefaultBodyLimit::max(bytes_max))
        .with_state(api)
}

/// Who asks.
struct User(String);

/// Why a call is refused.
enum Refused {
    Nobody,
    Invalid(Invalid),
    TooLarge { bytes_max: usize },
    Broken(String),
    NotFound(String),
    Ended(Box<Import>),
    Store(StoreError),
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    after: String,
    limit: Option<u32>,
}

async fn create(
    State(api): State<Api>,
    User(user): User,
    file: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused> {
    let limits = api.limits.clone();
    let file = file.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refused::TooLarge { bytes_max: limits.bytes_max },
        _ => Refused::Broken(rejection.body_text()),
    })?;
    // A long file takes a while: not on a thread that others wait for.
    let read = tokio::task::spawn_blocking(move || bookmarks::parse(&file, &limits)).await;
    let gone = |error: tokio::task::JoinError| StoreError::Unavailable(format!("the file was not read: {error}"), None);
    let found = read.map_err(gone)??;
    let id = import::store(&api.database, &api.client, &api.settings, &user, found).await?;
    let import = find(&api, &user, &id.to_string()).await?;
    Ok((StatusCode::ACCEPTED, Json(import)).into_response())
}

async fn show(State(api): State<Api>, User(user): User, Path(id): Path<String>) -> Result<Json<Import>, Refused> {
    find(&api, &user, &id).await.map(Json)
}

async fn cancel(State(api): State<Api>, User(user): User, Path(id): Path<String>) -> Result<Json<Import>, Refused> {
    let canceled = Import::cancel(&api.client, &api.database, &user, &id).await?;
    let import = find(&api, &user, &id).await?;
    match canceled {
        Some(false) => Err(Refused::Ended(Box::new(import))),
        _ => Ok(Json(import)),
    }
}

async fn links(
    State(api): State<Api>,
    User(user): User,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Vec<Link>>, Refused> {
    let Query(page) = page.map_err(|rejection| Refused::Broken(rejection.body_text()))?;
    let limit = page.limit.unwrap_or(LINKS_DEFAULT);
    Ok(Json(Link::list(&api.database, &user, &page.after, limit).await?))
}

async fn find(api: &Api, user: &str, id: &str) -> Result<Import, Refused> {
    let found = Import::find(&api.client, &api.database, user, id).await?;
    found.ok_or_else(|| Refused::NotFound(id.to_owned()))
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let named = parts.headers.get("x-user").and_then(|value| value.to_str().ok());
        let user = named.ok_or(Refused::Nobody)?;
        check_user(user)?;
        Ok(Self(user.to_owned()))
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(invalid) => Self::Invalid(invalid),
            error => Self::Store(error),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Nobody => (StatusCode::UNAUTHORIZED, "no_user", "say who you are by the header X-User".to_owned()),
            Self::Invalid(invalid) => (StatusCode::BAD_REQUEST, "invalid", invalid.to_string()),
            Self::TooLarge { bytes_max } => {
                let message = format!("a bookmark file has at most {bytes_max} bytes; export fewer folders at a time");
                (StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            Self::Broken(why) => (StatusCode::BAD_REQUEST, "invalid", why),
            Self::NotFound(id) => (StatusCode::NOT_FOUND, "not_found", format!("you have no import {id}")),
            Self::Ended(import) => {
                let message = format!("import {} is {}: there is nothing to cancel", import.id, import.status);
                (StatusCode::CONFLICT, "has_ended", message)
            }
            Self::Store(error) => {
                tracing::error!(error = %error, "a call was not answered");
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "try again in a moment".to_owned())
            }
        };
        (status, Json(json!({ "code": code, "message": message }))).into_response()
    }
}
