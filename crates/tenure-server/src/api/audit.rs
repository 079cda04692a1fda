//! The journal and its seals: the record of all tenants, so it is the operators'.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::journal::JournalEvent;
use tenure_core::seal::{Seal, to_hex};
use tenure_core::{Invalid, JobId, Scope};
use tenure_store::journal::{self, JournalFilter, JournalPage};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{moment, parse};
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

/// Which entries; where nothing but a limit is said, the newest.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Newest {
    /// Only these, with commas between them, such as queue_paused,queue_resumed
    event: Option<String>,
    /// Only what this one asked for, such as key:abcdefghijkl
    actor: Option<String>,
    /// Only what names this job
    #[param(format = Uuid)]
    job: Option<String>,
    /// Only what is about this queue, gate, schedule, key, tenant, endpoint, run or worker
    subject: Option<String>,
    /// true: only what people and rules did, not what workers wrote under their leases
    acts: Option<bool>,
    /// Only entries from then on: a date, or how long ago, such as 1h
    #[param(example = "1h")]
    since: Option<String>,
    /// Only entries before: likewise
    #[param(example = "2026-11-15T09:30:00Z")]
    until: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

impl Newest {
    /// Whether only the newest entries are asked for.
    fn is_plain(&self) -> bool {
        let words = [&self.event, &self.actor, &self.job, &self.subject, &self.since, &self.until, &self.cursor];
        words.iter().all(|word| word.is_none()) && self.acts.is_none()
    }
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

/// The newest entries of the journal, oldest of them first; or those that match, newest first
///
/// With any parameter but `limit` it answers newest first, page by page. A call looks at no more than 20,000 entries: a page may
/// be short or empty and have a `next` all the same.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(Newest), security(("key" = ["read"])),
    responses((status = 200, body = Page<JournalLine>)))]
async fn newest_entries(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Newest>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    if asked.is_plain() {
        let (rows, _) = journal::newest(&*app.store, limit as usize).await?;
        return ok(&Page::whole(rows.iter().map(JournalLine::from).collect()));
    }
    let filter = JournalFilter {
        events: events(asked.event.as_deref())?,
        job: parse::<JobId>(asked.job.as_deref())?,
        acts_only: asked.acts.unwrap_or(false),
        since: moment(&app, "since", asked.since.as_deref()).await?,
        until: moment(&app, "until", asked.until.as_deref()).await?,
        before: cursor::read("audit", asked.cursor.as_deref())?,
        actor: asked.actor,
        subject: asked.subject,
        limit,
    };
    let found = app.store.list_journal(&filter).await?;
    ok(&Page::walked("audit", found.rows.iter().map(JournalLine::from).collect(), found.next))
}

/// The events that a list of words names.
fn events(words: Option<&str>) -> Result<Vec<JournalEvent>, Invalid> {
    let known = |word: &str| JournalEvent::ALL.into_iter().find(|event| event.as_str() == word);
    let refused = |word: &str| Invalid::new("event", word, "it is the name of an event, such as queue_paused");
    words.into_iter().flat_map(|words| words.split(',')).map(|word| known(word).ok_or_else(|| refused(word))).collect()
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
