//! The three questions of whoever operates it: what happened lately, how do the sources do, what is stuck?

use std::time::Duration;

use tenure::core::gate::{Admit, Why};
use tenure::core::name::GateName;
use tenure::core::{Json, QueueName};
use tenure::{Client, Database, JobFilter, JobId, JobRecord, JobState, StoreError, Timestamp};

use crate::QUEUE;
use crate::source::Source;

/// Jobs that the first question answers.
pub const RECENT: u32 = 20;
/// A job that runs and was not heard of for this long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(5 * 60);

/// A job as the seed's questions show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Which.
    pub id: JobId,
    /// Where it stands.
    pub status: JobState,
    /// Attempts charged.
    pub attempt: u16,
    /// Who runs it, or ran it last.
    pub locked_by: Option<String>,
    /// When who runs it was last heard of.
    pub heartbeat_at: Option<Timestamp>,
    /// How long ago that was.
    pub silent_for: Option<Duration>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// The last thing that went wrong.
    pub error_message: Option<String>,
}

/// How a source does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Which.
    pub name: String,
    /// Whether it is asked.
    pub enabled: bool,
    /// Failures in a row.
    pub failure_streak: u32,
    /// When it last did well.
    pub last_success_at: Option<Timestamp>,
    /// When it last did badly.
    pub last_failure_at: Option<Timestamp>,
    /// Until when it is left alone; `None` also where that is until somebody says so.
    pub paused_until: Option<Timestamp>,
    /// Why it is left alone, if it is: paused by somebody, held at its own wish, its breaker open or tried.
    pub closed: Option<Why>,
}

/// The last twenty jobs, newest first.
pub async fn recent_jobs(client: &Client) -> Result<Vec<Seen>, StoreError> {
    look(client, JobFilter { limit: RECENT, ..JobFilter::default() }).await
}

/// Jobs that run without having been heard of for five minutes.
pub async fn stuck_jobs(client: &Client) -> Result<Vec<Seen>, StoreError> {
    look(client, JobFilter { stuck_for: Some(STUCK_AFTER), limit: 1_000, ..JobFilter::default() }).await
}

/// Every source by name, as the table and its gate know it.
pub async fn source_health(client: &Client, database: &Database) -> Result<Vec<Health>, StoreError> {
    let mut all = Vec::new();
    for source in Source::list(database).await? {
        let record = client.store().show_gate(&GateName::new(source.gate())?).await?;
        let (gate, now) = (record.gate, record.now);
        let until = [gate.open_until, gate.paused_until, gate.held_until].into_iter().flatten().max();
        all.push(Health {
            name: source.id,
            enabled: source.enabled,
            failure_streak: gate.streak,
            last_success_at: gate.succeeded_at,
            last_failure_at: gate.failed_at,
            paused_until: until.filter(|until| *until > now && *until < Timestamp::MAX),
            closed: match record.admit {
                Admit::Closed { why, .. } if why != Why::Rate => Some(why),
                _ => None,
            },
        });
    }
    Ok(all)
}

/// What the list says of each, and what only the job itself says.
async fn look(client: &Client, filter: JobFilter) -> Result<Vec<Seen>, StoreError> {
    let filter = JobFilter { queue: Some(QueueName::new(QUEUE)?), ..filter };
    let now = client.store().now().await?;
    let mut seen = Vec::new();
    for job in client.store().list_jobs(&filter).await? {
        match client.show(job.id).await {
            Ok(record) => seen.push(Seen::of(record, now)),
            // Pruned since it was listed.
            Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

impl Seen {
    fn of(record: JobRecord, now: Timestamp) -> Self {
        let JobRecord { summary, heartbeat_at, attempts, .. } = record;
        let ran = attempts.into_iter().rev().find_map(|attempt| attempt.worker);
        Self {
            id: summary.id,
            status: summary.state,
            attempt: summary.attempt,
            locked_by: summary.locked_by.or(ran),
            heartbeat_at,
            silent_for: heartbeat_at.map(|at| now.since(at)),
            created_at: summary.created_at,
            completed_at: summary.finished_at,
            error_message: summary.error.as_ref().and_then(message),
        }
    }
}

/// The sentence of an error.
fn message(error: &Json) -> Option<String> {
    let error: serde_json::Value = serde_json::from_str(error.as_str()).ok()?;
    Some(error.get("message")?.as_str()?.to_owned())
}
