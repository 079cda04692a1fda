//! Inside a user's own sqlx transaction: enqueue with it, complete with it.
//!
//! Jobs travel as one JSON document through `tenure.enqueue_many`, so no type of ours meets a type of sqlx. sqlx 0.9.0
//! loses writes when `pool.begin()` is cancelled; begin where nobody cancels you.
//!
//! ```no_run
//! # async fn f(pool: &sqlx::PgPool, job: tenure_core::NewJob) -> Result<(), Box<dyn std::error::Error>> {
//! let mut tx = pool.begin().await?;
//! sqlx::query("insert into invoice (id) values (42)").execute(&mut *tx).await?;
//! tenure_postgres::sqlx_tx::enqueue_within(&mut tx, &[job]).await?;
//! tx.commit().await?;
//! # Ok(()) }
//! ```

use sqlx::postgres::PgQueryResult;
use sqlx::{PgConnection, Row};
use tenure_core::json::quote;
use tenure_core::new_job::Due;
use tenure_core::{JobId, NewJob, State};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::CompleteJob;

use crate::complete::{Advance, Completion};
use crate::error::from_code;

/// Stores jobs in the caller's transaction: they exist when it commits.
pub async fn enqueue_within(tx: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
    for job in jobs {
        job.check(job.id.made_at())?;
    }
    let document = format!("[{}]", jobs.iter().map(to_json).collect::<Vec<_>>().join(","));
    let sql = "select job::text as job, created, state from tenure.enqueue_many($1::text::jsonb) order by ord";
    let rows = sqlx::query(sql).bind(document).fetch_all(tx).await.map_err(translate)?;
    rows.iter()
        .map(|row| {
            let job: JobId = row.try_get::<String, _>("job").map_err(translate)?.parse()?;
            if row.try_get("created").map_err(translate)? {
                return Ok(Enqueued::Created(job));
            }
            let state: Option<String> = row.try_get("state").map_err(translate)?;
            Ok(Enqueued::Found { job, state: state.as_deref().and_then(State::parse) })
        })
        .collect()
}

/// Completes a job in the caller's transaction; fails as [`crate::tx::complete_in`] does.
pub async fn complete_in(tx: &mut PgConnection, request: &CompleteJob) -> Result<(), StoreError> {
    let with = Completion::new(request, None);
    let sql = "select tenure.complete_in($1, $2, $3::text::uuid, $4::text::jsonb, $5::text::jsonb, null, $6, $7)";
    let query = sqlx::query(sql).bind(with.worker).bind(with.lease).bind(with.job.to_string());
    let query = query.bind(with.result).bind(with.usage).bind(with.health).bind(with.hold_ms);
    done(query.execute(tx).await, request.job)
}

/// Moves a partition's offset with its page; fails as [`crate::tx::advance_page`] does.
pub async fn advance_page(tx: &mut PgConnection, request: &AdvancePage) -> Result<(), StoreError> {
    let Advance { page: with, rows, next } = Advance::new(request, None);
    let sql = "select tenure.advance_page($1, $2, $3::text::uuid, $4, $5::text::uuid, null, $6::text::jsonb, $7, $8, $9::text::jsonb)";
    let query = sqlx::query(sql).bind(with.worker).bind(with.lease).bind(with.job.to_string());
    let query = query.bind(rows).bind(next.map(|job| job.to_string()));
    let query = query.bind(with.usage).bind(with.health).bind(with.hold_ms).bind(with.result);
    done(query.execute(tx).await, request.page.job)
}

fn done(answer: Result<PgQueryResult, sqlx::Error>, job: JobId) -> Result<(), StoreError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if is_lease_lost(&error) => Err(StoreError::LeaseLost(job)),
        Err(error) => Err(translate(error)),
    }
}

fn is_lease_lost(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|said| said.code().as_deref() == Some("TN001"))
}

fn translate(error: sqlx::Error) -> StoreError {
    let said =
        error.as_database_error().map(|said| (said.code().unwrap_or_default().into_owned(), said.message().to_owned()));
    match said {
        Some((code, message)) => from_code(&code, &message).unwrap_or_else(|| StoreError::unavailable(error)),
        None => StoreError::unavailable(error),
    }
}

/// A job as `tenure.enqueue_many` reads it.
fn to_json(job: &NewJob) -> String {
    let mut fields = vec![
        ("id", quote(&job.id.to_string())),
        ("tenant", quote(job.tenant.as_str())),
        ("queue", quote(job.queue.as_str())),
        ("kind", quote(job.kind.as_str())),
        ("payload", job.payload.to_string()),
        ("priority", job.priority.get().to_string()),
        ("max_attempts", job.rules.max_attempts.to_string()),
        ("max_losses", job.rules.max_losses.to_string()),
        ("backoff", quote(&job.rules.backoff.to_string())),
    ];
    match job.due {
        Due::Now => {}
        Due::After(delay) => fields.push(("delay", delay.as_secs_f64().to_string())),
        Due::At(at) => fields.push(("run_at", quote(&at.to_string()))),
        Due::WhenOpened => fields.push(("waiting", "true".to_owned())),
    }
    if let Some(unique) = &job.unique {
        fields.push(("unique_key", quote(&unique.key)));
        fields.push(("unique_policy", quote(unique.policy.as_str())));
        fields.extend(unique.scope.iter().map(|scope| ("unique_scope", quote(scope))));
        fields.extend(unique.policy.window().map(|window| ("unique_window", window.as_secs_f64().to_string())));
    }
    fields.extend(job.idempotency_key.iter().map(|key| ("idempotency_key", quote(key))));
    fields.extend(job.gate.iter().map(|gate| ("gate", quote(gate.as_str()))));
    fields.extend(job.callback_url.iter().map(|url| ("callback_url", quote(url))));
    fields.extend(job.trace.iter().map(|trace| ("trace", quote(trace))));
    let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}
