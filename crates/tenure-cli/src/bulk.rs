//! Work on many jobs: find them page by page, requeue them several at a time, tell what became of them.

use std::sync::Arc;

use serde_json::json;
use tenure_core::JobId;
use tenure_store::operate::{BATCH_MAX, RequeueJob, Word};
use tenure_store::record::{JobFilter, JobSummary, Sight};
use tenure_store::{Store, StoreError};
use tokio::task::JoinSet;

use crate::command::Answer;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Requeues that are asked for at once.
const IN_FLIGHT_MAX: usize = 8;
/// Refusals that are printed one by one.
const REFUSALS_SHOWN_MAX: usize = 20;

/// What became of a bulk.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) requeued: u64,
    pub(crate) refused: Vec<(JobId, Failure)>,
}

/// Hands every job that matches to `see`, newest first, at most `most`. Answers whether those were all.
pub(crate) async fn walk(
    store: &dyn Store,
    mut filter: JobFilter,
    most: u64,
    mut see: impl FnMut(&JobSummary),
) -> Result<bool, Failure> {
    let progress = Progress::of_things(None, "jobs found");
    let mut seen = 0;
    loop {
        // One more than is wanted: it tells whether there are more.
        filter.limit = u32::try_from(most - seen).unwrap_or(BATCH_MAX).saturating_add(1).min(BATCH_MAX);
        let page = store.list_jobs(&filter).await?;
        for job in &page {
            if seen == most {
                return Ok(false);
            }
            see(job);
            seen += 1;
        }
        progress.set(seen);
        let Some(last) = page.last().filter(|_| page.len() == filter.limit as usize) else { return Ok(true) };
        filter.before = Some(last.id);
    }
}

/// The ids of jobs that match and are `wanted`, before any work: a job that dies again meanwhile is not revived twice.
/// Oldest first, as they were.
pub(crate) async fn find(
    store: &dyn Store,
    filter: JobFilter,
    wanted: impl Fn(&JobSummary) -> bool,
) -> Result<Vec<JobId>, Failure> {
    let mut found = Vec::new();
    walk(store, filter, u64::MAX, |job| found.extend(wanted(job).then_some(job.id))).await?;
    found.reverse();
    Ok(found)
}

/// Several at a time, so that they share commits and round trips; refusals do not stop the others.
pub(crate) async fn requeue(
    store: &Arc<dyn Store>,
    jobs: &[JobId],
    sight: &Sight,
    word: &Word,
) -> Result<Tally, Failure> {
    let progress = Progress::of_things(Some(jobs.len() as u64), "jobs requeued");
    let mut tally = Tally::default();
    let mut stopped: Option<StoreError> = None;
    let mut rest = jobs.iter();
    let mut asked = JoinSet::new();
    loop {
        while stopped.is_none() && asked.len() < IN_FLIGHT_MAX {
            let Some(job) = rest.next().copied() else { break };
            let request = RequeueJob { sight: sight.clone(), job, word: word.clone() };
            let store = Arc::clone(store);
            asked.spawn(async move { (job, store.requeue_job(request).await) });
        }
        match asked.join_next().await {
            None => break,
            Some(Ok((_, Ok(())))) => tally.requeued += 1,
            Some(Ok((job, Err(error @ (StoreError::Conflict(_) | StoreError::NotFound(_)))))) => {
                tally.refused.push((job, error.into()));
            }
            // What is in flight is waited for, nothing new is sent.
            Some(Ok((_, Err(error)))) => stopped = stopped.or(Some(error)),
            Some(Err(panic)) => stopped = stopped.or(Some(StoreError::unavailable(panic))),
        }
        progress.set(tally.requeued + tally.refused.len() as u64);
    }
    tally.refused.sort_by_key(|(job, _)| *job);
    match stopped {
        None => Ok(tally),
        Some(error) => {
            let before = format!("after {} of {} jobs were requeued", tally.requeued, jobs.len());
            Err(Failure::from(error).within(&before).hint("Run the same command again for the rest."))
        }
    }
}

/// Says how many it would have been.
pub(crate) fn dry_run(jobs: &[JobId], out: &mut Output) -> Result<Answer, Failure> {
    if out.is_json() {
        out.json(&json!({ "would_requeue": jobs.len() }))?;
    } else {
        out.line(format!("Would requeue {}.", counted(jobs.len() as u64)));
    }
    Ok(Answer::Done)
}

impl Tally {
    /// Prints the counts, and why some were refused.
    pub(crate) fn print(&self, out: &mut Output) -> Result<Answer, Failure> {
        let answer = if self.refused.is_empty() { Answer::Done } else { Answer::Findings };
        if out.is_json() {
            let line = |(job, why): &(JobId, Failure)| json!({ "id": job.to_string(), "code": why.code(), "message": why.message() });
            let refused: Vec<_> = self.refused.iter().map(line).collect();
            out.json(&json!({ "requeued": self.requeued, "refused": refused }))?;
            return Ok(answer);
        }
        out.line(format!("Requeued {}.", counted(self.requeued)));
        if !self.refused.is_empty() {
            out.line(format!("Refused {}:", counted(self.refused.len() as u64)));
        }
        for (job, why) in self.refused.iter().take(REFUSALS_SHOWN_MAX) {
            out.line(format!("  {job}  {}", why.message()));
        }
        if let Some(more) = self.refused.len().checked_sub(REFUSALS_SHOWN_MAX).filter(|more| *more > 0) {
            out.line(format!("  and {more} more; --json lists all"));
        }
        Ok(answer)
    }
}

/// `1 job`, `7 jobs`.
pub(crate) fn counted(n: u64) -> String {
    if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") }
}
