//! What happened to one job.

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::name::TenantName;
use tenure_core::{How, JobId, NewJob};
use tenure_store::StoreError;
use tenure_store::operate::{CancelJob, RequeueJob, Word};
use tenure_store::record::Sight;

use crate::fixture::{Fixture, cancel, success};

const RELEASED: JournalEvent = JournalEvent::Ended(How::Released);

fn word() -> Word {
    Word { actor: Some("ann".into()), reason: Some("by mistake".into()) }
}

async fn rows(t: &Fixture, sight: &Sight, job: JobId) -> Vec<JournalRow> {
    t.store.list_job_rows(sight, job).await.expect("list")
}

/// Claimed with others, given back, canceled, revived, done: everything in its order, and nothing of the others.
pub async fn the_story_of_a_job_has_everything_that_happened_to_it(t: Fixture) {
    let worker = t.worker("one").await;
    let (job, other) = (t.enqueue().await, t.enqueue().await);
    assert_eq!(rows(&t, &Sight::All, job).await, [], "nothing yet");
    let lease = t.claim(worker, 10).await.expect("both are due").lease;
    let alone = |rows: &[JournalRow], job| rows.iter().all(|row| row.jobs == [job]);
    let running = rows(&t, &Sight::All, job).await;
    assert_eq!(running.iter().map(|row| row.event).collect::<Vec<_>>(), [JournalEvent::Claimed]);
    assert!(alone(&running, job), "{running:?}");

    let release = tenure_store::lease::Ending::Released { delay: std::time::Duration::ZERO };
    t.end(worker, lease, job, release).await;
    t.end(worker, lease, other, success()).await;
    t.store.cancel_job(CancelJob { word: word(), ..cancel(job, false) }).await.expect("cancel");
    t.store.requeue_job(RequeueJob { sight: Sight::All, job, word: word() }).await.expect("requeue");
    let (second, _) = t.claim_one(worker).await;
    t.store.cancel_job(cancel(job, false)).await.expect("ask");
    t.end(worker, second, job, success()).await;

    let story = rows(&t, &Sight::All, job).await;
    let events: Vec<_> = story.iter().map(|row| row.event).collect();
    let wanted = [
        JournalEvent::Claimed,
        RELEASED,
        JournalEvent::Ended(How::Canceled),
        JournalEvent::Requeued,
        JournalEvent::Claimed,
        JournalEvent::CancelRequested,
        JournalEvent::Ended(How::Succeeded),
    ];
    assert_eq!(events, wanted);
    assert!(alone(&story, job) && story.is_sorted_by_key(|row| row.id), "{story:?}");
    assert_eq!((&story[3].actor, &story[3].reason), (&word().actor, &word().reason));
    assert_eq!(story[0].worker, Some(worker));
    let whole: Vec<i64> = t.journal().await.iter().filter(|row| row.jobs.contains(&job)).map(|row| row.id).collect();
    assert_eq!(story.iter().map(|row| row.id).collect::<Vec<_>>(), whole);
    let others: Vec<_> = rows(&t, &Sight::All, other).await.iter().map(|row| row.event).collect();
    assert_eq!(others, [JournalEvent::Claimed, JournalEvent::Ended(How::Succeeded)]);
}

/// Its tenant is told what happened, not who did it and why; nobody else is told anything.
pub async fn the_story_of_a_job_is_told_to_its_tenant_without_names(t: Fixture) {
    let acme: TenantName = "acme".parse().expect("a name");
    let job = NewJob { tenant: acme.clone(), ..t.new_job() };
    let id = job.id;
    t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
    let worker = t.worker("one").await;
    let (lease, _) = t.claim_one(worker).await;
    t.store.cancel_job(CancelJob { word: word(), ..cancel(id, false) }).await.expect("ask");
    t.end(worker, lease, id, success()).await;

    let (all, own) = (rows(&t, &Sight::All, id).await, rows(&t, &Sight::Tenant(acme), id).await);
    let nameless = |row: &JournalRow| JournalRow { worker: None, actor: None, reason: None, ..row.clone() };
    assert_eq!(own, all.iter().map(nameless).collect::<Vec<_>>());
    assert_eq!((all.len(), all[1].actor.as_deref()), (3, Some("ann")));
    let stranger = Sight::Tenant("rival".parse().expect("a name"));
    for (sight, hidden) in [(stranger, id), (Sight::All, t.new_id())] {
        let refused = t.store.list_job_rows(&sight, hidden).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
}
