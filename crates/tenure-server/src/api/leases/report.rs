//! How jobs end in the hands of workers that come over HTTP: one file, one answer. The fence is in the path.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure_core::apply::decide_failure;
use tenure_core::backoff::Roll;
use tenure_core::duration::DURATION_MAX;
use tenure_core::failure::Failure;
use tenure_core::{Class, Health, How, Invalid, Job, JobId, Json as Document, LeaseNo, State as JobState};
use tenure_store::StoreError;
use tenure_store::gate::{AcquireTokens, Acquired};
use tenure_store::lease::{ERROR_BYTES_MAX, EndJob, EndJobs, Ended, Ending, GateWord};
use tenure_store::record::Sight;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::ok;
use crate::app::App;
use crate::body::Json;
use crate::caller::RemoteWorker;
use crate::problem::{BUSY, LEASE_LOST, Problem};
use crate::query::Segments;
use crate::right::{Operators, Work};

/// Tries at a report while somebody else ends the same attempt, and the pause between them.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// How long a job is put off whose gate somebody has closed until further notice.
const CLOSED_WAIT: Duration = Duration::from_secs(60);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(complete_job))
        .routes(routes!(fail_job))
        .routes(routes!(snooze_job))
        .routes(routes!(release_job))
        .routes(routes!(acknowledge_cancel))
        .routes(routes!(acquire_tokens))
}

/// What a worker says of the gate that its job passed.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GateReport {
    /// healthy or unhealthy; as the ending tells where nothing is said
    #[schema(pattern = "^(healthy|unhealthy)$")]
    health: Option<String>,
    /// The resource asked for silence: nothing passes for this long
    #[schema(maximum = 86400000)]
    hold_ms: Option<u64>,
}

/// Where a job stands after a report.
#[derive(Debug, Serialize, ToSchema)]
struct ReportAnswer {
    job: String,
    state: &'static str,
    /// It had ended so before: usually this very report was stored, and only its answer was lost
    repeated: bool,
}

/// It is done.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    /// Any JSON of at most 1 MiB
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<Box<RawValue>>,
    /// What it used: names and numbers
    #[schema(value_type = Option<std::collections::BTreeMap<String, f64>>)]
    usage: Option<Box<RawValue>>,
    gate: Option<GateReport>,
}

/// Say that a job is done
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/complete", tag = "worker protocol", request_body = CompleteBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = ReportAnswer)))]
async fn complete_job(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, CompleteBody>,
) -> Result<Response, Problem> {
    let result = document("result", body.result)?;
    let usage = document("usage", body.usage)?;
    usage.as_ref().map_or(Ok(()), |usage| check_usage(usage.as_str()))?;
    report(&app, &remote, &path, Ending::Succeeded { result, usage }, word(body.gate)?).await
}

/// It went wrong.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailBody {
    /// transient, permanent or dead; transient where nothing is said
    #[schema(pattern = "^(transient|permanent|dead)$")]
    class: Option<String>,
    /// A sentence for people
    #[serde(default)]
    message: String,
    /// A word for programs
    code: Option<String>,
    /// Whatever else belongs to it
    #[schema(value_type = Option<serde_json::Value>)]
    details: Option<Box<RawValue>>,
    /// When to try again, instead of the job's own backoff
    #[schema(maximum = 31536000000_u64)]
    retry_in_ms: Option<u64>,
    gate: Option<GateReport>,
}

/// Say that a job went wrong
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/fail", tag = "worker protocol", request_body = FailBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = ReportAnswer)))]
async fn fail_job(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, FailBody>,
) -> Result<Response, Problem> {
    let class = match body.class.as_deref() {
        None | Some("transient") => Class::Transient,
        Some("permanent") => Class::Permanent,
        Some("dead") => Class::Dead,
        Some(other) => return Err(Invalid::new("class", other, "it is transient, permanent or dead").into()),
    };
    let retry_in = body.retry_in_ms.map(|millis| delay("retry_in_ms", millis)).transpose()?;
    let details = document("details", body.details)?;
    let mut gate = word(body.gate)?;
    if class == Class::Transient {
        // Also on the last attempt, whose ending does not tell.
        gate.health = gate.health.or(Some(Health::Unhealthy));
    }
    let failure =
        Failure { class, code: body.code.as_deref(), message: &body.message, causes: &[], details: details.as_ref() };
    let error = failure.to_json(ERROR_BYTES_MAX);
    let ending = judge(&app, path.get("job")?, class, retry_in, error).await?;
    report(&app, &remote, &path, ending, gate).await
}

/// What follows from a failure, by the job's own rules. A retry stays one when the attempts are used up: the store knows,
/// and a repeated report is then still the same.
async fn judge(
    app: &App,
    job: JobId,
    class: Class,
    retry_in: Option<Duration>,
    error: Document,
) -> Result<Ending, Problem> {
    let record = match app.store.show_job(&Sight::All, job).await {
        Err(StoreError::NotFound(_)) => return Err(lost(job)),
        record => record?,
    };
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| Problem::internal("no random bits for a delay", &error))?;
    let held = Job {
        state: JobState::Running,
        attempt: record.summary.attempt.min(record.rules.max_attempts.saturating_sub(1)),
        losses: record.losses,
        run_at: record.summary.run_at,
        lease: record.lease,
        cancel_requested: false,
        rules: record.rules,
    };
    Ok(match decide_failure(&held, class, retry_in, Roll(u32::from_ne_bytes(random))) {
        (How::Retry, _, delay) => Ending::Retry { delay, error },
        (How::Dead, ..) if class == Class::Transient => Ending::Retry { delay: Duration::ZERO, error },
        (How::Dead, ..) => Ending::Dead { error },
        _ => Ending::Failed { error },
    })
}

/// Later.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DelayBody {
    /// How much later; at once where nothing is said
    #[serde(default)]
    #[schema(maximum = 31536000000_u64)]
    delay_ms: u64,
    gate: Option<GateReport>,
}

/// Put a job off, no attempt charged
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/snooze", tag = "worker protocol", request_body = DelayBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = ReportAnswer)))]
async fn snooze_job(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, DelayBody>,
) -> Result<Response, Problem> {
    let ending = Ending::Snoozed { delay: delay("delay_ms", body.delay_ms)? };
    report(&app, &remote, &path, ending, word(body.gate)?).await
}

/// Give a job back, no attempt charged
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/release", tag = "worker protocol", request_body = DelayBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = ReportAnswer)))]
async fn release_job(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, DelayBody>,
) -> Result<Response, Problem> {
    let ending = Ending::Released { delay: delay("delay_ms", body.delay_ms)? };
    report(&app, &remote, &path, ending, word(body.gate)?).await
}

/// It was stopped.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StoppedBody {
    /// If there is more to say
    message: Option<String>,
    gate: Option<GateReport>,
}

/// Say that a job was stopped, because that was asked for
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/cancel", tag = "worker protocol", request_body = StoppedBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = ReportAnswer)))]
async fn acknowledge_cancel(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, StoppedBody>,
) -> Result<Response, Problem> {
    let told = |message: String| {
        let failure =
            Failure { class: Class::Permanent, code: Some("canceled"), message: &message, causes: &[], details: None };
        failure.to_json(ERROR_BYTES_MAX)
    };
    let ending = Ending::Canceled { error: body.message.map(told) };
    report(&app, &remote, &path, ending, word(body.gate)?).await
}

/// How many calls.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AcquireBody {
    #[schema(minimum = 1, maximum = 1000)]
    tokens: u32,
}

/// When the resource may be called.
#[derive(Debug, Serialize, ToSchema)]
struct AcquireAnswer {
    /// The tokens are reserved: call after this long. Null when the gate is closed
    wait_ms: Option<u64>,
    /// The gate is closed: snooze the job for this long
    snooze_ms: Option<u64>,
}

/// Ask for tokens of the job's gate, before the resource is called again
#[utoipa::path(post, path = "/v1/leases/{lease}/jobs/{job}/acquire", tag = "worker protocol", request_body = AcquireBody,
    params(("lease" = i64, Path), ("job" = uuid::Uuid, Path)), security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = AcquireAnswer)))]
async fn acquire_tokens(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, AcquireBody>,
) -> Result<Response, Problem> {
    let (lease, job) = (LeaseNo(path.number("lease")?), path.get("job")?);
    let request = AcquireTokens { worker: remote.id, lease, job, tokens: body.tokens };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match app.store.acquire_tokens(request).await? {
        Acquired::After(wait) => ok(&AcquireAnswer { wait_ms: Some(millis(wait)), snooze_ms: None }),
        Acquired::Closed { until, .. } => {
            let now = app.store.now().await?;
            let snooze = until.map_or(CLOSED_WAIT, |until| until.since(now));
            ok(&AcquireAnswer { wait_ms: None, snooze_ms: Some(millis(snooze)) })
        }
        // The store says the same of a job that has no gate.
        Acquired::LeaseLost => match app.store.show_job(&Sight::All, job).await {
            Ok(record) if record.lease == Some(lease) && record.summary.gate.is_none() => {
                Err(StoreError::Conflict(format!("job {job} passes no gate: there is nothing to ask for")).into())
            }
            _ => Err(lost(job)),
        },
    }
}

async fn report(
    app: &App,
    remote: &RemoteWorker,
    path: &Segments,
    ending: Ending,
    gate: GateWord,
) -> Result<Response, Problem> {
    let (lease, job): (_, JobId) = (LeaseNo(path.number("lease")?), path.get("job")?);
    for _ in 0..TRIES {
        let end = EndJob { job, ending: ending.clone(), gate };
        let ended = app.store.end_jobs(EndJobs { worker: remote.id, lease, jobs: vec![end] }).await?;
        let (how, repeated) = match ended.first() {
            Some(Ended::Now(how)) => (how, false),
            Some(Ended::Before(how)) => (how, true),
            Some(Ended::LeaseLost { .. }) | None => return Err(lost(job)),
            Some(Ended::Busy) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        return ok(&ReportAnswer { job: job.to_string(), state: how.leads_to().as_str(), repeated });
    }
    Err(Problem::new(BUSY, format!("job {job} is just being ended by somebody else: say it again in a moment")))
}

fn lost(job: JobId) -> Problem {
    Problem::new(LEASE_LOST, format!("the lease no longer holds job {job}: its result is dropped"))
}

fn word(gate: Option<GateReport>) -> Result<GateWord, Invalid> {
    let Some(gate) = gate else { return Ok(GateWord::default()) };
    let health = match gate.health.as_deref() {
        None => None,
        Some("healthy") => Some(Health::Healthy),
        Some("unhealthy") => Some(Health::Unhealthy),
        Some(other) => return Err(Invalid::new("health", other, "it is healthy or unhealthy")),
    };
    Ok(GateWord { health, silent: false, hold: gate.hold_ms.map(Duration::from_millis) })
}

fn delay(field: &'static str, millis: u64) -> Result<Duration, Invalid> {
    let delay = Duration::from_millis(millis);
    if delay > DURATION_MAX {
        return Err(Invalid::new(field, millis, "it is at most 365000 days"));
    }
    Ok(delay)
}

fn document(field: &'static str, raw: Option<Box<RawValue>>) -> Result<Option<Document>, Invalid> {
    raw.map(|raw| Document::parse(field, raw.get())).transpose()
}

/// Usage is summed, so it is numbers.
fn check_usage(text: &str) -> Result<(), Invalid> {
    let refused = || Invalid::new("usage", "", "it is an object of names and numbers, such as {\"bytes\": 1024}");
    serde_json::from_str::<std::collections::BTreeMap<String, f64>>(text).map(|_| ()).map_err(|_| refused())
}
