//! The registry of workers, the store's clock, and a store over connections of its own.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::worker_loop::State;
use tenure_core::{How, WorkerId};
use tenure_store::StoreError;
use tenure_store::lease::Ended;
use tenure_store::operate::Word;
use tenure_store::worker::{About, Beat, Order, OrderWorker, QUEUES_MAX, WorkerRecord};

use crate::fixture::{Fixture, success};

fn beat(worker: WorkerId) -> Beat {
    let queues = vec![("mail".parse().expect("a name"), 4), (QueueName::default(), u32::MAX)];
    let about = About { version: "1.2.3".into(), host: "büro-7".into(), pid: 4_242, queues };
    Beat { worker, state: State::Startup, running: 0, reporting: 0, about }
}

async fn list(t: &Fixture) -> Vec<WorkerRecord> {
    t.store.list_workers(1_000).await.expect("list workers")
}

/// The last word stands, every state and every field of it.
pub async fn a_worker_is_listed_with_its_last_beat(t: Fixture) {
    let (id, registered_at) = (t.worker("host-1").await, t.clock.now());
    let name = WorkerName::new("host-1").expect("a name");
    let silent = WorkerRecord { id, name, registered_at, beat: None, seen_at: None, order: Order::Work };
    assert_eq!(list(&t).await, std::slice::from_ref(&silent));
    for (said, state) in (0..).zip(State::ALL) {
        t.advance(Duration::from_secs(5));
        let beat = Beat { state, running: said, reporting: said + 7, ..beat(id) };
        t.store.beat_worker(beat.clone()).await.expect("beat");
        let seen_at = Some(t.clock.now());
        assert_eq!(list(&t).await, [WorkerRecord { beat: Some(beat), seen_at, ..silent.clone() }]);
    }
    let bare = Beat { running: u32::MAX, about: About { queues: vec![], ..beat(id).about }, ..beat(id) };
    t.store.beat_worker(bare.clone()).await.expect("beat");
    assert_eq!(list(&t).await[0].beat, Some(bare));
    assert_eq!(t.journal().await, [], "beats are no transitions");
}

/// Last seen first; who was never seen comes last, the newest first; no more than asked for.
pub async fn workers_are_listed_last_seen_first(t: Fixture) {
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        ids.push(t.worker(name).await);
        t.advance(Duration::from_secs(1));
    }
    let [a, b, c, d, e] = ids[..] else { panic!("five of them") };
    for worker in [d, a, c, a] {
        t.advance(Duration::from_secs(1));
        t.store.beat_worker(beat(worker)).await.expect("beat");
    }
    let ids = |workers: &[WorkerRecord]| workers.iter().map(|worker| worker.id).collect::<Vec<_>>();
    assert_eq!(ids(&list(&t).await), [a, c, d, e, b]);
    assert_eq!(ids(&t.store.list_workers(2).await.expect("list")), [a, c]);
    for limit in [0, 1_001] {
        let refused = t.store.list_workers(limit).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
}

/// A number that nobody was given, and words that cannot be stored.
pub async fn a_beat_of_nobody_is_refused(t: Fixture) {
    let worker = t.worker("one").await;
    let unknown = t.store.beat_worker(beat(WorkerId(worker.0 + 1))).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
    let many = (0..=QUEUES_MAX).map(|n| (format!("q{n}").parse().expect("a name"), 1)).collect();
    let about = beat(worker).about;
    for about in [
        About { version: "a\0b".into(), ..about.clone() },
        About { host: String::new(), ..about.clone() },
        About { queues: many, ..about.clone() },
    ] {
        let refused = t.store.beat_worker(Beat { about, ..beat(worker) }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert!(list(&t).await.iter().all(|worker| worker.beat.is_none()));
    let most = (0..QUEUES_MAX).map(|n| (format!("{n:0>100}").parse().expect("a name"), 1)).collect();
    let most = Beat { about: About { queues: most, ..about }, ..beat(worker) };
    t.store.beat_worker(most.clone()).await.expect("beat");
    assert_eq!(list(&t).await[0].beat, Some(most));
}

/// It hears of its order with every beat until there is another one; only a change is written down.
pub async fn a_worker_hears_what_it_is_told(t: Fixture) {
    let worker = t.worker("one").await;
    assert_eq!(t.store.beat_worker(beat(worker)).await.expect("beat"), Order::Work);
    let word = Word { actor: Some("ops".into()), reason: Some("deploy".into()) };
    for order in [Order::Quiet, Order::Quiet, Order::Stop, Order::Work] {
        let request = OrderWorker { worker, order, word: word.clone() };
        t.store.order_worker(request).await.expect("order");
        assert_eq!(t.store.beat_worker(beat(worker)).await.expect("beat"), order);
        assert_eq!(list(&t).await[0].order, order);
        assert_eq!(t.store.show_worker(worker).await.expect("show"), list(&t).await[0]);
    }
    let events: Vec<_> = t.journal().await.into_iter().map(|row| (row.event, row.actor, row.reason)).collect();
    assert_eq!(events, vec![(JournalEvent::WorkerOrdered, word.actor.clone(), word.reason.clone()); 3]);
    let nobody = OrderWorker { worker: WorkerId(worker.0 + 1), order: Order::Stop, word };
    let unknown = t.store.show_worker(nobody.worker).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
    let refused = t.store.order_worker(nobody).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
}

/// A lease is found with the time it was claimed with, by its own worker, while it is there.
pub async fn a_lease_is_found_by_its_own_worker(t: Fixture) {
    let (one, other) = (t.worker("one").await, t.worker("other").await);
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(one).await;
    let invented = tenure_core::LeaseNo(lease.0 + 7);
    let find = async |worker| t.store.find_leases(worker, vec![lease, invented]).await.expect("find");
    let ttl = tenure_store::operate::LEASE_TTL_DEFAULT;
    assert_eq!(find(one).await, [(lease, ttl)]);
    assert_eq!(find(other).await, []);
    t.advance(Duration::from_secs(30));
    let renewed = tenure_store::lease::RenewLeases { worker: one, leases: vec![lease] };
    t.store.renew_leases(renewed).await.expect("renew");
    assert_eq!(find(one).await, [(lease, ttl)]);
    t.end(one, lease, job, success()).await;
    assert_eq!(find(one).await, []);
}

/// The clock of a store is the one that a test moves, back as well.
pub async fn the_store_tells_its_clock(t: Fixture) {
    let start = t.clock.now();
    assert_eq!(t.store.now().await.expect("now"), start);
    t.advance(Duration::from_millis(1_500));
    assert_eq!(t.store.now().await.expect("now"), start.plus(Duration::from_millis(1_500)));
    t.clock.set(start);
    assert_eq!(t.store.now().await.expect("now"), start);
}

/// What one handle does the other sees: the jobs, the leases and the clock are the same.
pub async fn a_separate_store_is_the_same_store(t: Fixture) {
    let other = t.through(t.store.separate().await.expect("separate"));
    let (worker, job) = (t.worker("one").await, t.enqueue().await);
    other.store.beat_worker(beat(worker)).await.expect("beat");
    assert_eq!(list(&t).await, list(&other).await);
    let (lease, claimed) = other.claim_one(worker).await;
    assert_eq!(claimed, job);
    t.advance(Duration::from_secs(1));
    assert_eq!(other.store.now().await.expect("now"), t.clock.now());
    let renewed = tenure_store::lease::RenewLeases { worker, leases: vec![lease] };
    assert_eq!(other.store.renew_leases(renewed).await.expect("renew").leases, [lease]);
    let heartbeat_at = t.show(job).await.heartbeat_at;
    assert_eq!(heartbeat_at, Some(t.clock.now()));
    assert_eq!(t.end(worker, lease, job, success()).await, Ended::Now(How::Succeeded));
    let found = other.store.find_endings(worker, lease, vec![job]).await.expect("find");
    assert_eq!(found, [Some(How::Succeeded)]);
}
