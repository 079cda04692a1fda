//! Passports and their versions.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure::Timestamp;

use super::{Refused, Tenant, unread};
use crate::app::App;
use crate::code::Refusal;
use crate::id;
use crate::orders::{self, Order};
use crate::records::version::StoredVersion;
use crate::subject::Battery;

/// What is to be compiled.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    snapshot_id: String,
    rules_id: String,
    issued_at: Option<String>,
    key_id: Option<String>,
}

pub(super) async fn register(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    battery: Result<Json<Battery>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let passport = orders::register(&app, &tenant, read(battery)?).await?;
    Ok((StatusCode::CREATED, Json(json!({"passport_id": passport}))))
}

pub(super) async fn compile(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(passport): Path<String>,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let Asked { snapshot_id, rules_id, issued_at, key_id } = read(asked)?;
    let order = Order {
        passport_id: id::parse("passport_id", &passport)?,
        rules_id: id::parse("rules_id", &rules_id)?,
        issued_at: issued_at.map(|at| Timestamp::parse("issued_at", &at)).transpose()?,
        key_id,
    };
    let (version, job) = orders::compile(&app, &tenant, id::parse("snapshot_id", &snapshot_id)?, order).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"passport_version_id": version, "job_id": job.to_string()}))))
}

pub(super) async fn show(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(version): Path<String>,
) -> Result<Json<Value>, Refused> {
    let id = id::parse("passport_version_id", &version)?;
    let version = StoredVersion::find(app.database(), &tenant, id).await?;
    let version = version.ok_or_else(|| Refused::unknown("passport version", &id))?;
    let document = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    Ok(Json(json!({
        "passport_version_id": id,
        "status": version.status,
        "payload": document(&version.payload),
        // What is hashed, byte by byte: whoever writes the JSON anew may write it otherwise.
        "payload_text": version.payload,
        "receipt": document(&version.receipt),
        "receipt_text": version.receipt,
        "receipt_hash": version.receipt_hash,
        "key_id": version.key_id,
        "signature": version.signature,
        "qr_text": version.qr_text,
    })))
}

pub(super) async fn label(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(version): Path<String>,
) -> Result<impl IntoResponse, Refused> {
    let id = id::parse("passport_version_id", &version)?;
    let png = StoredVersion::picture(app.database(), &tenant, id).await?;
    let png = png.ok_or_else(|| Refused::unknown("the label of version", &id))?;
    Ok(([(header::CONTENT_TYPE, "image/png")], png))
}

/// A body, or why it is none.
pub(super) fn read<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Refusal> {
    body.map(|Json(body)| body).map_err(|rejection| unread(rejection.status(), rejection.body_text()))
}
