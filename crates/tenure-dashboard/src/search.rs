//! Finds by an id or a name, or by how one begins, from every page.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::name::{GateName, KindName, QueueName};
use tenure_core::{EndpointId, JobId, RunId, Scope, Timestamp, WorkerId};
use tenure_store::StoreError;
use tenure_store::access::{TenantFilter, TenantRecord};
use tenure_store::gate::{GateFilter, GateRecord};
use tenure_store::record::{JobFilter, JobSummary, QueueRecord};
use tenure_store::rollup::{By, RollupFilter, Step};
use tenure_store::schedule::{ScheduleFilter, ScheduleRecord};

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
    /// Things whose id or name begins like this.
    groups: Vec<Group>,
    /// Where else to look: address and name.
    guesses: Vec<(String, String)>,
}

/// Things of one sort that were found: address and name.
struct Group {
    what: &'static str,
    found: Vec<(String, String)>,
    is_more: bool,
}

/// Most things of one sort that are shown.
const SHOWN_MAX: usize = 10;
/// Names of one sort that are looked through where the store lists none by their beginning.
const LOOKED_THROUGH_MAX: u32 = 1_000;

pub(crate) async fn show(
    State(desk): State<Desk>,
    visit: Visit,
    Query(asked): Query<Asked>,
) -> Result<Response, Trouble> {
    let Some(q) = word(&asked.q) else { return Ok(to("/")) };
    if let Some(place) = find(&desk, &visit, q).await? {
        return Ok(to(&place));
    }
    let groups = beginning(&desk, &visit, q).await?;
    if let [Group { what: "Jobs", found, .. }] = groups.as_slice()
        && let [(job, _)] = found.as_slice()
    {
        return Ok(to(job));
    }
    let mut guesses = vec![(address("/jobs", &[("text", q)]), format!("jobs with “{q}” in their payload"))];
    if q.parse::<KindName>().is_ok() {
        guesses.push((address("/jobs", &[("kind", q)]), format!("jobs of kind {q}")));
    }
    if visit.person.caller.tenant.is_none() {
        guesses.push((address("/audit", &[("subject", q)]), format!("entries of the journal about {q}")));
    }
    let frame = visit.frame("Search", "search");
    Ok(visit.show(&Search { frame, q: q.to_owned(), groups, guesses }))
}

/// Everything that this person may see and whose id or name begins with `q`. Each sort is one bounded list.
async fn beginning(desk: &Desk, visit: &Visit, q: &str) -> Result<Vec<Group>, Trouble> {
    let (store, sight) = (desk.store(), visit.sight(&None)?);
    let caller = &visit.person.caller;
    let is_operator = caller.tenant.is_none();
    let mut groups = Vec::new();
    if let Some((first, after)) = JobId::beginning(q) {
        let filter = JobFilter { sight: sight.clone(), from: Some(first), before: after, ..limited() };
        let jobs = store.list_jobs(&filter).await?;
        let name = |job: &JobSummary| format!("{} · {} in {}, {}", job.id, job.kind, job.queue, job.state.as_str());
        groups.push(Group::new("Jobs", jobs.iter().map(|job| (format!("/jobs/{}", job.id), name(job)))));
    }
    let kinds = RollupFilter {
        sight: sight.clone(),
        step: Step::All,
        since: Timestamp::EPOCH,
        until: Timestamp::MAX,
        queue: None,
        kind: None,
        by: By::Kind,
        limit: LOOKED_THROUGH_MAX,
    };
    let kinds = store.list_rollups(&kinds).await?.into_iter().filter_map(|line| line.kind);
    let kinds = kinds.filter(|kind| kind.as_str().starts_with(q));
    groups
        .push(Group::new("Kinds", kinds.map(|kind| (address("/jobs", &[("kind", kind.as_str())]), kind.to_string()))));
    let schedules = ScheduleFilter { sight, limit: LOOKED_THROUGH_MAX, ..ScheduleFilter::default() };
    let schedules = store.list_schedules(&schedules).await?.into_iter();
    let schedules = schedules.filter(|schedule| schedule.name.as_str().starts_with(q));
    let place =
        |schedule: &ScheduleRecord| format!("/schedules/{}/{}", encoded(&schedule.tenant), encoded(&schedule.name));
    groups.push(Group::new("Schedules", schedules.map(|schedule| (place(&schedule), schedule.name.to_string()))));
    if is_operator {
        let queues = desk.queues().await?.into_iter().filter(|queue| queue.name.as_str().starts_with(q));
        let place = |queue: &QueueRecord| address("/jobs", &[("queue", queue.name.as_str())]);
        groups.push(Group::new("Queues", queues.map(|queue| (place(&queue), queue.name.to_string()))));
        if let Ok(pattern) = format!("{q}*").parse() {
            let filter = GateFilter { pattern: Some(pattern), limit: SHOWN_MAX as u32 + 1, ..GateFilter::default() };
            let gates = store.list_gates(&filter).await?.into_iter();
            let place = |gate: &GateRecord| format!("/gates/{}", encoded(&gate.name));
            groups.push(Group::new("Gates", gates.map(|gate| (place(&gate), gate.name.to_string()))));
        }
    }
    if is_operator && caller.scopes.allow(Scope::Admin) {
        let tenants = store.list_tenants(&TenantFilter { after: None, limit: LOOKED_THROUGH_MAX }).await?.into_iter();
        let tenants = tenants.filter(|tenant| tenant.name.as_str().starts_with(q));
        let place = |tenant: &TenantRecord| address("/jobs", &[("tenant", tenant.name.as_str())]);
        groups.push(Group::new("Tenants", tenants.map(|tenant| (place(&tenant), tenant.name.to_string()))));
    }
    groups.retain(|group| !group.found.is_empty());
    Ok(groups)
}

/// One more than is shown: then there are more.
fn limited() -> JobFilter {
    JobFilter { limit: SHOWN_MAX as u32 + 1, ..JobFilter::default() }
}

impl Group {
    fn new(what: &'static str, found: impl Iterator<Item = (String, String)>) -> Self {
        let mut found: Vec<_> = found.take(SHOWN_MAX + 1).collect();
        let is_more = found.len() > SHOWN_MAX;
        found.truncate(SHOWN_MAX);
        Self { what, found, is_more }
    }
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
