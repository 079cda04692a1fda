//! Named interleavings at a gate: claims that meet there, and events that are on their way.

use std::time::Duration;

use tenure_core::gate::GateRule;
use tenure_core::{JobId, QueueName};
use tenure_store::clock::ManualClock;
use tenure_store::gate::SetRule;
use tenure_store::lease::{ClaimJobs, Claimed};
use tenure_store::operate::Word;
use tenure_store::{AdminStore, GateStore, JobStore, LeaseStore, StoreError};
use tokio::task::JoinHandle;

use crate::field::connect;
use crate::stage::{Stage, Verdict, same};
use crate::worker::done;

/// A claim that is still open has the only permit: another one finds the gate taken, and nothing else.
pub(crate) async fn a_claim_passes_by_a_gate_that_another_claim_has(mut s: Stage) -> Verdict {
    gated(&mut s, 2).await?;
    s.user.batch_execute(&format!("begin; {}", by_hand(&s))).await?;
    let claim = claim(&s);
    s.until_blocked(&claim, 1).await;
    s.user.batch_execute("commit").await?;
    same("jobs of the other claim", &claim.await??.map(|claimed| claimed.jobs.len()), &None)?;
    same("jobs of a claim that comes later", &self::claim(&s).await??.map(|claimed| claimed.jobs.len()), &None)?;
    s.is_sound().await
}

/// Somebody has the gate's row for a while: what waits there goes on waiting, and is not let through unseen.
pub(crate) async fn a_busy_gate_lets_nothing_through(mut s: Stage) -> Verdict {
    gated(&mut s, 1).await?;
    s.user.batch_execute("begin; select from tenure.gate for update").await?;
    same("jobs", &claim(&s).await??.map(|claimed| claimed.jobs.len()), &None)?;
    s.user.batch_execute("rollback").await?;
    same("jobs, later", &claim(&s).await??.map(|claimed| claimed.jobs.len()), &Some(1))?;
    s.is_sound().await
}

/// An ending that commits late, below the place where the fold before has stopped to look: it is found all the same.
pub(crate) async fn a_late_ending_gives_its_permit_back(mut s: Stage) -> Verdict {
    let jobs = gated(&mut s, 3).await?;
    let first = claim(&s).await??.ok_or("something is due")?;
    // It has its number, and takes its time.
    s.user.batch_execute("begin; select pg_current_xact_id()").await?;
    s.complete_in(first.lease, first.jobs[0].id).await?;
    same("jobs while it is open", &claim(&s).await??.map(|claimed| claimed.jobs.len()), &None)?;
    // Others come and go meanwhile, and are folded.
    s.database.sql("select tenure.set_gate('g', concurrency => 2)");
    let second = claim(&s).await??.ok_or("there is room")?;
    s.end(second.lease, &[second.jobs[0].id], done()).await?;
    s.database.sql("select tenure.set_gate('g', concurrency => 1)");
    same("jobs while it is still open", &claim(&s).await??.map(|claimed| claimed.jobs.len()), &None)?;
    s.user.batch_execute("commit").await?;
    let third = claim(&s).await??.ok_or("the permit is back")?;
    same("the last job", &third.jobs[0].id, &jobs[2])?;
    s.is_sound().await
}

/// An ending commits while a fold waits for somebody: the fold has not seen it, and says so to the next one.
pub(crate) async fn an_ending_that_commits_during_a_fold_is_heard(mut s: Stage) -> Verdict {
    gated(&mut s, 4).await?;
    s.database.sql("select tenure.set_gate('g', concurrency => 3)");
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(claim(&s).await??.ok_or("there is room")?);
    }
    s.user.batch_execute("begin").await?;
    let before: String = s.user.query_one("select pg_current_xact_id()::text", &[]).await?.get(0);
    s.until_older_are_gone(&before).await;
    s.complete_in(held[0].lease, held[0].jobs[0].id).await?;
    s.end(held[1].lease, &[held[1].jobs[0].id], done()).await?;
    let other = connect(&s.database.url).await;
    other.batch_execute("begin; select from tenure.gate_event for update").await?;
    let fold = claim(&s);
    s.until_blocked(&fold, 1).await;
    s.user.batch_execute("commit").await?;
    other.batch_execute("rollback").await?;
    fold.await??;
    s.is_sound().await?;
    same("jobs inside", &claim(&s).await??.map(|claimed| claimed.jobs.len()), &None)?;
    s.is_sound().await
}

/// Somebody pauses a gate that nobody knows yet, and takes their time: its jobs wait, and those of others do not.
pub(crate) async fn a_new_gate_in_an_open_transaction_is_passed_by(mut s: Stage) -> Verdict {
    gated(&mut s, 1).await?;
    let mut job = s.new_jobs(1).remove(0);
    job.gate = Some("a-new-one".parse()?);
    s.store.enqueue_jobs(vec![job]).await?;
    s.user.batch_execute("begin; select tenure.operate_gate('a-new-one', 'pause')").await?;
    let request = ClaimJobs::new(s.worker, QueueName::default(), 9);
    let claimed = s.store.claim_jobs(request).await?.ok_or("the other gate is open")?;
    same("jobs", &claimed.jobs.len(), &1)?;
    s.user.batch_execute("rollback").await?;
    s.is_sound().await
}

/// Jobs through one gate that has room for one of them; the gate is known.
async fn gated(s: &mut Stage, count: usize) -> Result<Vec<JobId>, Box<dyn std::error::Error + Send + Sync>> {
    let rule = Some(GateRule { concurrency: Some(1), ..GateRule::default() });
    s.store.set_rule(SetRule { pattern: "g".parse()?, rule, word: Word::default() }).await?;
    s.database.sql("select tenure.operate_gate('g', 'reset')");
    let mut jobs = s.new_jobs(count);
    for job in &mut jobs {
        job.gate = Some("g".parse()?);
    }
    let ids = jobs.iter().map(|job| job.id).collect();
    s.store.enqueue_jobs(jobs).await?;
    // A store whose clock is moved by hand remembers of no gate that it was closed: each claim asks it.
    s.store = s.store_with(&ManualClock::new(s.store.now().await?.plus(Duration::from_secs(1)))).await;
    Ok(ids)
}

fn by_hand(s: &Stage) -> String {
    format!("select job from tenure.claim_lines({}, 'default', 1, '{{/g}}', '{{1}}', '{{0, 1, 2, 3}}')", s.worker.0)
}

fn claim(s: &Stage) -> JoinHandle<Result<Option<Claimed>, StoreError>> {
    let (store, request) = (s.store.clone(), ClaimJobs::new(s.worker, QueueName::default(), 1));
    tokio::spawn(async move { store.claim_jobs(request).await })
}
