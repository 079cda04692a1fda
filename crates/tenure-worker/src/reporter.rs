//! The reporter: takes endings from slots to the store, together where that is cheaper.
//!
//! An ending that comes alone is sent at once; those that are ready in the same moment go with it. When endings come
//! fast (the ones before within [`GATHER`]), those of the next moment are waited for, and what ends while earlier reports
//! are on their way goes with the next ones. What was gathered travels in one call, of however many leases it is.
//!
//! A report without an answer may have been written: it is repeated with the same fence until it is answered or the
//! lease's local deadline has passed, and the keeper renews the lease meanwhile. A slot runs its next job meanwhile, but
//! no more than a lane's capacity is ever unanswered: a slow store slows the claims down by itself, and nothing piles up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::json::quote;
use tenure_core::{How, JobId, Json, LeaseNo};
use tenure_store::StoreError;
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending, LEASE_JOBS_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use crate::ctx::Ctx;
use crate::lane::Place;
use crate::random;
use crate::shared::Shared;
use crate::slot::Slot;

/// How long endings are gathered when they come fast.
const GATHER: Duration = Duration::from_millis(2);
/// So many turns of everybody else without an ending, and what is there is sent.
const SILENT_YIELDS: u32 = 8;
/// Endings that travel in one call.
const TOGETHER_MAX: usize = 2 * LEASE_JOBS_MAX as usize;
/// Calls side by side.
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

/// One ending on its way. However it ends, its slot hears of it once: dropped unanswered, it was given up.
pub(crate) struct Report {
    shared: Arc<Shared>,
    ctx: Ctx,
    ending: Ending,
    /// The handler says that it completed the job in its own transaction.
    confirm: bool,
    /// Until it is answered.
    stay: Option<(Slot, Place)>,
}

impl Report {
    pub(crate) fn new(shared: &Arc<Shared>, ctx: Ctx, ending: Ending, confirm: bool, stay: (Slot, Place)) -> Self {
        Self { shared: Arc::clone(shared), ctx, ending, confirm, stay: Some(stay) }
    }

    fn conclude(mut self, settled: Settled) {
        self.end(match settled {
            // The transaction may be committed in this very moment: then the report is refused, and it succeeded.
            Settled::Refused(Some(How::Succeeded)) if self.confirm => Settled::Accepted(How::Succeeded),
            settled => settled,
        });
    }

    fn end(&mut self, settled: Settled) {
        if let Some((mut slot, place)) = self.stay.take() {
            slot.conclude(&self.shared, &self.ctx, settled);
            drop(place);
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.end(Settled::GivenUp);
    }
}

/// Where slots hand their endings in.
#[derive(Clone)]
pub(crate) struct Reporter(mpsc::Sender<Report>);

impl Reporter {
    /// Starts the reporter. It ends when nobody can hand in any more.
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let (sender, receiver) = mpsc::channel(4 * LEASE_JOBS_MAX as usize);
        Arc::clone(&shared).spawn(run(shared, receiver));
        Self(sender)
    }

    /// Hands an ending in. Who does not wait for its answer may run the next job.
    pub(crate) async fn hand_in(&self, report: Report) {
        // Without a reporter it is dropped, and so given up.
        drop(self.0.send(report).await);
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
        // Waiting for a lane here is what gathers the next ones.
        let Ok(lane) = Arc::clone(&lanes).acquire_owned().await else { return };
        let (carrier, lanes) = (Arc::clone(&shared), Arc::clone(&lanes));
        let reports = std::mem::take(&mut batch);
        shared.spawn(async move { Sending { shared: &carrier, lanes, reports }.run(Some(lane)).await });
    }
}

/// Takes those that are ready to end in this very moment, without any timer: handlers that only have to be polled.
async fn look_around(shared: &Shared, reports: &mut mpsc::Receiver<Report>, batch: &mut Vec<Report>) {
    let mut silent = 0;
    while silent < SILENT_YIELDS && batch.len() < TOGETHER_MAX {
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
    while batch.len() < TOGETHER_MAX && shared.gauge.unended.load(Ordering::Acquire) > 0 {
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

/// Reports until each is answered.
struct Sending<'s> {
    shared: &'s Shared,
    lanes: Arc<Semaphore>,
    reports: Vec<Report>,
}

impl Sending<'_> {
    /// `lane`: for the first try. A report that must be repeated gives its lane to others meanwhile.
    async fn run(mut self, mut lane: Option<OwnedSemaphorePermit>) {
        // Together with those of their lease, in the order they ended.
        self.reports.sort_by_key(|report| report.ctx.fence());
        let mut tried = false;
        while !self.reports.is_empty() {
            // The first try is made even when the lease seems over: the store knows better, and a refusal is on record.
            if tried {
                self.give_up(|shared, report| !shared.held.holds(report.ctx.fence()));
                if self.reports.is_empty() {
                    return;
                }
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
        let leases = self.reports.chunk_by(|one, next| one.ctx.fence() == next.ctx.fence());
        let end = |report: &Report| EndJob {
            gate: report.ctx.gate_word(),
            ..EndJob::new(report.ctx.job_id(), report.ending.clone())
        };
        let requests =
            leases.map(|of| EndJobs { worker, lease: of[0].ctx.fence(), jobs: of.iter().map(end).collect() });
        match self.shared.store.end_leases(requests.collect()).await {
            Ok(answers) => {
                self.shared.trouble.over();
                self.settle(answers.into_iter().flatten().collect());
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

    fn settle(&mut self, answers: Vec<Ended>) {
        let mut busy = Vec::new();
        let mut settled: Vec<(Report, Settled)> = Vec::with_capacity(answers.len());
        let mut gone: BTreeMap<LeaseNo, (Vec<JobId>, usize)> = BTreeMap::new();
        for (report, ended) in self.reports.drain(..).zip(answers) {
            let answer = match ended {
                Ended::Now(how) | Ended::Before(how) => Settled::Accepted(how),
                Ended::LeaseLost { how } => Settled::Refused(how),
                Ended::Busy => {
                    busy.push(report);
                    continue;
                }
            };
            let (jobs, together) = gone.entry(report.ctx.fence()).or_default();
            jobs.push(report.ctx.job_id());
            *together += usize::from(matches!(ended, Ended::Now(_)));
            settled.push((report, answer));
        }
        for (lease, (jobs, together)) in gone {
            self.shared.held.settle(lease, &jobs, together);
        }
        settled.into_iter().for_each(|(report, answer)| report.conclude(answer));
        self.reports = busy;
        self.shared.freed.notify_one();
    }

    /// One of these carries what cannot be stored; the others must not share its fate.
    async fn one_by_one(self) {
        for report in self.reports {
            let (shared, lanes) = (self.shared, Arc::clone(&self.lanes));
            Box::pin(Sending { shared, lanes, reports: vec![report] }.run(None)).await;
        }
    }

    /// What cannot be stored becomes a failure that can: a job that nobody can end would run for ever.
    fn replace(&mut self, error: &StoreError) {
        let unstorable =
            |ending: &Ending| matches!(ending, Ending::Failed { error } if error.as_str().starts_with(UNSTORABLE));
        if let Some(report) = self.reports.iter().find(|report| unstorable(&report.ending)) {
            tracing::error!(lease.no = %report.ctx.fence(), error = %error, "an ending cannot be stored: its lease will run out");
            return self.give_up(|_, _| true);
        }
        for report in &mut self.reports {
            let text = format!("{UNSTORABLE},\"message\":{}}}", quote(&error.to_string()));
            report.ending = Ending::Failed { error: Json::from_store(text) };
        }
    }

    fn give_up(&mut self, is_over: impl Fn(&Shared, &Report) -> bool) {
        let given_up = self.reports.extract_if(.., |report| is_over(self.shared, report));
        // Its slot settles what is left of it.
        given_up.for_each(|report| report.conclude(Settled::GivenUp));
        self.shared.freed.notify_one();
    }
}
