//! A worker process that runs until everything is done.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tenure_store::Store;
use tenure_worker::{Fail, Worker};
use tokio::sync::Notify;

use crate::load::Noop;

/// How a worker is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crew {
    /// Jobs that run at once.
    pub slots: u32,
    /// Jobs claimed ahead of them.
    pub prefetch: u32,
    /// Handlers sleep between nothing and this.
    pub work: Duration,
}

impl Crew {
    /// The best that one process reaches with jobs that do nothing.
    pub const BEST: Self = Self { slots: 256, prefetch: 1_792, work: Duration::ZERO };
    /// Ten at a time, none ahead.
    pub const TEN: Self = Self { slots: 10, prefetch: 0, work: Duration::ZERO };
    /// Two hundred at a time that take 0 to 20 ms, a hundred ahead: a slot need not wait for the next claim.
    pub const MIXED: Self = Self { slots: 200, prefetch: 100, work: Duration::from_millis(20) };

    /// As a line says it.
    pub fn settings(&self) -> String {
        let Self { slots, prefetch, work } = self;
        match work.is_zero() {
            true => format!("slots {slots}, prefetch {prefetch}"),
            false => format!("slots {slots}, prefetch {prefetch}, handlers 0–{} ms", work.as_millis()),
        }
    }

    /// Runs `jobs` jobs and answers how long that took, from the start of the first handler until the worker has ended,
    /// every ending acknowledged. Connections are open then, as the floor's are; so are the first one or two leases.
    pub async fn run(&self, store: &Arc<dyn Store>, jobs: u32) -> Result<Duration> {
        let (summary, took) = self.run_until(store, jobs, std::future::pending()).await?;
        ensure!(summary == u64::from(jobs), "{summary} of {jobs} jobs were done: is somebody else working here?");
        Ok(took)
    }

    /// The same, until `stop` at the latest; answers how many succeeded.
    pub async fn run_until(
        &self,
        store: &Arc<dyn Store>,
        jobs: u32,
        stop: impl Future<Output = ()>,
    ) -> Result<(u64, Duration)> {
        let began = OnceLock::new();
        let done = Arc::new(Done { count: AtomicU32::new(0), goal: jobs, all: Notify::new(), began });
        let (work_us, counted) = (u32::try_from(self.work.as_micros()).unwrap_or(u32::MAX), Arc::clone(&done));
        let handler = move |_: Noop| {
            let done = Arc::clone(&counted);
            async move {
                done.began.get_or_init(Instant::now);
                let turn = done.count.fetch_add(1, Ordering::Relaxed);
                if work_us > 0 {
                    // A sequence that spreads evenly: no two runs differ.
                    let part = turn.wrapping_mul(2_654_435_769) >> 16;
                    let work = Duration::from_micros(u64::from(part) * u64::from(work_us) / 65_536);
                    tokio::time::sleep(work).await;
                }
                done.one();
                Ok::<(), Fail>(())
            }
        };
        let worker = Worker::builder(store).queue("default", self.slots).prefetch(self.prefetch).handle(handler);
        let worker = worker.build()?;
        let until = async {
            tokio::select! {
                () = done.all.notified() => {}
                () = stop => {}
            }
        };
        let summary = worker.run_until(until).await?;
        Ok((summary.succeeded, done.began.get().map(Instant::elapsed).unwrap_or_default()))
    }
}

/// Counts handlers that began, and tells when the last one has.
struct Done {
    count: AtomicU32,
    goal: u32,
    all: Notify,
    began: OnceLock<Instant>,
}

impl Done {
    fn one(&self) {
        if self.count.load(Ordering::Relaxed) >= self.goal {
            self.all.notify_one();
        }
    }
}
