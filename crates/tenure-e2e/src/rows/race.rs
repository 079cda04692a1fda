//! F4: a completion and the reclaim of its lease meet in the same moment: one of them is written, the other is told.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::name::WorkerName;
use tenure_core::{How, JobId, LeaseNo, QueueName, WorkerId};
use tenure_postgres::tokio_postgres::{Client, NoTls, connect};
use tenure_postgres::{PgOptions, PgStore, tx};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, LeaseStore};
use tokio::sync::Barrier;

use crate::Act;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F4",
    fault: "a completion and the reclaim of its lease race",
    injected: "two connections let go by a barrier on one expired lease; every tenth round each order is forced with the lease's row lock",
    run: |size| Box::pin(run(size)),
};

/// Every so many-th round is forced one way, the one after it the other way.
const FORCED_EVERY: usize = 10;

/// Who was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Won {
    Completion,
    Reclaim,
}

/// What both sides race for.
#[derive(Debug, Clone, Copy)]
struct Grant {
    job: JobId,
    lease: LeaseNo,
}

struct Ring {
    store: PgStore,
    worker: WorkerId,
    /// Whose transaction is open in a forced round.
    raw: Client,
    /// Who moves the end of a lease.
    clock: Client,
}

async fn run(size: Size) -> Report {
    let (rounds, each) = size.pick((200, 20), (10_000, 1_000));
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(60)).await;
    let ring = Ring::open(&stage).await;
    let (mut completed, mut reclaimed, mut forced) = (0, 0, 0);
    for round in 0..rounds {
        stage.enqueue(vec![Act::Wait { ms: 0 }]).await;
        let grant = ring.claim().await;
        let won = match round % FORCED_EVERY {
            0 => ring.completion_first(grant).await,
            1 => ring.reclaim_first(grant).await,
            _ => ring.race(grant).await,
        };
        forced += usize::from(round % FORCED_EVERY < 2);
        match won {
            Won::Completion => completed += 1,
            Won::Reclaim => {
                reclaimed += 1;
                ring.finish(grant.job).await;
            }
        }
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let mut report = Report::default();
    report.number(format!(
        "{rounds} rounds: the completion was written in {completed}, the reclaim in {reclaimed}, both or neither in 0; \
         {forced} were forced; attempts {:?}, {} refused",
        record.tally(),
        record.refused.len()
    ));
    report.must(record.succeeded().len() == rounds, "each job succeeds, once");
    report.must(record.count(How::Lost) == reclaimed, "the record agrees on who won");
    report.line(line);
    report.bite(completed.min(reclaimed), each, "rounds of the rarer order");
    report
}

impl Ring {
    async fn open(stage: &Stage) -> Self {
        let url = stage.place.text();
        let store = PgStore::connect(&url, PgOptions::default()).await.unwrap();
        let worker = store.register_worker(&WorkerName::new("ring").unwrap()).await.unwrap();
        Self { store, worker, raw: session(&url).await, clock: session(&url).await }
    }

    async fn claim(&self) -> Grant {
        let request = ClaimJobs::new(self.worker, QueueName::default(), 1);
        let claimed = self.store.claim_jobs(request).await.unwrap().expect("a job is due");
        Grant { job: claimed.jobs[0].id, lease: claimed.lease }
    }

    /// Its lease is over.
    async fn expire(&self, grant: Grant) {
        let sql = "update tenure.lease set expires_at = clock_timestamp() - interval '1 s' where no = $1";
        assert_eq!(self.clock.execute(sql, &[&grant.lease.0]).await.unwrap(), 1);
    }

    /// Both at once.
    async fn race(&self, grant: Grant) -> Won {
        self.expire(grant).await;
        let barrier = Arc::new(Barrier::new(2));
        let complete = {
            let (barrier, store, worker) = (Arc::clone(&barrier), self.store.clone(), self.worker);
            tokio::spawn(async move {
                barrier.wait().await;
                complete(&store, worker, grant).await
            })
        };
        let reclaim = {
            let store = self.store.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                reclaim(&store, grant).await
            })
        };
        let (completed, reclaimed) = (complete.await.unwrap(), reclaim.await.unwrap());
        judge(completed, reclaimed)
    }

    /// The reclaim comes while the completion is written and not committed.
    async fn completion_first(&self, grant: Grant) -> Won {
        self.raw.batch_execute("begin").await.unwrap();
        tx::complete_in(&self.raw, &CompleteJob::new(self.worker, grant.lease, grant.job)).await.unwrap();
        self.expire(grant).await;
        let reclaimed = reclaim(&self.store, grant).await;
        self.raw.batch_execute("commit").await.unwrap();
        let later = reclaim(&self.store, grant).await;
        assert_eq!(judge(true, reclaimed || later), Won::Completion);
        Won::Completion
    }

    /// The completion comes while the reclaim is written and not committed.
    async fn reclaim_first(&self, grant: Grant) -> Won {
        self.expire(grant).await;
        self.raw.batch_execute("begin").await.unwrap();
        let rows = self.raw.query("select job from tenure.reclaim(null, 1)", &[]).await.unwrap();
        assert_eq!(rows.len(), 1);
        let (store, worker) = (self.store.clone(), self.worker);
        let completing = tokio::spawn(async move { complete(&store, worker, grant).await });
        let waiting = "select count(*) from pg_locks where not granted";
        watch("the completion waits for the lock", async || {
            (self.raw.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0).then_some(())
        })
        .await;
        self.raw.batch_execute("commit").await.unwrap();
        assert_eq!(judge(completing.await.unwrap(), true), Won::Reclaim);
        Won::Reclaim
    }

    /// What was taken back is claimed again and done.
    async fn finish(&self, job: JobId) {
        let grant = self.claim().await;
        assert_eq!(grant.job, job, "due at once, and nothing else is there");
        assert!(complete(&self.store, self.worker, grant).await, "nobody else is there");
    }
}

async fn session(url: &str) -> Client {
    let (client, connection) = connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Whether it was written; refused otherwise.
async fn complete(store: &PgStore, worker: WorkerId, grant: Grant) -> bool {
    let ending = Ending::Succeeded { result: None, usage: None };
    let report = EndJobs { worker, lease: grant.lease, jobs: vec![EndJob::new(grant.job, ending)] };
    match store.end_jobs(report).await.unwrap().as_slice() {
        [Ended::Now(How::Succeeded)] => true,
        [Ended::LeaseLost { .. }] => false,
        other => panic!("{other:?}"),
    }
}

/// Whether it was taken back.
async fn reclaim(store: &PgStore, grant: Grant) -> bool {
    let taken = store.reclaim_jobs(None, 10).await.unwrap();
    assert!(taken.iter().all(|job| job.lease == grant.lease && job.how == How::Lost), "{taken:?}");
    !taken.is_empty()
}

fn judge(completed: bool, reclaimed: bool) -> Won {
    match (completed, reclaimed) {
        (true, false) => Won::Completion,
        (false, true) => Won::Reclaim,
        both => panic!("completed and reclaimed: {both:?}"),
    }
}
