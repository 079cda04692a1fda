//! F15: calls to the store are dropped at every point they wait at: no session is left in a transaction, and all of it
//! goes on working.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::name::WorkerName;
use tenure_core::{QueueName, WorkerId};
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ending, RenewLeases};
use tenure_store::operate::PruneJobs;
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{Store, StoreError};
use tenure_worker::Client;
use tokio::time::timeout;

use crate::history::History;
use crate::pass_line::PassLine;
use crate::proxy::Proxy;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;
use crate::{Act, Place};

/// The row.
pub(super) const ROW: Row = Row {
    id: "F15",
    fault: "a call to the store is dropped wherever it waits",
    injected: "every verb under a timeout of 0 to 80 ms, 16 at a time, through a proxy that delays everything by 5 ms; then the same handle works on",
    run: |size| Box::pin(run(size)),
};

const DELAY: Duration = Duration::from_millis(5);
/// Longer than a call with a new connection and a new statement takes: the last timeouts let it through.
const LONGEST_MS: u64 = 80;
const CALLERS: usize = 16;
const VERBS: usize = 11;

#[derive(Default)]
struct Tally {
    dropped: AtomicUsize,
    answered: AtomicUsize,
    aborted: AtomicUsize,
}

async fn run(size: Size) -> Report {
    let cancels = size.pick(400, 5_000);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    stage.enqueue((0..200).map(|_| Act::Wait { ms: 1 }).collect()).await;
    let (proxy, through) = Proxy::start(&stage.place.text()).await;
    proxy.delay(DELAY);
    let store = Place::Postgres(through).open().await.unwrap();
    let worker = store.register_worker(&WorkerName::new("dropper").unwrap()).await.unwrap();
    let tally = Arc::<Tally>::default();
    let callers = (0..CALLERS).map(|n| {
        let caller =
            Caller { store: Arc::clone(&store), history: stage.history.clone(), worker, tally: Arc::clone(&tally) };
        tokio::spawn(async move { caller.call_until(cancels, n).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let states = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'";
    watch("what was dropped has run out on the server", async || {
        let active = "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
        (stage.sql(active) == "0").then_some(())
    })
    .await;
    let in_transaction: usize = stage.sql(states).parse().unwrap();
    // The very handle that was mistreated works on, every verb of it.
    let mut works = BTreeMap::new();
    let caller =
        Caller { store: Arc::clone(&store), history: stage.history.clone(), worker, tally: Arc::clone(&tally) };
    for verb in 0..VERBS {
        works.insert(verb, caller.call(verb).await.map_err(|error| error.to_string()));
    }
    let _worker = stage.worker("w", &["--queue", "default=32"]);
    let (line, record) = PassLine::measure(&mut stage).await;
    let (dropped, answered) = (tally.dropped.load(Ordering::SeqCst), tally.answered.load(Ordering::SeqCst));
    let aborted = tally.aborted.load(Ordering::SeqCst);
    let mut report = Report::default();
    report.number(format!(
        "{dropped} calls dropped, {answered} answered in time; sessions idle in a transaction {in_transaction}; aborted transactions met \
         (25P02) {aborted}; afterwards {} of {VERBS} verbs work on the same handle; attempts {:?}",
        works.values().filter(|answer| answer.is_ok()).count(),
        record.tally()
    ));
    report.must(in_transaction == 0, "no session is left in a transaction");
    report.must(aborted == 0, "nobody meets another's transaction");
    report.must(works.values().all(Result::is_ok), format!("the handle works on: {works:?}"));
    report.must(answered > 0, "some timeouts were long enough");
    report.line(line);
    report.bite(dropped, cancels, "calls dropped");
    report
}

struct Caller {
    store: Arc<dyn Store>,
    history: History,
    worker: WorkerId,
    tally: Arc<Tally>,
}

impl Caller {
    /// Calls one verb after the other, each with another patience, until enough were dropped by all.
    async fn call_until(&self, cancels: usize, offset: usize) {
        for turn in offset.. {
            if self.tally.dropped.load(Ordering::SeqCst) >= cancels {
                return;
            }
            // Co-prime steps: every verb meets every patience.
            let patience = Duration::from_micros((turn as u64 * 7_919) % (LONGEST_MS * 1_000));
            match timeout(patience, self.call(turn % VERBS)).await {
                Err(_) => self.tally.dropped.fetch_add(1, Ordering::SeqCst),
                Ok(answer) => {
                    let aborted =
                        answer.is_err_and(|error| error.to_string().contains("current transaction is aborted"));
                    self.tally.aborted.fetch_add(usize::from(aborted), Ordering::SeqCst);
                    self.tally.answered.fetch_add(1, Ordering::SeqCst)
                }
            };
        }
    }

    async fn call(&self, verb: usize) -> Result<(), StoreError> {
        let queue = QueueName::default();
        let store = &*self.store;
        match verb {
            0 => {
                let stored = Client::new(&self.store).enqueue(Act::Wait { ms: 1 }).await?;
                self.history.acknowledge(&[stored]);
            }
            1 => {
                let stored = Client::new(&self.store).enqueue_many((0..20).map(|_| Act::Wait { ms: 1 })).await?;
                self.history.acknowledge(&stored);
            }
            2 => drop(store.claim_jobs(ClaimJobs::new(self.worker, queue, 2)).await?),
            3 => {
                if let Some(claimed) = store.claim_jobs(ClaimJobs::new(self.worker, queue, 2)).await? {
                    self.end(&claimed).await?;
                }
            }
            4 => {
                if let Some(claimed) = store.claim_jobs(ClaimJobs::new(self.worker, queue, 1)).await? {
                    store.renew_leases(RenewLeases { worker: self.worker, leases: vec![claimed.lease] }).await?;
                }
            }
            5 => drop(store.reclaim_jobs(Some(self.worker), 10).await?),
            6 => drop(store.list_queues().await?),
            7 => {
                let listed = store.list_jobs(&JobFilter::default()).await?;
                if let Some(first) = listed.first() {
                    store.show_job(&Sight::All, first.id).await?;
                }
            }
            8 => drop(store.seal_journal().await?),
            9 => {
                store.push_idle(&queue).await?;
            }
            _ => {
                let older_than = Duration::from_secs(86_400);
                store.prune_jobs(PruneJobs { older_than, dead_too: false, limit: 10 }).await?;
            }
        }
        Ok(())
    }

    async fn end(&self, claimed: &Claimed) -> Result<(), StoreError> {
        let ending = || Ending::Succeeded { result: None, usage: None };
        let jobs: Vec<EndJob> = claimed.jobs.iter().map(|job| EndJob::new(job.id, ending())).collect();
        if !jobs.is_empty() {
            self.store.end_jobs(EndJobs { worker: self.worker, lease: claimed.lease, jobs }).await?;
        }
        Ok(())
    }
}
