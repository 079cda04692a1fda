//! What the record says, and how it is sealed.

use std::sync::Mutex;

use async_trait::async_trait;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::name::QueueName;
use tenure_core::seal::{GENESIS, Seal};
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_store::audit::{self, Finding, Remark};
use tenure_store::journal::{JournalFilter, JournalFound, JournalPage, JournalTraces};
use tenure_store::operate::{CancelJob, OpenJob, PauseQueue, RequeueJob, Word};
use tenure_store::record::Sight;
use tenure_store::{JournalStore, Store, StoreError};

use super::situation::{ROUNDS, both, story};
use crate::fixture::{Fixture, cancel, success};

/// Every way an attempt can end is written down under its lease.
pub async fn every_ending_leaves_its_journal_row(t: Fixture) {
    let script = "
        enqueue  J1  J2  J3  J4  J5  J6  J7  backoff=none
        claim    W1  J1 J2 J3 J4 J5 J6 J7  lease=L1
        complete W1  J1  lease=L1
        fail     W1  J2  lease=L1  -> retry
        fail     W1  J3  lease=L1  class=permanent  -> failed
        fail     W1  J4  lease=L1  class=dead  -> dead
        snooze   W1  J5  lease=L1
        release  W1  J6  lease=L1
        acknowledge W1  J7  lease=L1
        journal  J1  claimed:L1  succeeded:L1
        journal  J2  claimed:L1  retry:L1
        journal  J3  claimed:L1  failed:L1
        journal  J4  claimed:L1  dead:L1
        journal  J5  claimed:L1  snoozed:L1
        journal  J6  claimed:L1  released:L1
        journal  J7  claimed:L1  canceled:L1
    ";
    story(&t, &[script]).await;
}

/// A worker's rows name the worker that wrote them, the lease, and when.
pub async fn a_workers_rows_name_worker_lease_and_time(t: Fixture) {
    let (one, two) = (t.worker("one").await, t.worker("two").await);
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(one).await;
    let claimed_at = t.clock.now();
    t.advance(std::time::Duration::from_secs(61));
    t.store.reclaim_jobs(Some(two), 10).await.expect("reclaim");
    let (next, _) = t.claim_one(two).await;
    t.end(two, next, job, success()).await;
    let rows = t.journal().await;
    let said: Vec<_> = rows.iter().map(|row| (row.event, row.worker, row.lease, row.at)).collect();
    let now = t.clock.now();
    let expected = [
        (JournalEvent::Claimed, Some(one), Some(lease), claimed_at),
        (JournalEvent::Ended(How::Lost), Some(two), Some(lease), now),
        (JournalEvent::Claimed, Some(two), Some(next), now),
        (JournalEvent::Ended(How::Succeeded), Some(two), Some(next), now),
    ];
    assert_eq!(said, expected);
    assert!(rows.iter().all(|row| row.jobs == [job]), "{rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0].id < pair[1].id), "{rows:?}");
}

/// An operator's rows say who and why.
pub async fn an_operators_rows_say_who_and_why(t: Fixture) {
    let word = |reason: &str| Word { actor: Some("ops".into()), reason: Some(reason.into()) };
    let (job, queue, sight) = (t.enqueue().await, QueueName::default(), Sight::All);
    let waiting = tenure_core::NewJob { due: tenure_core::new_job::Due::WhenOpened, ..t.new_job() };
    let other = waiting.id;
    let store = &t.store;
    store.enqueue_jobs(vec![waiting]).await.expect("enqueue");
    let pause = |paused, reason| PauseQueue { queue: queue.clone(), paused, word: word(reason) };
    store.pause_queue(pause(true, "p")).await.expect("pause");
    store.pause_queue(pause(false, "q")).await.expect("resume");
    let cancel = |force, reason| CancelJob { sight: Sight::All, job, force, word: word(reason) };
    store.cancel_job(cancel(false, "c")).await.expect("cancel");
    store.requeue_job(RequeueJob { sight: sight.clone(), job, word: word("r") }).await.expect("requeue");
    store.open_job(OpenJob { sight, job: other, word: word("o") }).await.expect("open");
    let worker = t.worker("one").await;
    t.claim(worker, 1).await.expect("a job is due");
    store.cancel_job(cancel(false, "asked")).await.expect("cancel");
    store.cancel_job(cancel(true, "forced")).await.expect("cancel");
    let rows = t.journal().await;
    let said = rows.iter().filter(|row| row.event != JournalEvent::Claimed);
    let said: Vec<_> = said.map(|row| (row.event, row.reason.as_deref().unwrap_or(""), row.jobs.clone())).collect();
    let expected = [
        (JournalEvent::QueuePaused, "p", vec![]),
        (JournalEvent::QueueResumed, "q", vec![]),
        (JournalEvent::Ended(How::Canceled), "c", vec![job]),
        (JournalEvent::Requeued, "r", vec![job]),
        (JournalEvent::Opened, "o", vec![other]),
        (JournalEvent::CancelRequested, "asked", vec![job]),
        (JournalEvent::Ended(How::Canceled), "forced", vec![job]),
    ];
    assert_eq!(said, expected);
    let operator = rows.iter().filter(|row| row.event != JournalEvent::Claimed);
    assert!(operator.clone().all(|row| row.actor.as_deref() == Some("ops")), "{rows:?}");
}

/// What was refused left no trace (a report that came too late about a job that is there: see `refuse`), and the chain has no hole where it was.
pub async fn a_refused_verb_leaves_no_row(t: Fixture) {
    let script = "
        enqueue  J1  idempotency=i  payload=1
        claim    W1  J1  lease=L1
        enqueue  J2  idempotency=i  payload=2  -> conflict
        requeue  J1  -> conflict
        open     J1  -> conflict
        complete W1  J9  lease=L1  -> lease_lost
        cancel   J9  -> not_found
        seal     -> sealed
        cancel   J1  sight=zoo  -> not_found
        seal     -> nothing
        complete W1  J1  lease=L1
        seal     -> sealed
        journal  J1  claimed:L1  succeeded:L1
        journal  J9
    ";
    story(&t, &[script]).await;
    assert_eq!(t.journal().await.len(), 2);
}

/// Each row falls into one seal, and the seals follow each other.
pub async fn every_row_falls_into_one_seal(t: Fixture) {
    let worker = t.worker("one").await;
    let mut sealed = 0;
    for round in 1..=3 {
        for _ in 0..round {
            t.enqueue().await;
            t.claim_one(worker).await;
        }
        let seal = t.store.seal_journal().await.expect("seal").expect("there are rows");
        assert_eq!((seal.no, seal.rows), (round, round));
        sealed += seal.rows;
    }
    assert_eq!(t.store.seal_journal().await.expect("seal"), None);
    let seals = t.store.list_seals(0, 100).await.expect("list");
    assert_eq!(seals.iter().map(|seal| seal.no).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(seals[0].prev, GENESIS);
    assert_eq!((seals[1].prev, seals[2].prev), (seals[0].hash, seals[1].hash));
    assert_eq!(t.store.list_seals(1, 1).await.expect("list"), [seals[1].clone()]);
    let page = |after| JournalPage { seal: Some(3), after, limit: 2 };
    let first = t.store.read_journal(page(0)).await.expect("read");
    let rest = t.store.read_journal(page(first[1].id)).await.expect("read");
    assert_eq!((first.len(), rest.len()), (2, 1));
    assert_eq!(t.journal().await.len() as i64, sealed);
}

/// Concurrent twin: two sealers do not fork the chain, and no row is sealed twice.
pub async fn concurrent_seals_do_not_fork_the_chain(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        t.enqueue().await;
        t.claim_one(worker).await;
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(async move { first.seal_journal().await }, async move { second.seal_journal().await }).await;
        // Who comes second may find nothing, or be sent away to try again.
        let sealed = [a, b].into_iter().filter_map(|seal| seal.ok().flatten()).count();
        assert_eq!(sealed, 1);
    }
    let report = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify");
    assert_eq!((report.seals, report.rows, report.findings), (ROUNDS as i64, ROUNDS as i64, vec![]));
}

/// An anchor kept elsewhere stays true while the chain grows, and tells when its end was cut off.
pub async fn an_anchor_tells_when_the_chain_was_cut(t: Fixture) {
    let job = t.enqueue().await;
    t.store.cancel_job(cancel(job, false)).await.expect("cancel");
    t.store.seal_journal().await.expect("seal");
    let early = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify").head.expect("a head");
    let worker = t.worker("one").await;
    t.enqueue().await;
    t.claim_one(worker).await;
    t.store.seal_journal().await.expect("seal");
    let whole = audit::verify(journal(&*t.store), Some(&early), |_| {}).await.expect("verify");
    assert_eq!((whole.findings, whole.seals, whole.rows, whole.tail), (vec![], 2, 2, 0));
    let late = whole.head.expect("a head");
    let cut = Cut { store: &t, seals: 1 };
    assert_eq!(audit::verify(&cut, Some(&early), |_| {}).await.expect("verify").findings, []);
    let report = audit::verify(&cut, Some(&late), |_| {}).await.expect("verify");
    assert!(matches!(report.findings[..], [Finding::AnchorMissed { no: 2, .. }]), "{report:?}");
}

/// The tail is counted until it is sealed.
pub async fn rows_not_sealed_yet_are_the_tail(t: Fixture) {
    let job = t.enqueue().await;
    t.store.cancel_job(cancel(job, false)).await.expect("cancel");
    let report = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify");
    assert_eq!((report.seals, report.rows, report.tail, report.findings), (0, 0, 1, vec![]));
}

/// Every row is found by its id, page by page, sealed or not.
pub async fn the_ids_of_all_rows_are_listed_in_order(t: Fixture) {
    assert_eq!(t.store.list_journal_ids(i64::MIN, 10).await.expect("list"), [] as [i64; 0]);
    let worker = t.worker("one").await;
    for _ in 0..3 {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        t.end(worker, lease, job, success()).await;
        if t.store.list_seals(0, 10).await.expect("list").is_empty() {
            t.store.seal_journal().await.expect("seal");
        }
    }
    let all: Vec<i64> = t.journal().await.iter().map(|row| row.id).collect();
    let (mut ids, mut from) = (Vec::new(), i64::MIN);
    loop {
        let page = t.store.list_journal_ids(from, 4).await.expect("list");
        let Some(last) = page.last().copied() else { break };
        ids.extend(page);
        from = last + 1;
    }
    assert_eq!(ids, all);
    let traces = t.store.journal_traces().await.expect("traces");
    assert_eq!((traces.drawn >= ids[5], traces.attempts), (true, true), "{traces:?}");
}

/// A job ends and a seal is made after the check has read all seals, and before it reads the tail. Red when what that seal
/// took from the tail is left out of the replay.
pub async fn a_seal_made_during_a_check_is_no_finding(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    let busy = Busy { t: &t, worker, left: Mutex::new(Some((lease, job))) };
    let report = audit::verify(&busy, None, |_| {}).await.expect("verify");
    assert_eq!((report.seals, report.rows, report.tail, report.findings), (1, 1, 1, vec![]));
}

/// Nothing was written down yet, and nothing is missing.
pub async fn a_journal_that_never_had_a_row_is_sound(t: Fixture) {
    t.enqueue().await;
    t.worker("one").await;
    let report = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify");
    assert_eq!(report, audit::Report::default());
}

/// The clock is set back and forth between rows and seals: rows whose time does not fit are remarked upon, none is a finding.
pub async fn times_that_do_not_fit_the_seals_are_remarks(t: Fixture) {
    let minute = std::time::Duration::from_secs(60);
    let pause = async |paused| {
        let request = PauseQueue { queue: QueueName::default(), paused, word: Word::default() };
        t.store.pause_queue(request).await.expect("pause");
    };
    t.enqueue().await;
    let begin = t.clock.now();
    pause(true).await;
    // As far as a verb may wait for a lock.
    t.clock.set(begin.minus(minute));
    t.store.seal_journal().await.expect("seal");
    t.clock.set(begin);
    pause(false).await;
    t.store.seal_journal().await.expect("seal");
    let report = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify");
    assert_eq!((report.findings, report.remarks, report.remarked), (vec![], vec![], 0));

    t.clock.set(begin.minus(minute * 2));
    pause(true).await;
    t.clock.set(begin.plus(minute * 5));
    pause(false).await;
    t.clock.set(begin.plus(minute * 2));
    let seal = t.store.seal_journal().await.expect("seal").expect("there are rows");
    assert_eq!((seal.no, seal.sealed_at), (3, begin.plus(minute * 2)));
    let report = audit::verify(journal(&*t.store), None, |_| {}).await.expect("verify");
    let rows: Vec<i64> = t.journal().await.iter().map(|row| row.id).collect();
    let expected = [
        Remark::DatedBack { row: rows[2], at: begin.minus(minute * 2), seal: 2, sealed_at: begin },
        Remark::DatedAhead { row: rows[3], at: begin.plus(minute * 5), seal: 3, sealed_at: seal.sealed_at },
    ];
    assert_eq!((report.findings, report.remarks, report.remarked), (vec![], expected.to_vec(), 2));
}

/// A seal says when it was made, by the store's clock.
pub async fn a_seal_says_when_it_was_made(t: Fixture) {
    let worker = t.worker("one").await;
    t.enqueue().await;
    t.claim_one(worker).await;
    t.advance(std::time::Duration::from_secs(7));
    let seal = t.store.seal_journal().await.expect("seal").expect("there are rows");
    assert_eq!(seal.sealed_at, t.clock.now());
    assert_eq!(t.store.list_seals(0, 10).await.expect("list"), [seal]);
}

fn journal(store: &dyn Store) -> &dyn JournalStore {
    store
}

/// A store in which a job ends and a seal is made when the tail is asked for, once.
struct Busy<'a> {
    t: &'a Fixture,
    worker: WorkerId,
    left: Mutex<Option<(LeaseNo, JobId)>>,
}

#[async_trait]
impl JournalStore for Busy<'_> {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        self.t.store.seal_journal().await
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        self.t.store.list_seals(after, limit).await
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        let left = self.left.lock().expect("nothing panics").take_if(|_| page.seal.is_none());
        if let Some((lease, job)) = left {
            self.t.store.seal_journal().await?;
            self.t.end(self.worker, lease, job, success()).await;
        }
        self.t.store.read_journal(page).await
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.t.store.list_journal_ids(from, limit).await
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.t.store.journal_traces().await
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        self.t.store.list_job_rows(sight, job).await
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        self.t.store.list_journal(filter).await
    }
}

/// A store whose last seals and their rows somebody removed.
struct Cut<'a> {
    store: &'a Fixture,
    seals: i64,
}

#[async_trait]
impl JournalStore for Cut<'_> {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        Ok(None)
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        let seals = self.store.store.list_seals(after, limit).await?;
        Ok(seals.into_iter().filter(|seal| seal.no <= self.seals).collect())
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        self.store.store.read_journal(page).await
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        let mut left = Vec::new();
        for seal in 1..=self.seals {
            let page = JournalPage { seal: Some(seal), after: 0, limit: 1_000 };
            left.extend(self.store.store.read_journal(page).await?.iter().map(|row| row.id));
        }
        Ok(left.into_iter().filter(|id| *id >= from).take(limit as usize).collect())
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.store.store.journal_traces().await
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        self.store.store.list_job_rows(sight, job).await
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        self.store.store.list_journal(filter).await
    }
}
