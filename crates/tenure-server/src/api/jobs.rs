//! Jobs: create one or many, see one; what else is done with them has files of its own.

mod journal;
mod list;
mod operate;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure_core::name::{GateName, QueueName, TenantName};
use tenure_core::webhook::OWN_QUEUE;
use tenure_core::{Invalid, JobId, NewJob, Scope};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{IDEMPOTENCY_KEY, answer, ok};
use crate::app::App;
use crate::body::{self, Text, at_most};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::query::Segments;
use crate::right::Enqueue;
use crate::wire::job::{EnqueuedLine, JobDocument};
use crate::{new_job, trace};

/// Most jobs of one batch.
pub(super) const BATCH_MAX: usize = 1_000;

pub(super) use list::moment;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_jobs, enqueue_job))
        .routes(routes!(enqueue_jobs))
        .routes(routes!(show_job))
        .routes(routes!(journal::list_job_rows))
        .routes(routes!(operate::cancel_job))
        .routes(routes!(operate::requeue_job))
        .routes(routes!(operate::open_job))
        .routes(routes!(operate::hasten_job))
}

/// A new job. Only `kind` has to be said.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document only: crate::new_job reads it")]
pub(crate) struct NewJobBody {
    /// What it asks for; picks the handler
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$", example = "invoice.send")]
    kind: String,
    /// For its handler: any JSON of at most 1 MiB, 64 deep
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<serde_json::Value>,
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    queue: Option<String>,
    /// 0 critical to 3 low
    #[schema(minimum = 0, maximum = 3)]
    priority: Option<u8>,
    /// Due after this, such as 90s or 5m
    #[schema(pattern = "^[0-9]{1,9}(ms|s|m|h|d)$")]
    delay: Option<String>,
    /// The same in milliseconds
    #[schema(minimum = 0, maximum = 31536000000000_u64)]
    delay_ms: Option<u64>,
    /// Due at this moment
    #[schema(format = DateTime)]
    at: Option<String>,
    /// The same, as jobs are shown
    #[schema(format = DateTime)]
    run_at: Option<String>,
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u16>,
    /// When to try again
    #[schema(example = "exponential 1m..24h by failures jitter 10%")]
    backoff: Option<String>,
    /// A key that one job holds at a time
    #[schema(min_length = 1, max_length = 500)]
    unique: Option<String>,
    /// while_active, unless_failed, forever, or a window such as window:10m
    unique_policy: Option<String>,
    /// A name for this very request, instead of the header
    #[schema(min_length = 1, max_length = 500)]
    idempotency_key: Option<String>,
    /// Whose it is; only operators say so
    tenant: Option<String>,
    /// The shared resource it passes
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    gate: Option<String>,
    /// Trace context to continue
    #[schema(min_length = 1, max_length = 500)]
    trace: Option<String>,
    /// Where to tell how it ended; signed by the tenant's endpoint for callbacks, which has to be there
    #[schema(max_length = 2000, example = "https://example.com/done")]
    callback_url: Option<String>,
    /// A uuid of version 7, of now: a repeated request is the same job
    #[schema(format = Uuid)]
    id: Option<String>,
}

/// Store a job
///
/// 201 when it is stored; 200 when an earlier job has its id, its `Idempotency-Key` or its unique key: then `id` is that
/// one's. The same key with another body is refused.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body = NewJobBody, security(("key" = ["enqueue"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A name for this very request", max_length = 500),
        ("traceparent" = Option<String>, Header, description = "The trace it belongs to unless the body names one (W3C)")),
    responses((status = 201, body = EnqueuedLine), (status = 200, body = EnqueuedLine)))]
async fn enqueue_job(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Text<Enqueue>,
) -> Result<Response, Problem> {
    let mut job = check_job(&app, &caller, &body.text, app.new_id()?).await?;
    if let Some(key) = idempotency_key(&headers)? {
        if job.idempotency_key.as_ref().is_some_and(|said| *said != key) {
            return Err(Problem::invalid(IDEMPOTENCY_KEY, "header and body name two different keys"));
        }
        job.idempotency_key = Some(key);
    }
    let stored = trace::enqueue(&app, vec![job], &headers).await?;
    let Some(stored) = stored.first() else {
        return Err(StoreError::Corrupt("an enqueue was answered with nothing".into()).into());
    };
    let status = if matches!(stored, Enqueued::Created(_)) { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer(status, &EnqueuedLine::from(stored))?;
    if let Ok(place) = HeaderValue::try_from(format!("/v1/jobs/{}", stored.job())) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Many new jobs.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewJobsBody {
    /// At most 1,000
    #[serde(deserialize_with = "at_most::<_, _, BATCH_MAX>")]
    #[schema(value_type = Vec<NewJobBody>, max_items = 1000, min_items = 1)]
    jobs: Vec<Box<RawValue>>,
}

/// What became of each, in the order given.
#[derive(Debug, Serialize, ToSchema)]
struct EnqueuedJobs {
    jobs: Vec<EnqueuedLine>,
}

/// Store many jobs, all or none
///
/// Answered in the order given. A refused one refuses all of them and is named by its place.
#[utoipa::path(post, path = "/v1/jobs/batch", tag = "jobs", request_body = NewJobsBody, security(("key" = ["enqueue"])),
    responses((status = 200, body = EnqueuedJobs)))]
async fn enqueue_jobs(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Text<Enqueue>,
) -> Result<Response, Problem> {
    let NewJobsBody { jobs: texts } = body::read(&body.text)?;
    if texts.is_empty() {
        return Err(Problem::invalid("jobs", "jobs are refused: there is none"));
    }
    let ids = app.new_ids(texts.len())?;
    let mut jobs = Vec::with_capacity(texts.len());
    for (place, (text, id)) in texts.iter().zip(ids).enumerate() {
        let job = check_job(&app, &caller, text.get(), id).await;
        jobs.push(job.map_err(|problem| problem.within(&format!("jobs[{place}]")))?);
    }
    let stored = trace::enqueue(&app, jobs, &headers).await?;
    ok(&EnqueuedJobs { jobs: stored.iter().map(EnqueuedLine::from).collect() })
}

/// One job with its attempts
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = uuid::Uuid, Path)), security(("key" = ["read"])),
    responses((status = 200, body = JobDocument)))]
async fn show_job(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let job = app.store.show_job(&caller.sight(None)?, path.get("id")?).await?;
    // How busy a gate is tells of others.
    let waits = matches!(job.summary.state, tenure_core::State::Queued | tenure_core::State::Retryable)
        && caller.tenant.is_none();
    let waits = job.summary.gate.as_ref().filter(|_| waits);
    let gate = match waits {
        Some(name) => match app.store.show_gate(name).await {
            Err(StoreError::NotFound(_)) => None,
            gate => Some(gate?),
        },
        None => None,
    };
    ok(&JobDocument::new(&job, gate.as_ref()))
}

/// The job that a caller asks for, its own tenant's.
async fn check_job(app: &App, caller: &Caller, text: &str, id: JobId) -> Result<NewJob, Problem> {
    check_job_for(app, caller, text, id, None).await
}

/// The same for a job whose tenant is known: a run's.
pub(super) async fn check_job_for(
    app: &App,
    caller: &Caller,
    text: &str,
    id: JobId,
    whose: Option<&TenantName>,
) -> Result<NewJob, Problem> {
    let mut draft = new_job::read(text)?;
    draft.tenant = Some(caller.acts_for(draft.tenant.take())?);
    let job = draft.into_job(id)?;
    check_queue(app, caller, &job.queue).await?;
    check_gate(app, caller, job.gate.as_ref()).await?;
    if let Some(url) = &job.callback_url {
        super::webhooks::check_callback(app, whose.unwrap_or(&job.tenant), url).await?;
    }
    Ok(job)
}

/// A tenant cannot make queues: they belong to all. Nor does it get into the server's own.
pub(super) async fn check_queue(app: &App, caller: &Caller, queue: &QueueName) -> Result<(), Problem> {
    if caller.tenant.is_none() {
        return Ok(());
    }
    if queue.as_str() == OWN_QUEUE {
        let detail = format!("queue `{OWN_QUEUE}` is refused: the server's own jobs wait there");
        return Err(Problem::invalid("queue", detail));
    }
    match app.has_queue(queue).await? {
        true => Ok(()),
        false => {
            let detail = format!("queue `{queue}` is refused: there is none; an operator makes it");
            Err(Problem::invalid("queue", detail))
        }
    }
}

/// Gates are shared, so a tenant passes only those that an operator has set a rule for.
pub(super) async fn check_gate(app: &App, caller: &Caller, gate: Option<&GateName>) -> Result<(), Problem> {
    match gate {
        Some(gate) if caller.tenant.is_some() && gate.as_str().starts_with("tenure.") => {
            Err(Problem::invalid("gate", format!("gate `{gate}` is refused: the server's own jobs pass it")))
        }
        Some(gate) if caller.tenant.is_some() && !app.has_rule(gate).await? => Err(Problem::invalid(
            "gate",
            format!("gate `{gate}` is refused: no rule is set for it; an operator sets one"),
        )),
        _ => Ok(()),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).ok().map(|text| text.trim().to_owned());
    text.map(Some).ok_or_else(|| Problem::invalid(IDEMPOTENCY_KEY, "Idempotency-Key is refused: it is not UTF-8"))
}

/// A name in the query, where there is one.
pub(super) fn parse<T: std::str::FromStr<Err = Invalid>>(text: Option<&str>) -> Result<Option<T>, Problem> {
    Ok(text.map(str::parse).transpose()?)
}

pub(super) fn parse_state(word: &str) -> Result<tenure_core::State, Problem> {
    let limit = "it is waiting, queued, retryable, running, succeeded, failed, dead or canceled";
    Ok(tenure_core::State::parse(word).ok_or_else(|| Invalid::new("state", word, limit))?)
}
