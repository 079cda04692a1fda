//! What operators and policies ask for: cancel, requeue, open, pause, resume, queue, tenant, prune.

use tenure_core::JobId;
use tenure_core::name::{QueueName, TenantName};
use tenure_store::StoreError;
use tenure_store::access::SetTenant;
use tenure_store::operate::{
    CancelJob, Canceled, HastenJob, LEASE_TTL_DEFAULT, OpenJob, PauseQueue, PruneJobs, RequeueJob, SetQueue, Word,
};
use tenure_store::record::Sight;

use super::line::Line;
use super::{Outcome, Run, error_words};

/// `cancel J1 [force] [sight=tenant] [actor=…] [reason=…] -> canceled | requested | before | conflict | not_found`
pub(super) async fn cancel(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let force = line.flag("force");
    let (job, sight, word) = target(run, line)?;
    let done = run.t.store.cancel_job(CancelJob { sight, job, force, word }).await;
    let word = |canceled| match canceled {
        Canceled::Now => "canceled",
        Canceled::Requested => "requested",
        Canceled::Before => "before",
    };
    Ok(Outcome { expected: line.expected_or("canceled"), got: words(run, done.map(word)) })
}

/// `requeue J1 -> requeued | conflict [naming J2] | not_found`
pub(super) async fn requeue(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (job, sight, word) = target(run, line)?;
    let done = run.t.store.requeue_job(RequeueJob { sight, job, word }).await;
    Ok(Outcome { expected: line.expected_or("requeued"), got: words(run, done.map(|()| "requeued")) })
}

/// `open J1 -> opened | conflict | not_found`
pub(super) async fn open(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (job, sight, word) = target(run, line)?;
    let done = run.t.store.open_job(OpenJob { sight, job, word }).await;
    Ok(Outcome { expected: line.expected_or("opened"), got: words(run, done.map(|()| "opened")) })
}

/// `hasten J1 -> hastened | before | conflict | not_found`
pub(super) async fn hasten(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let (job, sight, word) = target(run, line)?;
    let done = run.t.store.hasten_job(HastenJob { sight, job, word }).await;
    let word = |is_news| if is_news { "hastened" } else { "before" };
    Ok(Outcome { expected: line.expected_or("hastened"), got: words(run, done.map(word)) })
}

/// `pause mail [-> not_found]`, `resume mail [-> not_found]`; without a name the default queue.
pub(super) async fn pause(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let queue = queue_name(line)?;
    let request = PauseQueue { queue, paused: line.verb == "pause", word: word(line) };
    let done = run.t.store.pause_queue(request).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

/// `queue mail [ttl=30s] [fair=true] [quota=3|none]`
pub(super) async fn queue(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let queue = queue_name(line)?;
    let lease_ttl = line.duration("ttl")?.unwrap_or(LEASE_TTL_DEFAULT);
    let fair = line.parsed("fair")?;
    let quota = line.parsed("quota")?;
    let done = run.t.store.set_queue(SetQueue { fair, quota, ..SetQueue::new(queue, lease_ttl) }).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|()| "done")) })
}

/// `tenant acme [quota=3|none]`
pub(super) async fn tenant(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let tenant: TenantName =
        line.word("a tenant")?.parse().map_err(|refused: tenure_core::Invalid| refused.to_string())?;
    let request = SetTenant { tenant, quota: line.parsed("quota")?, word: word(line) };
    let done = run.t.store.set_tenant(request).await;
    Ok(Outcome { expected: line.expected_or("done"), got: words(run, done.map(|_| "done")) })
}

/// `prune [older_than=7d] [limit=…] [dead] -> 3`
pub(super) async fn prune(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let request = PruneJobs {
        older_than: line.duration("older_than")?.unwrap_or_default(),
        dead_too: line.flag("dead"),
        limit: line.parsed("limit")?.unwrap_or(100),
    };
    let done = run.t.store.prune_jobs(request).await;
    let expected = line.expectation().ok_or("prune needs the number of jobs that go after ->")?;
    let got = match done {
        Ok(count) => vec![count.to_string()],
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

fn target(run: &mut Run<'_>, line: &mut Line) -> Result<(JobId, Sight, Word), String> {
    let label = line.word("a job")?;
    Ok((run.names.job(run.t, &label)?, sight(line)?, word(line)))
}

/// `sight=tenant`; without it an operator's.
pub(super) fn sight(line: &mut Line) -> Result<Sight, String> {
    Ok(line.parsed::<TenantName>("sight")?.map_or(Sight::All, Sight::Tenant))
}

pub(super) fn word(line: &mut Line) -> Word {
    Word { actor: line.option("actor"), reason: line.option("reason") }
}

fn queue_name(line: &mut Line) -> Result<QueueName, String> {
    match line.words().as_slice() {
        [] => Ok(QueueName::default()),
        [name] => QueueName::new(name.as_str()).map_err(|why| why.to_string()),
        _ => Err(format!("{} takes one queue", line.verb)),
    }
}

pub(super) fn words(run: &Run<'_>, done: Result<&str, StoreError>) -> Vec<String> {
    match done {
        Ok(word) => vec![word.into()],
        Err(error) => error_words(&run.names, &error),
    }
}
