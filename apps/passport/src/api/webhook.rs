//! Who is told what happened, and how that went.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::version::read;
use super::{LIST_MAX, Refused, Tenant};
use crate::app::App;
use crate::id;
use crate::records::endpoint::{self, Endpoint};
use crate::records::{delivery, event};

/// Whom to tell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    url: String,
}

pub(super) async fn create(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let (id, secret) = endpoint::create(&app, &tenant, &read(asked)?.url).await?;
    let answer = json!({"webhook_endpoint_id": id, "secret": secret.text().as_str()});
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(super) async fn rotate(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(endpoint): Path<String>,
) -> Result<Json<Value>, Refused> {
    let id = id::parse("webhook_endpoint_id", &endpoint)?;
    let secret = endpoint::rotate(&app, &tenant, id).await?.ok_or_else(|| Refused::unknown("endpoint", &id))?;
    Ok(Json(json!({"webhook_endpoint_id": id, "secret": secret.text().as_str()})))
}

pub(super) async fn remove(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(endpoint): Path<String>,
) -> Result<StatusCode, Refused> {
    let id = id::parse("webhook_endpoint_id", &endpoint)?;
    match endpoint::remove(&app, &tenant, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refused::unknown("endpoint", &id)),
    }
}

pub(super) async fn list(State(app): State<App>, Tenant(tenant): Tenant) -> Result<Json<Value>, Refused> {
    let shown = |Endpoint { id, url, disabled_why }| json!({"webhook_endpoint_id": id, "url": url, "disabled_why": disabled_why});
    Ok(Json(endpoint::list(app.database(), &tenant).await?.into_iter().map(shown).collect()))
}

pub(super) async fn events(State(app): State<App>, Tenant(tenant): Tenant) -> Result<Json<Value>, Refused> {
    Ok(Json(json!(event::list(app.database(), &tenant, LIST_MAX).await?)))
}

pub(super) async fn deliveries(State(app): State<App>, Tenant(tenant): Tenant) -> Result<Json<Value>, Refused> {
    Ok(Json(Value::from(delivery::list(&app, &tenant, LIST_MAX).await?)))
}
