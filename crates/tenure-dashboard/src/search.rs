//! Finds by an id or a name, from every page.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::name::{GateName, KindName, QueueName};
use tenure_core::{EndpointId, JobId, RunId, Scope, WorkerId};
use tenure_store::StoreError;

use crate::asked::{address, word};
use crate::bits::{self, encoded};
use crate::desk::Desk;
use crate::frame::{Frame, Trouble, Visit};
use crate::person::to;
use axum::response::Response;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    frame: Frame,
    q: String,
    /// Where else to look: address and name.
    guesses: Vec<(String, String)>,
}

pub(crate) async fn show(
    State(desk): State<Desk>,
    visit: Visit,
    Query(asked): Query<Asked>,
) -> Result<Response, Trouble> {
    let Some(q) = word(&asked.q) else { return Ok(to("/")) };
    if let Some(place) = find(&desk, &visit, q).await? {
        return Ok(to(&place));
    }
    let mut guesses = vec![(address("/jobs", &[("text", q)]), format!("jobs with “{q}” in their payload"))];
    if q.parse::<KindName>().is_ok() {
        guesses.push((address("/jobs", &[("kind", q)]), format!("jobs of kind {q}")));
    }
    if visit.person.caller.tenant.is_none() {
        guesses.push((address("/gates", &[("pattern", q)]), format!("gates that begin with {q}")));
        guesses.push((address("/audit", &[("subject", q)]), format!("entries of the journal about {q}")));
    }
    let frame = visit.frame("Search", "search");
    Ok(visit.show(&Search { frame, q: q.to_owned(), guesses }))
}

/// The page of the one thing that has this id or name.
async fn find(desk: &Desk, visit: &Visit, q: &str) -> Result<Option<String>, Trouble> {
    let (store, sight) = (desk.store(), visit.sight(&None)?);
    if let Ok(job) = q.parse::<JobId>() {
        if there(store.show_delivery(&sight, job).await)? {
            return Ok(Some(format!("/deliveries/{job}")));
        }
        if there(store.show_operation(&sight, job).await)? {
            return Ok(Some(format!("/operations/{job}")));
        }
        if there(store.show_job(&sight, job).await)? {
            return Ok(Some(format!("/jobs/{job}")));
        }
    }
    if let Ok(run) = q.parse::<RunId>()
        && there(store.show_run(&sight, run).await)?
    {
        return Ok(Some(format!("/runs/{run}")));
    }
    if let Ok(endpoint) = q.parse::<EndpointId>()
        && visit.person.caller.scopes.allow(Scope::Admin)
        && there(store.show_endpoint(&sight, endpoint).await)?
    {
        return Ok(Some(format!("/webhooks/{endpoint}")));
    }
    if visit.person.caller.tenant.is_some() {
        return Ok(None);
    }
    if let Ok(queue) = q.parse::<QueueName>()
        && store.has_queue(&queue).await?
    {
        return Ok(Some(address("/jobs", &[("queue", q)])));
    }
    if let Ok(gate) = q.parse::<GateName>()
        && there(store.show_gate(&gate).await)?
    {
        return Ok(Some(format!("/gates/{}", encoded(q))));
    }
    if let Ok(number) = q.parse::<i32>()
        && there(store.show_worker(WorkerId(number)).await)?
    {
        return Ok(Some("/workers?all=true".to_owned()));
    }
    Ok(None)
}

/// Whether it was found; what else went wrong is told.
fn there<T>(found: Result<T, StoreError>) -> Result<bool, StoreError> {
    match found {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
