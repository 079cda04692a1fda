//! What passports are made of: documents, snapshots, rules.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Refused, Tenant, unread};
use crate::app::App;
use crate::bom::Format;
use crate::code::Refusal;
use crate::id;
use crate::orders::{self, Order, Uploaded};

/// How a document is written, and what is to become of it.
#[derive(Deserialize)]
pub(super) struct Asked {
    format: String,
    passport_id: Option<String>,
    rules_id: Option<String>,
}

pub(super) async fn upload(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    asked: Result<Query<Asked>, QueryRejection>,
    content: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let Query(asked) = asked.map_err(|rejection| unread(rejection.status(), rejection.body_text()))?;
    let content = taken(content)?.to_vec();
    let order = match (asked.passport_id, asked.rules_id) {
        (None, None) => None,
        (Some(passport), Some(rules)) => Some(Order {
            passport_id: id::parse("passport_id", &passport)?,
            rules_id: id::parse("rules_id", &rules)?,
            issued_at: None,
            key_id: None,
        }),
        _ => return Err(Refusal::invalid("passport_id and rules_id are given together, or neither").into()),
    };
    let uploaded = orders::upload(&app, &tenant, Format::parse(&asked.format)?, content, order).await?;
    let Uploaded { document_version_id, snapshot_id, job_id, passport_version_id } = uploaded;
    let answer = json!({
        "document_version_id": document_version_id,
        "snapshot_id": snapshot_id,
        "job_id": job_id.to_string(),
        "passport_version_id": passport_version_id,
    });
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(super) async fn seal(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(snapshot): Path<String>,
) -> Result<Json<Value>, Refused> {
    let snapshot = id::parse("snapshot_id", &snapshot)?;
    orders::seal(&app, &tenant, snapshot).await?;
    Ok(Json(json!({"snapshot_id": snapshot, "status": "SEALED"})))
}

pub(super) async fn draft(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    rules: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let rules = taken(rules)?;
    let text =
        std::str::from_utf8(&rules).map_err(|_| Refusal::invalid("the rule package is refused: it is not UTF-8"))?;
    let rules = orders::draft(&app, &tenant, text).await?;
    Ok((StatusCode::CREATED, Json(json!({"rules_id": rules}))))
}

pub(super) async fn publish(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Path(rules): Path<String>,
) -> Result<Json<Value>, Refused> {
    let rules = id::parse("rules_id", &rules)?;
    orders::publish(&app, &tenant, rules).await?;
    Ok(Json(json!({"rules_id": rules, "status": "PUBLISHED"})))
}

fn taken(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Refusal> {
    body.map_err(|rejection| unread(rejection.status(), rejection.body_text()))
}
