//! One of the processes of `processes`: it does everything at random and writes down what it was told, a line each.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::name::{QueueName, WorkerName};
use tenure_core::unique::Policy;
use tenure_core::{JobId, LeaseNo, NewJob, Timestamp, Unique, WorkerId};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending, RenewLeases};
use tenure_store::operate::{CancelJob, Canceled, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};

use crate::against_core::Dice;
use crate::fixture::{error, failed, new_job, succeeded, word};

/// Where it writes; unset in every other run.
pub(crate) const PATH: &str = "TENURE_TEST_PROCESS_PATH";
/// Its dice.
pub(crate) const SEED: &str = "TENURE_TEST_PROCESS_SEED";

/// Tasks that send verbs at the same time, so that some share a commit.
const TASKS: u64 = 4;

/// Not a test of its own. It ends when nobody holds its standard input any more.
#[tokio::test]
async fn one() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    say("\nprocess");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        stopped.store(true, Ordering::Relaxed);
    });
    let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, stop) = (store.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let worker = store.register_worker(&WorkerName::new(format!("p{seed}")).unwrap()).await.unwrap();
                let dice = Dice(seed * TASKS + task);
                let mut actor = Actor { store, dice, worker, grants: Vec::new(), sent: Vec::new() };
                while !stop.load(Ordering::Relaxed) {
                    if let Err(refused) = actor.act().await {
                        match refused {
                            StoreError::Unavailable(..) => say("unavailable"),
                            StoreError::Conflict(_) | StoreError::NotFound(_) => say("refused"),
                            other => panic!("{other}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// One write, so that a kill leaves no half of a line but the last.
fn say(line: impl std::fmt::Display) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

struct Actor {
    store: SqliteStore,
    dice: Dice,
    worker: WorkerId,
    /// What it was ever given, long after it was taken away again, and what others were.
    grants: Vec<Grant>,
    sent: Vec<NewJob>,
}

#[derive(Clone, Copy)]
struct Grant {
    worker: WorkerId,
    lease: LeaseNo,
    job: JobId,
}

impl Actor {
    async fn act(&mut self) -> Result<(), StoreError> {
        match self.dice.roll(24) {
            0..=3 => self.enqueue().await,
            4..=7 => self.claim().await,
            8..=12 => self.report().await,
            13 | 14 => self.complete_within().await,
            15 => self.steal().await,
            16 => self.expire().await,
            17 | 18 => self.reclaim().await,
            19 | 20 => self.operate().await,
            21 => self.renew().await,
            22 => self.release_unknown().await,
            _ => self.store.seal_journal().await.map(|seal| seal.into_iter().for_each(|_| say("sealed"))),
        }
    }

    fn new_job(&mut self) -> NewJob {
        let now = Timestamp::EPOCH.plus(std::time::UNIX_EPOCH.elapsed().unwrap());
        let mut random = [0; 10];
        random.iter_mut().for_each(|byte| *byte = self.dice.roll(256) as u8);
        let mut job = NewJob { id: JobId::from_parts(now, random), ..new_job(now) };
        let key = self.dice.roll(12);
        match self.dice.roll(8) {
            0 | 1 => job.unique = Some(Unique::new(format!("k{key}"), Policy::WhileActive)),
            2 => job.unique = Some(Unique::new(format!("f{key}"), Policy::Forever)),
            3 => job.idempotency_key = Some(format!("i{key}")),
            _ => {}
        }
        job
    }

    async fn enqueue(&mut self) -> Result<(), StoreError> {
        let mut jobs: Vec<NewJob> = (0..=self.dice.roll(4)).map(|_| self.new_job()).collect();
        if !self.sent.is_empty() && self.dice.roll(3) == 0 {
            jobs.push(self.sent[self.dice.roll(self.sent.len())].clone());
        }
        jobs.iter().for_each(|job| say(format_args!("asked {}", job.id)));
        self.sent.extend(jobs.clone());
        for (job, answer) in jobs.iter().zip(self.store.enqueue_jobs(jobs.clone()).await?) {
            match answer {
                Enqueued::Created(id) => say(format_args!("created {id}")),
                Enqueued::Found { .. } => say(format_args!("found {}", job.id)),
            }
            if let Some(key) = &job.idempotency_key {
                say(format_args!("named {} {key}", answer.job()));
            }
        }
        Ok(())
    }

    async fn claim(&mut self) -> Result<(), StoreError> {
        let limit = 1 + self.dice.roll(8) as u32;
        let request = ClaimJobs::new(self.worker, QueueName::default(), limit);
        let Some(claimed) = self.store.claim_jobs(request).await? else { return Ok(()) };
        for job in claimed.jobs {
            say(format_args!("claimed {} {}", job.id, claimed.lease));
            self.grants.push(Grant { worker: self.worker, lease: claimed.lease, job: job.id });
        }
        Ok(())
    }

    /// Reports any grant it ever had, usually one of the last.
    async fn report(&mut self) -> Result<(), StoreError> {
        let Some(Grant { worker, lease, job }) = self.some_grant() else { return Ok(()) };
        let stranger = self.dice.roll(6) == 0;
        let worker = if stranger { WorkerId(i32::MAX) } else { worker };
        let delay = Duration::ZERO;
        let ending = match self.dice.roll(8) {
            0 | 1 => Ending::Retry { delay, error: error() },
            2 => Ending::Snoozed { delay },
            3 => Ending::Released { delay },
            4 => failed(),
            5 => Ending::Dead { error: error() },
            _ => succeeded(),
        };
        // Sometimes the reply was lost, and the same report comes again.
        for _ in 0..=self.dice.roll(2) {
            let jobs = vec![EndJob::new(job, ending.clone())];
            match self.store.end_jobs(EndJobs { worker, lease, jobs }).await?[0] {
                told if stranger => {
                    assert_eq!(told, Ended::LeaseLost { how: None });
                    say("stranger");
                }
                Ended::Now(how) => say(format_args!("now {job} {lease} {}", how.code())),
                Ended::Before(_) => say("before"),
                Ended::LeaseLost { .. } => say("lost"),
                Ended::Busy => panic!("nobody is busy here"),
            }
        }
        Ok(())
    }

    fn some_grant(&mut self) -> Option<Grant> {
        let count = self.grants.len();
        let from = if self.dice.roll(5) == 0 { 0 } else { count.saturating_sub(8) };
        (count > 0).then(|| self.grants[from + self.dice.roll(count - from)])
    }

    /// A user's transaction: the completion and the next job are kept together or not at all.
    async fn complete_within(&mut self) -> Result<(), StoreError> {
        let Some(Grant { worker, lease, job }) = self.some_grant() else { return Ok(()) };
        let (next, keep) = (self.new_job(), self.dice.roll(2) == 0);
        let next = NewJob { unique: None, idempotency_key: None, ..next };
        let id = next.id;
        let kept = self.store.transaction(move |tx| {
            tx.enqueue([next])?;
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            if keep { Ok(()) } else { Err(StoreError::Conflict("rolled back".into())) }
        });
        match kept.await {
            Ok(()) => say(format_args!("within {job} {lease} {id}")),
            Err(StoreError::Conflict(_) | StoreError::LeaseLost(_)) => say(format_args!("rolled {id}")),
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// Two processes under one name: reports what another worker holds, as that worker.
    async fn steal(&mut self) -> Result<(), StoreError> {
        let held = "select no, worker, jobs ->> 0 from lease order by random() limit 1";
        let look = self.store.transaction(move |tx| {
            let row = tx.connection().query_row(held, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            row.map_err(|_| StoreError::NotFound("a lease".into()))
        });
        let (lease, worker, job): (i64, i32, String) = look.await?;
        self.grants.push(Grant { worker: WorkerId(worker), lease: LeaseNo(lease), job: job.parse().unwrap() });
        say("stolen");
        self.report().await
    }

    /// Lets a lease expire before its time.
    async fn expire(&mut self) -> Result<(), StoreError> {
        let sql = "update lease set expires_at = 0 where no = (select no from lease order by random() limit 1)";
        let expire =
            self.store.transaction(move |tx| tx.connection().execute(sql, []).map_err(StoreError::unavailable));
        expire.await.map(|_| ())
    }

    async fn reclaim(&mut self) -> Result<(), StoreError> {
        for lost in self.store.reclaim_jobs(Some(self.worker), 3).await? {
            say(format_args!("reclaimed {} {} {}", lost.job, lost.lease, lost.how.code()));
        }
        Ok(())
    }

    async fn operate(&mut self) -> Result<(), StoreError> {
        let Some(Grant { job, .. }) = self.some_grant() else { return Ok(()) };
        if self.dice.roll(2) == 0 {
            self.store.requeue_job(RequeueJob { sight: Sight::All, job, word: word() }).await?;
            say("requeued");
            return Ok(());
        }
        let force = self.dice.roll(2) == 0;
        let canceled = self.store.cancel_job(CancelJob { sight: Sight::All, job, force, word: word() }).await?;
        say(if canceled == Canceled::Requested { "requested" } else { "canceled" });
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), StoreError> {
        let leases: Vec<LeaseNo> = self.grants.iter().rev().take(20).map(|grant| grant.lease).collect();
        let renewed = self.store.renew_leases(RenewLeases { worker: self.worker, leases: leases.clone() }).await?;
        renewed.leases.iter().for_each(|_| say("renewed"));
        self.store.drop_leases(self.worker, leases).await.map(|_| ())
    }

    async fn release_unknown(&mut self) -> Result<(), StoreError> {
        let known = self.grants.iter().rev().take(3).map(|grant| grant.lease).collect();
        self.store.release_unknown(self.worker, known, LeaseNo::MAX).await?.iter().for_each(|_| say("released"));
        Ok(())
    }
}
