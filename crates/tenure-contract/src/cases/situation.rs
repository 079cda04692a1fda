//! Pieces of stories that many cases share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::How;
use tenure_store::lease::{Ended, Ending};
use tokio::sync::Barrier;

use crate::fixture::{Fixture, cancel};
use crate::script::check;

/// How often a race is run.
pub(super) const ROUNDS: usize = 20;

/// W1 holds J1 under L1.
pub(super) const HELD: &str = "
    enqueue  J1  backoff=none
    claim    W1  J1  lease=L1
";
/// W1 lost J1, and W2 runs it now: what W1 says about L1 is stale.
pub(super) const SUCCESSOR_RUNS: &str = "
    enqueue  J1  backoff=none
    claim    W1  J1  lease=L1
    expire   J1
    reclaim  J1
    claim    W2  J1  lease=L2
";
/// What a stale report must leave as it was.
pub(super) const SUCCESSOR_UNHARMED: &str = "
    show     J1  state=running  attempt=1  losses=1  lease=L2  holder=W2  expires_at=+60s  attempts=lost
    complete W2  J1  lease=L2
    journal  J1  claimed:L1  lost:L1  claimed:L2  succeeded:L2
";
/// The same after one stale report of W1, which is written down as refused and nothing else.
pub(super) const REFUSED: &str = "
    show     J1  state=running  attempt=1  losses=1  lease=L2  holder=W2  expires_at=+60s  attempts=lost
    complete W2  J1  lease=L2
    journal  J1  claimed:L1  lost:L1  claimed:L2  refused:L1  succeeded:L2
";
/// W1 holds J1 under a lease that is over but that nobody took back.
pub(super) const EXPIRED: &str = "
    enqueue  J1  backoff=none
    claim    W1  J1  lease=L1
    advance  10m
";
/// J1 was fenced by force while W1 ran it.
pub(super) const FENCED: &str = "
    enqueue  J1  backoff=none
    claim    W1  J1  lease=L1
    cancel   J1  force
";
/// What a report about it must leave as it was.
pub(super) const STAYS_CANCELED: &str = "
    show     J1  state=canceled  attempts=canceled
    claim    W2  -> nothing
";

/// Runs parts of a story one after the other.
pub(super) async fn story(t: &Fixture, parts: &[&str]) {
    check(t, &parts.join("\n")).await;
}

/// Starts two things at the same moment and waits for both.
pub(super) async fn both<A, B>(
    a: impl Future<Output = A> + Send + 'static,
    b: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    let gate = Arc::new(Barrier::new(2));
    let (here, there) = (gate.clone(), gate);
    let a = tokio::spawn(async move {
        here.wait().await;
        a.await
    });
    let b = tokio::spawn(async move {
        there.wait().await;
        b.await
    });
    (a.await.expect("the first of two"), b.await.expect("the second of two"))
}

/// Sends the same report twice at the same moment, again and again: one is written, the other learns that it was.
pub(super) async fn one_of_two_reports_is_written(t: Fixture, ending: Ending) {
    let (one, how) = (t.worker("one").await, ending.how());
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, claimed) = t.claim_one(one).await;
        assert_eq!(claimed, job);
        let (first, second) = (t.clone(), t.clone());
        let (said, again) = (ending.clone(), ending.clone());
        let answers = both(async move { first.end(one, lease, job, said).await }, async move {
            second.end(one, lease, job, again).await
        })
        .await;
        let won = [(Ended::Now(how), Ended::Before(how)), (Ended::Before(how), Ended::Now(how))];
        assert!(won.contains(&answers), "{answers:?}");
        let record = t.show(job).await;
        let ends: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
        assert_eq!((record.summary.state, ends), (how.leads_to(), vec![how]));
        if !how.is_final() {
            // Put back once, not twice: after one claim there is nothing left.
            t.advance(ending.delay());
            let (again, _) = t.claim_one(one).await;
            assert!(t.claim(one, 10).await.is_none());
            assert!(again > lease);
            t.store.cancel_job(cancel(job, true)).await.expect("cancel");
        }
        t.advance(Duration::from_secs(1));
    }
}
