//! The journal and its seals: the record of all tenants, so it is the operators'.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::Scope;
use tenure_core::seal::{Seal, to_hex};
use tenure_store::journal::{self, JournalPage};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::wire::journal::JournalLine;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(newest_entries)).routes(routes!(list_seals)).routes(routes!(list_sealed))
}

/// How many.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Newest {
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfPage {
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// The newest entries of the journal, oldest of them first
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(Newest), security(("key" = ["read"])),
    responses((status = 200, body = Page<JournalLine>)))]
async fn newest_entries(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Newest>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let (rows, _) = journal::newest(&*app.store, limit as usize).await?;
    ok(&Page::whole(rows.iter().map(JournalLine::from).collect()))
}

/// One seal of the chain.
#[derive(Debug, Serialize, ToSchema)]
struct SealLine {
    no: i64,
    rows: i64,
    /// SHA-256 of the seal before, in hex
    prev: String,
    /// SHA-256 of this one
    hash: String,
}

impl From<&Seal> for SealLine {
    fn from(seal: &Seal) -> Self {
        Self { no: seal.no, rows: seal.rows, prev: to_hex(&seal.prev), hash: to_hex(&seal.hash) }
    }
}

/// List the seals of the journal
#[utoipa::path(get, path = "/v1/audit/seals", tag = "audit", params(OfPage), security(("key" = ["read"])),
    responses((status = 200, body = Page<SealLine>)))]
async fn list_seals(State(app): State<App>, caller: Caller, Query(asked): Query<OfPage>) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let after = cursor::read("seals", asked.cursor.as_deref())?.unwrap_or(0);
    let seals = app.store.list_seals(after, limit + 1).await?;
    ok(&Page::cut("seals", seals, limit, |seal| seal.no.to_string(), |seal| SealLine::from(seal)))
}

/// The entries under one seal
#[utoipa::path(get, path = "/v1/audit/seals/{no}", tag = "audit", params(("no" = i64, Path), OfPage),
    security(("key" = ["read"])), responses((status = 200, body = Page<JournalLine>)))]
async fn list_sealed(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(asked): Query<OfPage>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let (limit, seal) = (cursor::limit(asked.limit)?, Some(path.number("no")?));
    let after = cursor::read("entries", asked.cursor.as_deref())?.unwrap_or(0);
    let rows = app.store.read_journal(JournalPage { seal, after, limit: limit + 1 }).await?;
    ok(&Page::cut("entries", rows, limit, |row| row.id.to_string(), |row| JournalLine::from(row)))
}
