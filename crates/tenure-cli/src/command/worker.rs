//! `tenure worker`: run jobs of the built-in kinds until told to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::State;
use tenure_core::duration;
use tenure_core::gate::{Admit, Why};
use tenure_core::name::{GateName, QueueName};
use tenure_core::worker_loop::ERROR_WAIT;
use tenure_store::operate::{BATCH_MAX, Word};
use tenure_store::record::JobFilter;
use tenure_store::{Store, StoreError, Waker};
use tenure_worker::{Observer, Summary, Worker, signal};

use super::{Answer, Session, gates, schedules};
use crate::args::limit;
use crate::failure::{Failure, exit};
use crate::settings::{HttpFlags, WorkerFlags};
use crate::{broker, kinds, log, open};

const EXAMPLES: &str = "\
Examples:
  tenure worker                                  ten slots on queue default
  tenure worker --queue mail=4 --queue pages=20  slots per queue
  tenure worker --once                           until nothing is due or running in its queues, then exit
  tenure worker --http-allow 127.0.0.1 --http-ports 8080
  tenure enqueue http '{\"url\": \"http://127.0.0.1:8080/\", \"body\": {\"order\": 42}}'

Kinds it can run, with their payloads:
  noop   anything
  sleep  {\"for\": \"2s\"}
  fail   {\"how\": \"transient\", \"message\": \"…\", \"until\": 3}
         how: transient, permanent, dead, snooze, canceled, panic; it succeeds at attempt `until`
  http   {\"url\": \"https://…\", \"method\": \"POST\", \"headers\": {}, \"body\": …, \"timeout\": \"30s\"}
         2xx succeeds; 429, 5xx, timeouts and lost connections are tried again; other 4xx fail
         off unless hosts are listed: --http-allow api.example.com (or any, for all public hosts)
Jobs of other kinds are given back for other workers: your own kinds are handlers in your own program.

The first SIGTERM or Ctrl-C stops claiming and lets running jobs finish for the grace period; what is left is given
back, no attempt charged, and the exit code is 0. One that comes more than a second later ends the process at once,
with exit code 130; signals within a second of the first count as one, because `timeout` sends two.";

/// Run jobs until told to stop
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// A queue to serve, with its slots: jobs of it that run at once here; may be repeated
    #[arg(long = "queue", value_name = "NAME[=SLOTS]", value_parser = queue)]
    queues: Vec<(QueueName, Option<u32>)>,
    /// Slots of queues that do not say
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slots: u32,
    /// Jobs claimed ahead of free slots, for throughput of very short jobs
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    prefetch: u32,
    /// The longest wait between two looks for work
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = time)]
    poll: Duration,
    /// Exit when nothing is due or running in its queues; exit code 3 when the store is not there
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    settings: WorkerFlags,
}

pub(crate) fn run(args: &WorkerArgs, session: &mut Session) -> Result<Answer, Failure> {
    let telemetry = log::start(&session.settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    let ran = runtime.block_on(work(args, session, telemetry.observer()));
    // A handler that blocks its thread must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    telemetry.close();
    let summary = ran?;
    if session.out.is_json() {
        session.out.json(&to_json(&summary))?;
    }
    Ok(Answer::Done)
}

async fn work(args: &WorkerArgs, session: &Session, observer: Option<Arc<dyn Observer>>) -> Result<Summary, Failure> {
    let unheard =
        |error: std::io::Error| Failure::new("worker", exit::STORE, "the worker cannot start").caused_by(&error);
    // Before anything else: also a process that starts is told to stop.
    let stop = signal::first_then_exit_on_second().map_err(unheard)?;
    tokio::pin!(stop);
    // One that runs once waits for nobody.
    let broker = if args.once { None } else { broker::start(&session.settings.rabbitmq)? };
    let store = tokio::select! {
        biased;
        () = &mut stop => return Ok(Summary::default()),
        store = connect(session, args.once) => store?,
    };
    let around = Around { waker: broker.as_ref().map(|broker| broker.waker()), observer };
    let worker = build(args, session, &store, around).await?;
    let watched = args.served();
    let until = async {
        tokio::select! {
            () = stop => {}
            () = idle(&*store, &watched), if args.once => {}
        }
    };
    let worked = worker.run_until(until).await.map_err(unheard);
    if let Some(broker) = broker {
        broker.close().await;
    }
    worked
}

/// Who is around a worker: who wakes it, and who hears how attempts end.
pub(super) struct Around {
    pub(super) waker: Option<Arc<dyn Waker>>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl WorkerArgs {
    /// What the command line says that settings say, too.
    pub(crate) fn flags(&self) -> WorkerFlags {
        self.settings.with_http(self.http.clone())
    }

    /// The queues it serves.
    fn served(&self) -> Vec<QueueName> {
        match self.queues.is_empty() {
            true => vec![QueueName::default()],
            false => self.queues.iter().map(|(queue, _)| queue.clone()).collect(),
        }
    }
}

/// The worker that the command line and the settings describe; gates and schedules of the settings are set.
pub(super) async fn build(
    args: &WorkerArgs,
    session: &Session,
    store: &Arc<dyn Store>,
    Around { waker, observer }: Around,
) -> Result<Worker, Failure> {
    let word = Word { actor: session.settings.actor(None), reason: Some("the settings of a worker".to_owned()) };
    for (pattern, _) in gates::apply(&**store, session.settings.gates.clone(), word.clone()).await? {
        tracing::info!(gate = %pattern, "its rule is set as the settings say");
    }
    let named = session.settings.schedules.clone();
    for set in schedules::apply(&**store, named, session.tenant(None), word).await? {
        tracing::info!(schedule = %set.name, "it is set as the settings say");
    }
    let settings = &session.settings.worker;
    let mut worker = Worker::builder(store)
        .grace(settings.grace.value)
        .retention(Some(settings.retention.value))
        .poll_every(args.poll)
        .prefetch(args.prefetch);
    if let Some(waker) = waker {
        worker = worker.waker(waker);
    }
    if let Some(observer) = observer {
        worker = worker.observer(observer);
    }
    if let Some(id) = &settings.id {
        worker = worker.name(id.value.as_str());
    }
    let mut queues = args.queues.clone();
    if queues.is_empty() {
        queues.push((QueueName::default(), None));
    }
    for (queue, slots) in &queues {
        worker = worker.queue(queue.as_str(), slots.unwrap_or(args.slots));
    }
    let http = session.settings.http.guard();
    let names: Vec<&str> =
        kinds::KINDS.iter().map(|(kind, _)| *kind).filter(|kind| http.is_some() || *kind != kinds::HTTP).collect();
    if http.is_none() {
        tracing::info!(
            "kind http is off and its jobs stay queued: list the hosts that jobs may call with --http-allow"
        );
    }
    let worker = kinds::add(worker, http)?.build()?;
    let served: Vec<String> =
        queues.iter().map(|(queue, slots)| format!("{queue}={}", slots.unwrap_or(args.slots))).collect();
    tracing::info!(store = %session.settings.location.value, queues = served.join(" "), kinds = names.join(" "), "the worker starts; Ctrl-C stops it");
    Ok(worker)
}

/// The store, waited for: a worker that starts before its database is no error. Everything else is, and a worker that
/// runs once does not wait.
pub(super) async fn connect(session: &Session, once: bool) -> Result<Arc<dyn Store>, Failure> {
    let waits = !once && session.settings.location.value.is_server();
    loop {
        match session.store_to_add().await {
            // A file that cannot be opened today cannot be opened in five seconds.
            Err(failure) if failure.code() == "unavailable" && waits => {
                tracing::warn!(error = failure.in_one_line(), "the store is not available; trying again");
                tokio::time::sleep(ERROR_WAIT).await;
            }
            answer => {
                if answer.is_ok() {
                    open::warn_of_readers(&session.settings.location.value);
                }
                return answer;
            }
        }
    }
}

/// Until no schedule has to be looked at, no run has something to count, and nothing is due or running, but for jobs behind gates that somebody has closed.
/// A look that fails says nothing.
async fn idle(store: &dyn Store, queues: &[QueueName]) {
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Asked first: what a schedule has asked for, and what a run has opened, is in its queue then.
        let Ok(schedules) = store.due_schedules(1).await else { continue };
        let Ok(runs) = store.fold_runs().await else { continue };
        let Ok(records) = store.list_queues().await else { continue };
        let mut busy = !schedules.due.is_empty() || runs.changes > 0;
        for record in records.iter().filter(|record| queues.contains(&record.name) && !record.paused) {
            busy |= record.running > 0 || record.due > 0 && !is_shut_out(store, &record.name).await.unwrap_or(false);
        }
        if !busy {
            return;
        }
    }
}

/// Whether everything that is due in a queue waits for a gate that is paused, held or open. What only waits for its turn,
/// or for a token, is worth waiting for.
async fn is_shut_out(store: &dyn Store, queue: &QueueName) -> Result<bool, StoreError> {
    let now = store.now().await?;
    let mut shut: HashMap<GateName, bool> = HashMap::new();
    for state in [State::Queued, State::Retryable] {
        let filter =
            JobFilter { queue: Some(queue.clone()), state: Some(state), limit: BATCH_MAX, ..JobFilter::default() };
        for job in store.list_jobs(&filter).await?.into_iter().filter(|job| job.run_at <= now) {
            let Some(gate) = job.gate else { return Ok(false) };
            let is_shut = match shut.get(&gate) {
                Some(known) => *known,
                None => match store.show_gate(&gate).await {
                    Err(StoreError::NotFound(_)) => false,
                    record => matches!(record?.admit, Admit::Closed { why: Why::Paused | Why::Held | Why::Open, .. }),
                },
            };
            shut.insert(gate, is_shut);
            if !is_shut {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn to_json(summary: &Summary) -> serde_json::Value {
    json!({
        "claimed": summary.claimed,
        "succeeded": summary.succeeded,
        "failed": summary.failed,
        "released": summary.released,
        "refused": summary.refused,
        "fenced": summary.fenced,
        "unknown_kinds": summary.unknown_kinds,
    })
}

fn queue(text: &str) -> Result<(QueueName, Option<u32>), String> {
    let (name, slots) = match text.split_once('=') {
        Some((name, slots)) => (name, Some(slots)),
        None => (text, None),
    };
    let slots = slots.map(|slots| match slots.parse() {
        Ok(slots @ 1..=10_000) => Ok(slots),
        _ => Err(format!("`{slots}` slots: a queue has 1 to 10000, such as {name}=10")),
    });
    Ok((name.parse().map_err(limit)?, slots.transpose()?))
}

fn time(text: &str) -> Result<Duration, String> {
    match duration::parse("poll", text).map_err(limit)? {
        time if time.is_zero() => Err("it is longer than zero".into()),
        time => Ok(time),
    }
}
