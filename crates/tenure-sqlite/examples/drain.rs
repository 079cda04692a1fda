//! How fast one file is filled and drained: `cargo run --release -p tenure-sqlite --example drain [jobs] [batch]`.
//!
//! Prints jobs per second of enqueue (calls of 1,000), claim, end, and both together, and how long a seal keeps the
//! writer; one worker, every commit waits for the disk. What else runs on the machine decides half of it: say so beside the numbers.

use std::time::{Duration, Instant};

use tenure_core::name::WorkerName;
use tenure_core::{JobId, Json, KindName, NewJob, QueueName, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ending};
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StoreError> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().ok());
    let jobs = args.next().flatten().unwrap_or(100_000);
    let batch = args.next().flatten().and_then(|batch| u32::try_from(batch).ok()).unwrap_or(200);
    let directory = std::env::temp_dir().join(format!("tenure-drain-{}", std::process::id()));
    let store = SqliteStore::open(directory.join("tenure.db"), SqliteOptions::default())?;
    store.migrate().await?;
    let worker = store.register_worker(&WorkerName::new("drain")?).await?;

    let began = Instant::now();
    for first in (0..jobs).step_by(1_000) {
        store.enqueue_jobs((first..jobs.min(first + 1_000)).map(new_job).collect::<Result<_, _>>()?).await?;
    }
    print("enqueue", jobs, began.elapsed());

    let (mut claiming, mut ending, mut done) = (Duration::ZERO, Duration::ZERO, 0);
    loop {
        let began = Instant::now();
        let request = ClaimJobs::new(worker, QueueName::default(), batch);
        let claimed = store.claim_jobs(request).await?;
        claiming += began.elapsed();
        let Some(claimed) = claimed else { break };
        let began = Instant::now();
        let ending_of = |job: JobId| EndJob::new(job, Ending::Succeeded { result: None, usage: None });
        let jobs: Vec<EndJob> = claimed.jobs.iter().map(|job| ending_of(job.id)).collect();
        done += jobs.len() as u64;
        store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await?;
        ending += began.elapsed();
    }
    print("claim", done, claiming);
    print("end", done, ending);
    print(&format!("drain in batches of {batch}"), done, claiming + ending);

    let (mut longest, mut seals) = (Duration::ZERO, 0);
    loop {
        let began = Instant::now();
        if store.seal_journal().await?.is_none() {
            break;
        }
        (longest, seals) = (longest.max(began.elapsed()), seals + 1);
    }
    println!("{seals} seals, the longest took {longest:.2?}");
    drop(store);
    std::fs::remove_dir_all(directory).map_err(StoreError::unavailable)
}

fn new_job(n: u64) -> Result<NewJob, StoreError> {
    let now = Timestamp::EPOCH.plus(std::time::UNIX_EPOCH.elapsed().unwrap_or_default());
    let mut random = [0; 10];
    random[2..].copy_from_slice(&n.to_be_bytes());
    let payload = Json::parse("payload", format!("{{\"order\":{n},\"note\":\"{}\"}}", "x".repeat(70)))?;
    Ok(NewJob::new(JobId::from_parts(now, random), KindName::new("noop")?, payload))
}

fn print(what: &str, jobs: u64, took: Duration) {
    println!("{what:28} {:>9.0} jobs/s   {jobs} jobs in {took:.2?}", jobs as f64 / took.as_secs_f64());
}
