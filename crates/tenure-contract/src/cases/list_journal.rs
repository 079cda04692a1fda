//! The journal, newest first.

use std::time::Duration;

use tenure_core::How;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_store::StoreError;
use tenure_store::access::SetTenant;
use tenure_store::gate::{GateAct, OperateGate};
use tenure_store::journal::{JournalFilter, JournalFound};
use tenure_store::operate::{CancelJob, LEASE_TTL_DEFAULT, PauseQueue, SetQueue, Word};

use super::access::key;
use crate::fixture::{Fixture, cancel, success};

const MINUTE: Duration = Duration::from_secs(60);

fn said(actor: &str) -> Word {
    Word { actor: Some(actor.into()), reason: None }
}

async fn list(t: &Fixture, filter: JournalFilter) -> JournalFound {
    t.store.list_journal(&filter).await.expect("list")
}

fn events(found: &JournalFound) -> Vec<JournalEvent> {
    found.rows.iter().map(|row| row.event).collect()
}

/// Two jobs done, one canceled, a queue and a gate paused, a tenant and a key made, a minute apart each.
async fn live(t: &Fixture) -> [tenure_core::JobId; 3] {
    let worker = t.worker("one").await;
    let jobs = [t.enqueue().await, t.enqueue().await, t.enqueue().await];
    t.store.cancel_job(CancelJob { word: said("ann"), ..cancel(jobs[2], false) }).await.expect("cancel");
    for _ in 0..2 {
        t.advance(MINUTE);
        let (lease, job) = t.claim_one(worker).await;
        t.end(worker, lease, job, success()).await;
    }
    t.advance(MINUTE);
    let queue: tenure_core::QueueName = "mail".parse().expect("a name");
    t.store.set_queue(SetQueue::new(queue.clone(), LEASE_TTL_DEFAULT)).await.expect("make");
    t.store.pause_queue(PauseQueue { queue, paused: true, word: said("ann") }).await.expect("pause");
    let gate = "shop".parse().expect("a name");
    t.store.operate_gate(OperateGate { gate, act: GateAct::Pause(None), word: said("bob") }).await.expect("pause");
    t.advance(MINUTE);
    let tenant = "acme".parse().expect("a name");
    t.store.set_tenant(SetTenant { tenant, quota: None, word: said("bob") }).await.expect("set");
    t.store.create_key(key(1, Some("acme"))).await.expect("create");
    jobs
}

/// By event, who, job, what it is about, and when; each alone and together.
pub async fn the_journal_is_listed_newest_first_by_what_is_asked(t: Fixture) {
    let jobs = live(&t).await;
    let begin = t.clock.now().minus(MINUTE * 4);
    let all = JournalFilter { limit: 100, ..JournalFilter::default() };
    let mut whole = t.journal().await;
    whole.reverse();
    let found = list(&t, all.clone()).await;
    assert_eq!(found, JournalFound { looked_at: 9, next: None, rows: whole.clone() });

    use JournalEvent::{Claimed, GatePaused, KeyCreated, QueuePaused, TenantSet};
    let (canceled, done) = (JournalEvent::Ended(How::Canceled), JournalEvent::Ended(How::Succeeded));
    let named = |subject: &str| JournalFilter { subject: Some(subject.into()), ..all.clone() };
    let at = |minutes: u32| Some(begin.plus(MINUTE * minutes));
    for (filter, wanted) in [
        (JournalFilter { events: vec![done, TenantSet], ..all.clone() }, vec![TenantSet, done, done]),
        (JournalFilter { actor: Some("ann".into()), ..all.clone() }, vec![QueuePaused, canceled]),
        (JournalFilter { job: Some(jobs[0]), ..all.clone() }, vec![done, Claimed]),
        (JournalFilter { job: Some(t.new_id()), ..all.clone() }, vec![]),
        (named("mail"), vec![QueuePaused]),
        (named("shop"), vec![GatePaused]),
        (named("acme"), vec![KeyCreated, TenantSet]),
        (named(key(1, None).id.as_str()), vec![KeyCreated]),
        (named("read,enqueue"), vec![]),
        (
            JournalFilter { acts_only: true, ..all.clone() },
            vec![KeyCreated, TenantSet, GatePaused, QueuePaused, canceled],
        ),
        (JournalFilter { since: at(3), ..all.clone() }, vec![KeyCreated, TenantSet, GatePaused, QueuePaused]),
        (JournalFilter { until: at(2), ..all.clone() }, vec![done, Claimed, canceled]),
        (JournalFilter { since: at(1), until: at(2), ..all.clone() }, vec![done, Claimed]),
        (JournalFilter { since: at(3), actor: Some("bob".into()), acts_only: true, ..named("acme") }, vec![TenantSet]),
    ] {
        let found = list(&t, filter.clone()).await;
        assert_eq!((events(&found), found.next), (wanted, None), "{filter:?}");
    }
    for (field, bad) in [
        ("limit", JournalFilter { limit: 0, ..all.clone() }),
        ("actor", JournalFilter { actor: Some(String::new()), ..all.clone() }),
        ("subject", JournalFilter { subject: Some("\0".into()), ..all }),
    ] {
        let refused = t.store.list_journal(&bad).await;
        assert!(matches!(&refused, Err(StoreError::Invalid(invalid)) if invalid.field == field), "{refused:?}");
    }
}

/// Each row once, whatever the size of a page, also after it was sealed.
pub async fn the_journal_is_listed_page_by_page(t: Fixture) {
    live(&t).await;
    t.store.seal_journal().await.expect("seal");
    for (acts_only, limit) in [(false, 1), (false, 2), (false, 4), (true, 1), (true, 2), (true, 5)] {
        let whole = list(&t, JournalFilter { acts_only, limit: 100, ..JournalFilter::default() }).await;
        let (mut seen, mut looked_at): (Vec<JournalRow>, u32) = (Vec::new(), 0);
        let mut filter = JournalFilter { acts_only, limit, ..JournalFilter::default() };
        loop {
            let found = list(&t, filter.clone()).await;
            assert!(found.rows.len() <= limit as usize, "{found:?}");
            (looked_at, filter.before) = (looked_at + found.looked_at, found.next);
            seen.extend(found.rows);
            if found.next.is_none() {
                break;
            }
        }
        assert_eq!((seen, looked_at), (whole.rows, whole.looked_at), "{acts_only} {limit}");
    }
}
