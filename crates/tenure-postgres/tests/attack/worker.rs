//! Workers that claim, end jobs in every way, repeat themselves, hang up and come back from the dead; and those around
//! them: renewers and reclaimers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::name::WorkerName;
use tenure_core::{JobId, Json, LeaseNo, WorkerId};
use tenure_postgres::PgStore;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending, RenewLeases};
use tenure_store::{AdminStore, LeaseStore, StoreError};

use crate::field::{Field, Grant, lock, some_queue};
use crate::rng::Rng;

/// A worker process: its own connections, its own floors, its own number.
pub(crate) struct Worker {
    pub(crate) store: PgStore,
    pub(crate) id: WorkerId,
    /// Leases it knows, since when, and whether it wants them renewed.
    held: Mutex<HashMap<LeaseNo, (Instant, bool)>>,
    /// Reports to be sent when it is too late for them.
    late: Mutex<Vec<(Instant, EndJobs)>>,
}

impl Worker {
    pub(crate) async fn new(field: &Field, n: u64) -> Arc<Self> {
        let store = field.store().await;
        let name = WorkerName::new(format!("worker-{n}")).expect("a name");
        let id = store.register_worker(&name).await.expect("register");
        Arc::new(Self { store, id, held: Mutex::default(), late: Mutex::default() })
    }
}

/// Claims and ends until the field is stopped.
pub(crate) async fn work(field: Arc<Field>, worker: Arc<Worker>, mut rng: Rng) {
    while !field.is_stopped() {
        forget_old(&worker);
        if rng.percent(10) {
            release_unknown(&field, &worker).await;
        }
        if rng.percent(10) {
            drop_leases(&field, &worker).await;
        }
        report_late(&field, &worker, &mut rng).await;
        claim(&field, &worker, &mut rng).await;
    }
}

async fn claim(field: &Field, worker: &Worker, rng: &mut Rng) {
    let limit = u32::try_from(rng.between(1, 20)).expect("small");
    let request = ClaimJobs::new(worker.id, some_queue(rng), limit);
    let claiming = worker.store.claim_jobs(request);
    let claimed = if rng.percent(4) {
        match field.hang_up(rng.millis(0, 3), claiming).await {
            Some(answer) => answer,
            // The lease is there and nobody knows it, until release_unknown gives it back.
            None => return,
        }
    } else {
        claiming.await
    };
    let claimed = match claimed {
        Ok(Some(claimed)) => claimed,
        Ok(None) => return field.pause(rng.millis(1, 10)).await,
        Err(error) => return field.refused("claim", &error),
    };
    if claimed.jobs.len() + claimed.canceled.len() > limit as usize {
        field.ledger.fault(format!("a claim of {limit} got {} jobs", claimed.jobs.len() + claimed.canceled.len()));
    }
    let jobs: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
    field.ledger.add("claimed", jobs.len() as u64);
    field.ledger.add("canceled by a claim", claimed.canceled.len() as u64);
    let found = {
        let pages = field.ledger.pages();
        jobs.iter().filter(|job| pages.late.contains(job)).count()
    };
    field.ledger.add("late commits found", found as u64);
    if jobs.is_empty() {
        return;
    }
    field.remember(jobs.iter().copied());
    carry_out(field, worker, claimed.lease, jobs, rng).await;
}

/// Decides what becomes of a batch.
async fn carry_out(field: &Field, worker: &Worker, lease: LeaseNo, mut jobs: Vec<JobId>, rng: &mut Rng) {
    let users = rng.percent(25);
    let dead = !users && rng.percent(15);
    lock(&worker.held).insert(lease, (Instant::now(), !dead));
    if users {
        lock(&field.grants).extend(jobs.iter().map(|job| Grant { worker: worker.id, lease, job: *job }));
        if rng.percent(30) {
            let report = report(worker.id, lease, &jobs, rng);
            lock(&worker.late).push((Instant::now() + rng.millis(0, 50), report));
        }
        return;
    }
    rng.shuffle(&mut jobs);
    if dead {
        // Presumed dead: the report comes when the lease is long gone, or when it is not, against all odds.
        let report = report(worker.id, lease, &jobs, rng);
        return lock(&worker.late).push((Instant::now() + rng.millis(100, 2_500), report));
    }
    field.pause(rng.millis(0, 5)).await;
    let mut rest = jobs.as_slice();
    while !rest.is_empty() {
        let (group, others) = rest.split_at(1 + rng.index(rest.len()));
        rest = others;
        let report = report(worker.id, lease, group, rng);
        send(field, worker, &report, rng).await;
    }
    lock(&worker.held).remove(&lease);
}

fn report(worker: WorkerId, lease: LeaseNo, jobs: &[JobId], rng: &mut Rng) -> EndJobs {
    let all_done = rng.percent(40);
    let jobs = jobs.iter().map(|job| EndJob::new(*job, if all_done { done() } else { some_ending(rng) }));
    EndJobs { worker, lease, jobs: jobs.collect() }
}

pub(crate) fn done() -> Ending {
    Ending::Succeeded { result: None, usage: None }
}

fn some_ending(rng: &mut Rng) -> Ending {
    let error = Json::from_store(r#"{"code":"attack"}"#);
    let delay = rng.millis(0, 50);
    match rng.between(1, 10) {
        1 | 2 => Ending::Retry { delay, error },
        3 => Ending::Failed { error },
        4 => Ending::Dead { error },
        5 => Ending::Snoozed { delay },
        6 => Ending::Released { delay },
        7 => Ending::Canceled { error: None },
        _ => done(),
    }
}

/// Sends a report, now and then more than once: the reply may be lost on the way, and the first may still be at work.
async fn send(field: &Field, worker: &Worker, report: &EndJobs, rng: &mut Rng) {
    if rng.percent(5)
        && let Some(answers) = field.hang_up(rng.millis(0, 3), worker.store.end_jobs(report.clone())).await
    {
        note(field, report, answers);
    }
    if rng.percent(15) {
        let mut again = report.clone();
        rng.shuffle(&mut again.jobs);
        let (one, two) = tokio::join!(worker.store.end_jobs(report.clone()), worker.store.end_jobs(again.clone()));
        note(field, report, one);
        note(field, &again, two);
    }
    if rng.percent(90) {
        note(field, report, worker.store.end_jobs(report.clone()).await);
    }
}

fn note(field: &Field, report: &EndJobs, answers: Result<Vec<Ended>, StoreError>) {
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => return field.refused("end", &error),
    };
    for (end, answer) in report.jobs.iter().zip(answers) {
        match answer {
            Ended::Now(how) => field.ledger.accept(end.job, report.lease, how),
            Ended::Before(_) => field.ledger.count("repeated reports answered"),
            Ended::LeaseLost { .. } => field.ledger.count("stale reports refused"),
            Ended::Busy => field.ledger.count("reports told to ask again"),
        }
    }
}

async fn report_late(field: &Field, worker: &Worker, rng: &mut Rng) {
    let due: Vec<EndJobs> = {
        let mut late = lock(&worker.late);
        let (due, later) = late.drain(..).partition(|(at, _)| *at <= Instant::now());
        *late = later;
        due.into_iter().map(|(_, report): (Instant, EndJobs)| report).collect()
    };
    for report in due {
        send(field, worker, &report, rng).await;
        lock(&worker.held).remove(&report.lease);
    }
}

async fn release_unknown(field: &Field, worker: &Worker) {
    let known = lock(&worker.held).keys().copied().collect();
    match worker.store.release_unknown(worker.id, known, LeaseNo::MAX).await {
        Ok(jobs) => field.ledger.add("released unknown", jobs.len() as u64),
        Err(error) => field.refused("release unknown", &error),
    }
}

async fn drop_leases(field: &Field, worker: &Worker) {
    let known: Vec<LeaseNo> = lock(&worker.held).keys().copied().collect();
    match worker.store.drop_leases(worker.id, known).await {
        Ok(gone) => field.ledger.add("leases dropped", gone.len() as u64),
        Err(error) => field.refused("drop", &error),
    }
}

/// A batch given to users is not waited for for ever.
fn forget_old(worker: &Worker) {
    lock(&worker.held).retain(|_, (since, _)| since.elapsed() < Duration::from_secs(3));
}

/// Renews some of what each worker wants renewed.
pub(crate) async fn renew(field: Arc<Field>, workers: Vec<Arc<Worker>>, mut rng: Rng) {
    while !field.is_stopped() {
        let worker = &workers[rng.index(workers.len())];
        let wanted = lock(&worker.held).iter().filter(|(_, (_, renew))| *renew).map(|(no, _)| *no).collect();
        match worker.store.renew_leases(RenewLeases { worker: worker.id, leases: wanted }).await {
            Ok(renewed) => field.ledger.add("renewed", renewed.leases.len() as u64),
            Err(error) => field.refused("renew", &error),
        }
        field.pause(rng.millis(20, 80)).await;
    }
}

/// Takes back what has expired.
pub(crate) async fn reclaim(field: Arc<Field>, worker: Arc<Worker>, mut rng: Rng) {
    while !field.is_stopped() {
        match worker.store.reclaim_jobs(Some(worker.id), 10).await {
            Ok(jobs) => field.ledger.add("reclaimed", jobs.len() as u64),
            Err(error) => field.refused("reclaim", &error),
        }
        field.pause(rng.millis(10, 60)).await;
    }
}
