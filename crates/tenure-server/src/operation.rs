//! The handler of operations: one act on many jobs, page by page, with its progress kept.
//!
//! First they are counted, then each page is acted on and written down. Jobs are walked from the newest to the oldest, and
//! the place is stored: a process that dies goes on from the last page, whose jobs that were acted on do not match any
//! more. So none is acted on twice, and a count may miss a part of that one page.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenure_core::JobId;
use tenure_core::webhook::{DELIVERY_KIND, OWN_QUEUE};
use tenure_store::operate::{CancelJob, RequeueJob, Word};
use tenure_store::operation::{Act, OPERATION_KIND, OperationRecord, SaveOperation};
use tenure_store::record::{JobFilter, JobSummary, Sight};
use tenure_store::{Store, StoreError};
use tenure_worker::{Ctx, Defaults, Fail, Job};
use tokio::task::JoinSet;

use crate::dead::{Cause, key};

/// Jobs looked at while they are counted.
const COUNTED: u32 = 1_000;
/// Jobs acted on between two words about it.
const PAGE: u32 = 200;
/// Of those, at once.
const IN_FLIGHT_MAX: usize = 8;

/// Does the operation of the job's own id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Operate {}

impl Job for Operate {
    const KIND: &'static str = OPERATION_KIND;
    const DEFAULTS: Defaults = Defaults::new().queue(OWN_QUEUE);
}

/// Does what is left of an operation.
pub async fn operate(_: Operate, ctx: Ctx) -> Result<(), Fail> {
    let store = Arc::clone(ctx.client().store());
    let mut operation = match store.show_operation(&Sight::All, ctx.job_id()).await {
        Err(StoreError::NotFound(_)) => return Err(Fail::permanent("there is no such operation")),
        found => found?,
    };
    if operation.finished_at.is_some() {
        return Ok(());
    }
    if operation.progress.total.is_none() {
        operation.progress.total = Some(count(&*store, &ctx, &operation).await?);
        save(&*store, &operation, false).await?;
    }
    loop {
        ctx.check()?;
        let page = store.list_jobs(&operation.next_page(PAGE)).await?;
        let Some(last) = page.last().map(|job| job.id) else {
            return save(&*store, &operation, true).await;
        };
        let acted = act(&store, &mut operation, &page).await;
        // What was done is counted, also when the rest has to be tried again.
        if acted.is_ok() {
            operation.progress.cursor = Some(last);
        }
        save(&*store, &operation, false).await?;
        acted?;
    }
}

/// How many match now.
async fn count(store: &dyn Store, ctx: &Ctx, operation: &OperationRecord) -> Result<u64, Fail> {
    let (mut filter, mut total) = (operation.next_page(COUNTED), 0);
    loop {
        ctx.check()?;
        let page = store.list_jobs(&filter).await?;
        total += page.iter().filter(|job| is_meant(operation, job)).count() as u64;
        match page.last().filter(|_| page.len() == COUNTED as usize) {
            Some(last) => filter = JobFilter { before: Some(last.id), ..filter },
            None => return Ok(total),
        }
    }
}

/// Acts on a page, several at a time. A job whose state does not allow it any more does not stop the others.
async fn act(store: &Arc<dyn Store>, operation: &mut OperationRecord, page: &[JobSummary]) -> Result<(), StoreError> {
    let mut rest = page.iter().filter(|job| is_meant(operation, job)).map(|job| job.id).collect::<Vec<_>>().into_iter();
    let mut asked = JoinSet::new();
    let mut stopped = None;
    loop {
        while stopped.is_none() && asked.len() < IN_FLIGHT_MAX {
            let Some(job) = rest.next() else { break };
            let (store, act, sight) = (Arc::clone(store), operation.act, operation.sight());
            let word = operation.word.clone();
            asked.spawn(async move { act_on(&*store, act, sight, job, word).await });
        }
        match asked.join_next().await {
            None => break,
            Some(Ok(Ok(()))) => operation.progress.done += 1,
            Some(Ok(Err(error @ (StoreError::Conflict(_) | StoreError::NotFound(_))))) => {
                operation.progress.refused += 1;
                operation.progress.last_refusal = Some(error.to_string());
            }
            Some(Ok(Err(error))) => stopped = stopped.or(Some(error)),
            Some(Err(panic)) => stopped = stopped.or(Some(StoreError::unavailable(panic))),
        }
    }
    stopped.map_or(Ok(()), Err)
}

async fn act_on(store: &dyn Store, act: Act, sight: Sight, job: JobId, word: Word) -> Result<(), StoreError> {
    match act {
        Act::Requeue => store.requeue_job(RequeueJob { sight, job, word }).await,
        Act::Cancel | Act::CancelByForce => {
            let force = act == Act::CancelByForce;
            store.cancel_job(CancelJob { sight, job, force, word }).await.map(drop)
        }
    }
}

/// Whether a job that matches is one of the group, where a group is meant. The server's own jobs are only where their kind
/// is named: an operation that canceled everything would cancel itself, and everybody's webhooks.
fn is_meant(operation: &OperationRecord, job: &JobSummary) -> bool {
    let is_own = operation.kind.is_none() && [OPERATION_KIND, DELIVERY_KIND].contains(&job.kind.as_str());
    let in_group = |group: &String| key(&job.kind, &Cause::of(job.error.as_ref())) == *group;
    !is_own && operation.group.as_ref().is_none_or(in_group)
}

async fn save(store: &dyn Store, operation: &OperationRecord, finished: bool) -> Result<(), Fail> {
    let save = SaveOperation { id: operation.id, progress: operation.progress.clone(), finished };
    match store.save_operation(save).await {
        Ok(true) => Ok(()),
        // Somebody who lost the lease is further, or the job was pruned: whoever has it now goes on.
        Ok(false) | Err(StoreError::NotFound(_)) => Err(Fail::transient("somebody else went on with the operation")),
        Err(error) => Err(error.into()),
    }
}
