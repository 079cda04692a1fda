//! `tenure enqueue`: store one job from flags, or many from JSON lines.

mod file;

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::IgnoredAny;
use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::new_job::Due;
use tenure_core::unique::Policy;
use tenure_core::{Backoff, Invalid, JobId, Json, Priority, Timestamp};
use tenure_store::enqueue::Enqueued;

use super::{Answer, Session};
use crate::args::{gate, job_id, kind, limit, priority, queue, tenant};
use crate::failure::{Failure, exit};
use crate::kinds;
use tenure_server::moment;
use tenure_server::new_job::draft::{max_attempts, policy};
use tenure_server::new_job::{Draft, Ids};
use tenure_server::wire::job::EnqueuedLine;

const EXAMPLES: &str = "\
Examples:
  tenure enqueue invoice.send '{\"order\": 42}'          due now, in the queue `default`
  tenure enqueue report --queue slow --delay 10m       in ten minutes
  tenure enqueue report --at 2026-12-01T06:00:00Z --priority high
  tenure enqueue crawl '{\"url\": \"…\"}' --unique example.org --unique-policy window:10m
  tenure enqueue import - < payload.json               payload from standard input
  tenure enqueue --file jobs.jsonl                     many, one JSON object a line; - is standard input

A line of a file has the members kind, payload, queue, priority, delay, at, max_attempts, backoff, unique,
unique_policy, idempotency_key, tenant, gate, trace, callback_url and id; only kind is needed. Flags fill in what a line
leaves out.
  {\"kind\": \"invoice.send\", \"payload\": {\"order\": 42}, \"queue\": \"mail\", \"delay\": \"5m\"}

Unique policies: while_active (until it ends), unless_failed (that, and after success), forever, window:10m.
Backoff: never, none, 'fixed 5m', 'exponential 1m..24h by failures jitter 10%', 'steps 1s 10s 5m'.";

/// Store a job, or many from a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EnqueueArgs {
    /// What is to be done; picks the handler
    #[arg(value_parser = kind, required_unless_present = "file", conflicts_with = "file")]
    kind: Option<KindName>,
    /// JSON for the handler, {} if left out; - reads standard input
    #[arg(allow_negative_numbers = true)]
    payload: Option<String>,
    /// Read jobs from a file of JSON lines; - is standard input
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Where it waits [default: default]
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// critical, high, normal or low, or 0 to 3 [default: normal]
    #[arg(long, value_name = "PRIORITY", value_parser = priority, allow_negative_numbers = true)]
    priority: Option<Priority>,
    /// Due after this, such as 90s, 5m, 24h
    #[arg(long, value_name = "DURATION", value_parser = delay, conflicts_with = "at")]
    delay: Option<Duration>,
    /// Due at this moment, such as 2026-12-01T06:00:00Z
    #[arg(long, value_name = "DATE", value_parser = at)]
    at: Option<Timestamp>,
    /// Attempts before it is dead [default: 5]
    #[arg(long, value_name = "N", value_parser = max_attempts_flag, allow_negative_numbers = true)]
    max_attempts: Option<u16>,
    /// When to try again, see below
    #[arg(long, value_name = "POLICY", value_parser = backoff)]
    backoff: Option<Backoff>,
    /// Find the job that has this key instead of storing another
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    unique: Option<String>,
    /// How long it keeps its key, see below [default: while_active]
    #[arg(long, value_name = "POLICY", value_parser = policy_flag)]
    unique_policy: Option<Policy>,
    /// The same key again is the same job, with another body it is refused
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    idempotency_key: Option<String>,
    /// Whose it is [default: default]
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<TenantName>,
    /// The shared resource it passes, such as source:ebay; see tenure gates
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Option<GateName>,
    /// Trace context to continue, such as a W3C traceparent
    #[arg(long, value_name = "TEXT")]
    trace: Option<String>,
    /// Where to tell how it ended; needs tenure webhooks create --callbacks
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// Its id, a uuid of version 7; the same id again is the same job
    #[arg(long, value_name = "UUID", value_parser = job_id, conflicts_with = "file")]
    id: Option<JobId>,
}

pub(crate) async fn run(args: EnqueueArgs, session: &mut Session) -> Result<Answer, Failure> {
    if args.unique_policy.is_some() && args.unique.is_none() && args.file.is_none() {
        return Err(Failure::usage("usage", "--unique-policy needs a key: add --unique KEY"));
    }
    let payload = args.payload.map(|text| payload(text, args.kind.as_ref())).transpose()?;
    let draft = Draft {
        kind: args.kind,
        payload,
        queue: args.queue,
        priority: args.priority,
        due: args.delay.map(Due::After).or(args.at.map(Due::At)),
        max_attempts: args.max_attempts,
        backoff: args.backoff,
        unique: args.unique,
        unique_policy: args.unique_policy,
        idempotency_key: args.idempotency_key,
        gate: args.gate,
        tenant: session.tenant(args.tenant),
        trace: args.trace,
        callback_url: args.callback_url,
        id: args.id,
    };
    match args.file {
        Some(path) => file::run(&path, &draft, session).await,
        None => one(draft, session).await,
    }
}

async fn one(draft: Draft, session: &mut Session) -> Result<Answer, Failure> {
    let job = draft.into_job(Ids::new().make()?)?;
    job.check(moment::now())?;
    let (queue, due) = (job.queue.clone(), job.due);
    let enqueued = session.store_to_add().await?.enqueue_jobs(vec![job]).await?;
    let silent = || Failure::new("corrupt", exit::STORE, "the store did not answer for the job");
    let enqueued = enqueued.first().ok_or_else(silent)?;
    if session.out.is_json() {
        session.out.json(&EnqueuedLine::from(enqueued))?;
        return Ok(Answer::Done);
    }
    session.out.line(match enqueued {
        Enqueued::Created(job) => format!("Stored job {job} in queue {queue}, due {}.", due_text(due)),
        Enqueued::Found { job, state: Some(state) } => {
            format!("Found job {job}, {}; nothing new was stored.", state.as_str())
        }
        Enqueued::Found { job, state: None } => {
            format!("Found the key of job {job}, which was pruned; nothing new was stored.")
        }
    });
    Ok(Answer::Done)
}

fn due_text(due: Due) -> String {
    match due {
        Due::Now | Due::WhenOpened => "now".to_owned(),
        Due::After(delay) => format!("in {}", moment::span(delay)),
        Due::At(at) => format!("at {}", moment::absolute(at)),
    }
}

/// The payload as it was given, or from standard input. A refusal never repeats it, since it may hold a secret.
fn payload(text: String, kind: Option<&KindName>) -> Result<Json, Failure> {
    let text = if text == "-" { read_stdin()? } else { text };
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let was_json = is_json(&text);
    Json::parse("payload", text).map_err(|invalid| {
        let why = match was_json || invalid.limit.starts_with("it is not JSON") {
            true => invalid.limit,
            false => format!("it is not JSON: {}", invalid.limit),
        };
        let name = kind.map_or("KIND", KindName::as_str);
        // Some kinds describe their payload in words.
        let known = kinds::KINDS.iter().find(|(known, example)| *known == name && is_json(example));
        let example = known.map_or("{\"order\": 42}", |(_, example)| example);
        let hint = format!("A payload is JSON. Quote it for the shell: tenure enqueue {name} '{example}'");
        Failure::from(Invalid::new("payload", "", why)).hint(hint)
    })
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let unreadable = |error| Failure::usage("input", "the payload on standard input cannot be read").caused_by(&error);
    // One byte more than is allowed: enough to see that it is too much.
    let most = PAYLOAD_BYTES_MAX as u64 + 1;
    std::io::stdin().lock().take(most).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > PAYLOAD_BYTES_MAX {
        let message = format!("payload is refused: it is at most {PAYLOAD_BYTES_MAX} bytes of JSON");
        return Err(Failure::usage("invalid", message));
    }
    Ok(text)
}

fn max_attempts_flag(text: &str) -> Result<u16, String> {
    max_attempts(text).map_err(limit)
}

fn policy_flag(text: &str) -> Result<Policy, String> {
    policy(text).map_err(limit)
}

fn backoff(text: &str) -> Result<Backoff, String> {
    text.parse().map_err(limit)
}

fn delay(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("delay", text).map_err(limit)
}

fn at(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse("at", text).map_err(limit)
}
