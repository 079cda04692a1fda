//! The product's own small server, on this machine. The header `X-Tenant` stands for whoever is signed in: a server that
//! others reach puts their names there, and lets nobody else say them.
//!
//! | call | |
//! |---|---|
//! | `POST /v1/documents?format=csv` | a bill of materials; with `&passport_id=…&rules_id=…` it is sealed and compiled as well |
//! | `POST /v1/snapshots/{id}/seal` | vouches for the facts of a document |
//! | `POST /v1/rules`, `POST /v1/rules/{id}/publish` | a rule package |
//! | `POST /v1/passports` | a battery |
//! | `POST /v1/passports/{id}/versions` | has a passport compiled, signed and labeled |
//! | `GET /v1/versions/{id}`, `GET /v1/versions/{id}/qr.png` | a passport version, and its label |
//! | `POST /v1/endpoints`, `GET /v1/endpoints` | who is told |
//! | `POST /v1/endpoints/{id}/rotate`, `DELETE /v1/endpoints/{id}` | with another secret, or not any more |
//! | `GET /v1/events`, `GET /v1/deliveries` | what happened, and how it was told |
//! | `GET /v1/health/live`, `GET /v1/health/ready` | |
//!
//! A refusal is `{"code": "VALIDATION_ERROR", "message": "…"}`.

mod health;
mod refused;
mod supply;
mod version;
mod webhook;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{delete, get, post};
use tenure::TenantName;

use crate::app::App;
use crate::bom::DOCUMENT_BYTES_MAX;
use crate::code::{Code, Refusal};

pub use refused::Refused;

/// Most rows of one list.
const LIST_MAX: u32 = 100;

/// All calls.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/v1/documents", post(supply::upload))
        .route("/v1/snapshots/{id}/seal", post(supply::seal))
        .route("/v1/rules", post(supply::draft))
        .route("/v1/rules/{id}/publish", post(supply::publish))
        .route("/v1/passports", post(version::register))
        .route("/v1/passports/{id}/versions", post(version::compile))
        .route("/v1/versions/{id}", get(version::show))
        .route("/v1/versions/{id}/qr.png", get(version::label))
        .route("/v1/endpoints", post(webhook::create).get(webhook::list))
        .route("/v1/endpoints/{id}", delete(webhook::remove))
        .route("/v1/endpoints/{id}/rotate", post(webhook::rotate))
        .route("/v1/events", get(webhook::events))
        .route("/v1/deliveries", get(webhook::deliveries))
        .route("/v1/health/live", get(health::live))
        .route("/v1/health/ready", get(health::ready))
        .layer(DefaultBodyLimit::max(DOCUMENT_BYTES_MAX))
        .with_state(app)
}

/// Why a call cannot be read.
fn unread(status: StatusCode, why: String) -> Refusal {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!("the body is refused: at most {DOCUMENT_BYTES_MAX} bytes are read");
            Refusal::new(Code::PayloadTooLarge, message)
        }
        _ => Refusal::invalid(why),
    }
}

/// Who asks.
struct Tenant(TenantName);

impl<S: Send + Sync> FromRequestParts<S> for Tenant {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let name = parts.headers.get("x-tenant").and_then(|name| name.to_str().ok());
        let missing = || Refusal::invalid("the header X-Tenant is missing: it says whose things are meant");
        Ok(Self(TenantName::new(name.ok_or_else(missing)?)?))
    }
}
