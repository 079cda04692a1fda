//! The reporter: takes endings from slots to the store, together where that is cheaper.
//!
//! An ending that comes alone is sent at once; those that are ready in the same moment go with it. When endings come
//! fast (the ones before within [`GATHER`]), those of the next moment are waited for, and what ends while earlier reports are on their way goes with the next ones. Reports
//! of one lease travel together; a few leases travel side by side.
//!
//! A report without an answer may have been written: it is repeated with the same fence until it is answered or the
//! lease's local deadline has passed, and the keeper renews the lease meanwhile. Slots are free only after the answer, so
//! a slow store slows the claims down by itself and nothing piles up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::json::quote;
use tenure_core::{How, Json, LeaseNo};
use tenure_store::StoreError;
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending, LEASE_JOBS_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::ctx::Ctx;
use crate::random;
use crate::shared::Shared;

/// How long endings are gathered when they come fast.
const GATHER: Duration = Duration::from_millis(2);
/// So many turns of everybody else without an ending, and what is there is sent.
const SILENT_YIELDS: u32 = 8;
/// Leases reported side by side.
const LANES: usize = 4;
/// Pauses between tries: short after a lock, longer after a failure.
const BUSY_WAIT: Duration = Duration::from_millis(20);
const FAILED_WAIT: Duration = Duration::from_millis(250);

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Written, now or before, so.
    Accepted(How),
    /// Too late: the lease no longer held the job.
    Refused(Option<How>),
    /// No answer until the lease's end: nobody knows.
    GivenUp,
}

/// One ending on its way.
pub(crate) struct Report {
    ctx: Ctx,
    ending: Ending,
    reply: oneshot::Sender<Settled>,
}

/// Where slots hand their endings in.
#[derive(Clone)]
pub(crate) struct Reporter(mpsc::Sender<Report>);

impl Reporter {
    /// Starts the reporter. It ends when nobody can hand in any more.
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let (sender, receiver) = mpsc::channel(4 * LEASE_JOBS_MAX as usize);
        tokio::spawn(run(shared, receiver));
        Self(sender)
    }

    /// Hands an ending in and waits for what becomes of it.
    pub(crate) async fn report(&self, ctx: &Ctx, ending: Ending) -> Settled {
        let (reply, settled) = oneshot::channel();
        if self.0.send(Report { ctx: ctx.clone(), ending, reply }).await.is_err() {
            return Settled::GivenUp;
        }
        settled.await.unwrap_or(Settled::GivenUp)
    }
}

async fn run(shared: Arc<Shared>, mut reports: mpsc::Receiver<Report>) {
    let lanes = Arc::new(Semaphore::new(LANES));
    let mut last = Instant::now() - GATHER;
    let mut batch: Vec<Report> = Vec::new();
    while let Some(first) = reports.recv().await {
        let fast = last.elapsed() < GATHER;
        batch.push(first);
        look_around(&shared, &mut reports, &mut batch).await;
        if fast {
            gather(&shared, &mut reports, &mut batch).await;
        }
        last = Instant::now();
        for (lease, reports) in by_lease(&mut batch) {
            // Waiting for a lane here is what gathers the next ones.
            let Ok(lane) = Arc::clone(&lanes).acquire_owned().await else { return };
            let shared = Arc::clone(&shared);
            let lanes = Arc::clone(&lanes);
            tokio::spawn(async move { Sending { shared: &shared, lanes, lease, reports }.run(Some(lane)).await });
        }
    }
}

/// Takes those that are ready to end in this very moment, without any timer: handlers that only have to be polled.
async fn look_around(shared: &Shared, reports: &mut mpsc::Receiver<Report>, batch: &mut Vec<Report>) {
    let mut silent = 0;
    while silent < SILENT_YIELDS && batch.len() < LEASE_JOBS_MAX as usize {
        match reports.try_recv() {
            Ok(more) => {
                batch.push(more);
                silent = 0;
            }
            Err(_) if shared.gauge.unended.load(Ordering::Acquire) == 0 => return,
            Err(_) => {
                silent += 1;
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Waits a moment for those that are about to end, unless everybody has ended.
async fn gather(shared: &Shared, reports: &mut mpsc::Receiver<Report>, batch: &mut Vec<Report>) {
    let until = tokio::time::sleep(GATHER);
    tokio::pin!(until);
    while batch.len() < LEASE_JOBS_MAX as usize && shared.gauge.unended.load(Ordering::Acquire) > 0 {
        tokio::select! {
            biased;
            more = reports.recv() => match more {
                Some(more) => batch.push(more),
                None => return,
            },
            () = &mut until => return,
        }
    }
}

fn by_lease(batch: &mut Vec<Report>) -> BTreeMap<LeaseNo, Vec<Report>> {
    let mut leases: BTreeMap<LeaseNo, Vec<Report>> = BTreeMap::new();
    for report in batch.drain(..) {
        leases.entry(report.ctx.fence()).or_default().push(report);
    }
    leases
}

/// What became of one try.
enum Sent {
    /// Each was answered; those that are locked are left.
    Answered,
    /// Nobody knows whether it was written.
    Unanswered,
    Unstorable(StoreError),
}

/// How an ending begins that stands for one that cannot be stored.
const UNSTORABLE: &str = "{\"class\":\"permanent\",\"code\":\"unstorable\"";

/// Reports of one lease until each is answered.
struct Sending<'s> {
    shared: &'s Shared,
    lanes: Arc<Semaphore>,
    lease: LeaseNo,
    reports: Vec<Report>,
}

impl Sending<'_> {
    /// `lane`: for the first try. A report that must be repeated gives its lane to others meanwhile.
    async fn run(mut self, mut lane: Option<OwnedSemaphorePermit>) {
        let mut tried = false;
        while !self.reports.is_empty() {
            // The first try is made even when the lease seems over: the store knows better, and a refusal is on record.
            if tried && !self.shared.held.holds(self.lease) {
                return self.give_up();
            }
            tried = true;
            let taken = match lane.take() {
                None => Arc::clone(&self.lanes).acquire_owned().await.ok(),
                first => first,
            };
            let sent = self.send().await;
            drop(taken);
            match sent {
                Sent::Answered if self.reports.is_empty() => return,
                Sent::Answered => tokio::time::sleep(random::jitter(BUSY_WAIT)).await,
                Sent::Unanswered => tokio::time::sleep(random::jitter(FAILED_WAIT)).await,
                Sent::Unstorable(error) => match self.reports.len() {
                    1 => self.replace(&error),
                    _ => return self.one_by_one().await,
                },
            }
        }
    }

    /// Sends what is left; answers what can be answered.
    async fn send(&mut self) -> Sent {
        let Some(worker) = self.shared.worker.get().copied() else { return Sent::Unanswered };
        let jobs = self.reports.iter().map(|r| EndJob { job: r.ctx.job_id(), ending: r.ending.clone() }).collect();
        match self.shared.store.end_jobs(EndJobs { worker, lease: self.lease, jobs }).await {
            Ok(answers) => {
                self.shared.trouble.over();
                self.settle(&answers);
                Sent::Answered
            }
            // A schema that does not fit is nothing about these endings: somebody migrates, and then they are stored.
            // Everything else may pass: a migration is under way, a right was taken away.
            Err(error) if !matches!(error, StoreError::Invalid(_)) => {
                self.shared.trouble.failed("reporting endings", &error);
                Sent::Unanswered
            }
            Err(error) => Sent::Unstorable(error),
        }
    }

    fn settle(&mut self, answers: &[Ended]) {
        let together = answers.iter().filter(|ended| matches!(ended, Ended::Now(_))).count();
        let mut busy = Vec::new();
        for (report, ended) in self.reports.drain(..).zip(answers) {
            let settled = match ended {
                Ended::Now(how) | Ended::Before(how) => Settled::Accepted(*how),
                Ended::LeaseLost { how } => Settled::Refused(*how),
                Ended::Busy => {
                    busy.push(report);
                    continue;
                }
            };
            self.shared.held.settle(self.lease, report.ctx.job_id(), together);
            // A slot that no longer waits has been dropped with its runtime.
            let _ = report.reply.send(settled);
        }
        self.reports = busy;
    }

    /// One of these carries what cannot be stored; the others must not share its fate.
    async fn one_by_one(self) {
        for report in self.reports {
            let (shared, lanes) = (self.shared, Arc::clone(&self.lanes));
            Box::pin(Sending { shared, lanes, lease: self.lease, reports: vec![report] }.run(None)).await;
        }
    }

    /// What cannot be stored becomes a failure that can: a job that nobody can end would run for ever.
    fn replace(&mut self, error: &StoreError) {
        let unstorable =
            |ending: &Ending| matches!(ending, Ending::Failed { error } if error.as_str().starts_with(UNSTORABLE));
        if self.reports.iter().any(|report| unstorable(&report.ending)) {
            tracing::error!(lease.no = %self.lease, error = %error, "an ending cannot be stored: its lease will run out");
            return self.give_up();
        }
        for report in &mut self.reports {
            let text = format!("{UNSTORABLE},\"message\":{}}}", quote(&error.to_string()));
            report.ending = Ending::Failed { error: Json::from_store(text) };
        }
    }

    fn give_up(&mut self) {
        for report in self.reports.drain(..) {
            self.shared.held.settle(self.lease, report.ctx.job_id(), 0);
            let _ = report.reply.send(Settled::GivenUp);
        }
    }
}
