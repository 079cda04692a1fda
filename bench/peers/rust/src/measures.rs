//! The measures, the same for every peer, and what a peer has to offer for them.

use std::future::Future;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::{Connection, PgConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// About a hundred bytes of JSON, as for every system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Payload {
    pub n: i64,
    pub to: String,
    pub subject: String,
    /// A job of low priority that waits behind those that are measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backlog: bool,
}

impl Payload {
    pub fn new(n: i64, backlog: bool) -> Self {
        let subject = "a line that fills the payload up to size".to_owned();
        Self { n, to: "somebody@example.org".to_owned(), subject, backlog }
    }
}

/// What a handler does: it is told of the job and answers how long it takes.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(&Payload) -> Duration + Send + Sync>);

impl Handler {
    fn new(start: impl Fn(&Payload) -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    pub async fn run(&self, payload: &Payload) {
        let takes = (self.0)(payload);
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Handler")
    }
}

/// What jobs that are enqueued in bulk are like.
#[derive(Debug, Clone, Copy)]
pub struct Bulk {
    /// Due in a year.
    pub scheduled: bool,
    /// Of low priority.
    pub backlog: bool,
}

pub type Settings = Map<String, Value>;

pub trait Peer: Sized {
    /// The name of its crate.
    const SYSTEM: &str;
    /// Whether a job of normal priority that is due is not recorded as finished.
    const UNFINISHED: &str;
    /// Makes history of all jobs, where the peer keeps history.
    const FINISH: Option<&str>;
    type Producer: Send + Sync + 'static;

    /// Its best documented settings for a measure.
    fn settings(measure: &str) -> Value;
    async fn setup(url: &str) -> Result<()>;
    /// Enqueues the jobs of these numbers by its bulk interface.
    fn add_all(producer: &Self::Producer, bulk: Bulk, numbers: Range<i64>) -> impl Future<Output = Result<()>> + Send;
    async fn producer(url: &str, producers: u32) -> Result<Self::Producer>;
    fn add(producer: &Self::Producer, payload: Payload) -> impl Future<Output = Result<()>> + Send;
    /// Starts a worker that runs until the process ends.
    async fn work(url: &str, settings: &Settings, handler: Handler) -> Result<()>;
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    measure: Option<String>,
    count: i64,
    producers: Option<u32>,
    every_ms: Option<u64>,
    sleep_ms_max: u64,
    scheduled: bool,
    backlog: bool,
    settings: Settings,
}

pub async fn run<P: Peer>(action: &str, url: &str, options: Options) -> Result<()> {
    let measure = match action {
        "fill" | "history" => "enqueue_bulk".to_owned(),
        _ => options.measure.clone().unwrap_or_else(|| action.to_owned()),
    };
    let Value::Object(mut settings) = P::settings(&measure) else {
        bail!("{} has no settings for {measure}", P::SYSTEM)
    };
    settings.extend(options.settings.clone());
    let print = |mut measured: Value| {
        measured["system"] = json!(P::SYSTEM);
        measured["version"] = json!(locked_version(P::SYSTEM));
        measured["measure"] = json!(measure);
        let described = settings.iter().map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')));
        measured["settings"] = json!(described.collect::<Vec<_>>().join(" "));
        println!("{measured}");
    };
    let bulk = Bulk { scheduled: options.scheduled, backlog: options.backlog };
    match action {
        "setup" => P::setup(url).await?,
        "fill" => drop(enqueue_bulk::<P>(url, &options, &settings, bulk).await?),
        // Finished jobs, where the peer keeps them; nothing else may be there yet.
        "history" => {
            if let Some(sql) = P::FINISH {
                enqueue_bulk::<P>(url, &options, &settings, bulk).await?;
                sqlx::raw_sql(sql).execute(&mut PgConnection::connect(url).await?).await?;
            }
        }
        "enqueue_bulk" => print(enqueue_bulk::<P>(url, &options, &settings, bulk).await?),
        "enqueue_single" => print(enqueue_single::<P>(url, &options).await?),
        "drain" => print(drain::<P>(url, &options, &settings).await?),
        "latency" => print(latency::<P>(url, &options, &settings).await?),
        other => bail!("there is no action `{other}`"),
    }
    Ok(())
}

async fn enqueue_bulk<P: Peer>(url: &str, options: &Options, settings: &Settings, bulk: Bulk) -> Result<Value> {
    let number = |name: &str| settings.get(name).and_then(Value::as_i64).unwrap_or(1);
    let (count, batch, producers) = (options.count, number("batch"), u32::try_from(number("producers"))?);
    let producer = Arc::new(P::producer(url, producers).await?);
    let begin = Instant::now();
    produce(producers, count, batch, move |numbers| {
        let producer = producer.clone();
        async move { P::add_all(&producer, bulk, numbers).await }
    })
    .await?;
    Ok(json!({ "rate": per_second(count, begin) }))
}

async fn enqueue_single<P: Peer>(url: &str, options: &Options) -> Result<Value> {
    let producers = options.producers.unwrap_or(10);
    let producer = Arc::new(P::producer(url, producers).await?);
    let begin = Instant::now();
    produce(producers, options.count, 1, move |numbers| {
        let producer = producer.clone();
        async move { P::add(&producer, Payload::new(numbers.start, false)).await }
    })
    .await?;
    Ok(json!({ "rate": per_second(options.count, begin), "producers": producers }))
}

/// Hands out the numbers below `count` in batches, to so many producers at a time.
async fn produce<F>(
    producers: u32,
    count: i64,
    batch: i64,
    add: impl Fn(Range<i64>) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
{
    let next = Arc::new(AtomicI64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..producers {
        let (add, next) = (add.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let begin = next.fetch_add(batch, Ordering::Relaxed);
                if begin >= count {
                    return Ok(());
                }
                add(begin..count.min(begin + batch)).await?;
            }
        });
    }
    tasks.join_all().await.into_iter().collect()
}

/// From the first handler's start until the database says that the last job is finished.
async fn drain<P: Peer>(url: &str, options: &Options, settings: &Settings) -> Result<Value> {
    let mut connection = PgConnection::connect(url).await?;
    let begin = Arc::new(OnceLock::new());
    let (count, done) = (usize::try_from(options.count)?, AtomicUsize::new(0));
    let (finished, all) = oneshot::channel();
    let finished = Mutex::new(Some(finished));
    let (first, sleep_ms_max) = (begin.clone(), options.sleep_ms_max);
    let handler = Handler::new(move |job| {
        first.get_or_init(Instant::now);
        if !job.backlog && done.fetch_add(1, Ordering::Relaxed) + 1 == count {
            let finished = finished.lock().expect("no panic while locked").take();
            let _ = finished.expect("counted once").send(());
        }
        if sleep_ms_max == 0 {
            Duration::ZERO
        } else {
            Duration::from_micros(rand::random_range(0..=sleep_ms_max * 1000))
        }
    });
    let before: String = sqlx::query_scalar("select pg_current_wal_lsn()::text").fetch_one(&mut connection).await?;
    P::work(url, settings, handler).await?;
    all.await?;
    while sqlx::query_scalar::<_, bool>(P::UNFINISHED).fetch_one(&mut connection).await? {
        tokio::task::yield_now().await;
    }
    let rate = per_second(options.count, *begin.get().expect("a job has run"));
    let wal: i64 = sqlx::query_scalar("select pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::bigint")
        .bind(before)
        .fetch_one(&mut connection)
        .await?;
    Ok(json!({ "rate": rate, "wal_per_job": wal / options.count }))
}

/// From just before the enqueue call to the handler's start, one job at a time, worker idle.
async fn latency<P: Peer>(url: &str, options: &Options, settings: &Settings) -> Result<Value> {
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = Handler::new(move |job| {
        let _ = started.send((job.n, Instant::now()));
        Duration::ZERO
    });
    P::work(url, settings, handler).await?;
    let producer = P::producer(url, 1).await?;
    let mut took = Vec::new();
    // The first twenty warm caches and prepared statements up.
    for n in -20..options.count {
        tokio::time::sleep(Duration::from_millis(options.every_ms.unwrap_or(20))).await;
        let begin = Instant::now();
        P::add(&producer, Payload::new(n, false)).await?;
        let Some((_, at)) = starts.recv().await else { bail!("the worker is gone") };
        if n >= 0 {
            took.push(at.saturating_duration_since(begin));
        }
    }
    took.sort();
    let percentile = |p: usize| (took[took.len() * p / 100].as_secs_f64() * 100_000.0).round() / 100.0;
    Ok(json!({ "p50_ms": percentile(50), "p99_ms": percentile(99) }))
}

fn per_second(count: i64, begin: Instant) -> u64 {
    (count as f64 / begin.elapsed().as_secs_f64()).round() as u64
}

/// The version that `Cargo.lock` pins.
fn locked_version(name: &str) -> Option<&'static str> {
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"\n")))?;
    package.split("version = \"").nth(1)?.split('"').next()
}
