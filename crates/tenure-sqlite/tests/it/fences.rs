//! Every fence holds, and is missed when it is gone.

use std::time::Duration;

use tenure_core::gate::GateRule;
use tenure_core::name::{QueueName, TenantName, WorkerName};
use tenure_core::new_job::Due;
use tenure_core::{How, LeaseNo, NewJob, Timestamp, Timing, WorkerId};
use tenure_sqlite::{FENCES, Mutation};
use tenure_store::gate::SetRule;
use tenure_store::lease::{Ended, Ending, RenewLeases};
use tenure_store::operate::{CancelJob, PauseQueue};
use tenure_store::record::Sight;
use tenure_store::schedule::{FireSchedule, Fired, PauseSchedule, ScheduleRecord, SetSchedule, Template};
use tenure_store::{AdminStore, GateStore, JobStore, LeaseStore, ScheduleStore, StoreError};

use crate::fixture::{Fixture, error, failed, new_job, succeeded, word};

#[tokio::test]
async fn every_fence_holds_and_is_missed_when_it_is_gone() {
    for (name, find, replace) in FENCES {
        assert!(holds(name, &Fixture::memory().await).await, "{name}: it does not hold");
        let without = Fixture::mutated(Mutation { find, replace }).await;
        assert!(!holds(name, &without).await, "{name}: nobody misses it");
    }
}

async fn holds(name: &str, fixture: &Fixture) -> bool {
    match name {
        "a lease is its worker's" => a_lease_is_its_workers(fixture).await,
        "an ended attempt is its worker's" => an_ended_attempt_is_its_workers(fixture).await,
        "a grant ends once" => a_grant_ends_once(fixture).await,
        "a future job is not claimed" => a_future_job_is_not_claimed(fixture).await,
        "a paused queue hands out nothing" => a_paused_queue_hands_out_nothing(fixture).await,
        "only an expired lease is reclaimed" => only_an_expired_lease_is_reclaimed(fixture).await,
        "a renewal pushes the deadline" => a_renewal_pushes_the_deadline(fixture).await,
        "only unknown leases are released" => only_unknown_leases_are_released(fixture).await,
        "a late sweep leaves newer leases alone" => a_late_sweep_leaves_newer_leases_alone(fixture).await,
        "a requested cancel is met" => a_requested_cancel_is_met(fixture).await,
        "a requested cancel wins over putting back" => a_requested_cancel_wins(fixture).await,
        "a tenant sees its own" => a_tenant_sees_its_own(fixture).await,
        "a lease in use is kept" => a_lease_in_use_is_kept(fixture).await,
        "a job is pruned after its leases" => a_job_is_pruned_after_its_leases(fixture).await,
        "a page moves its own partition, from where it is" => {
            story("a_page_that_is_repeated_or_out_of_order_moves_nothing", fixture).await
        }
        "a page of an ended partition moves nothing" => story("the_first_that_fails_may_end_the_others", fixture).await,
        "what a run may revive is kept" => story("what_a_run_may_revive_is_not_pruned", fixture).await,
        "what a gate has counted is gone" => what_a_gate_has_counted_is_gone(fixture).await,
        "a quota is its tenant's" => story("each_tenant_of_a_fair_queue_has_a_quota_of_its_own", fixture).await,
        "a schedule moves on from where it was read" => a_schedule_moves_on_from_where_it_was_read(fixture).await,
        "a fire time has one job" => a_fire_time_has_one_job(fixture).await,
        "a paused schedule fires nothing" => a_paused_schedule_fires_nothing(fixture).await,
        "a fire is not before its time" => a_fire_is_not_before_its_time(fixture).await,
        other => panic!("the fence `{other}` has no case here"),
    }
}

/// Whether a story of the contract goes as it is told.
async fn story(name: &str, fixture: &Fixture) -> bool {
    let store = std::sync::Arc::new(fixture.store.clone());
    let fixture = tenure_contract::Fixture::new("sqlite", store, fixture.clock.clone());
    tenure_contract::run_case(name, fixture).await.is_ok()
}

/// A permit that was given back once is there once: the third claim finds the gate full.
async fn what_a_gate_has_counted_is_gone(fixture: &Fixture) -> bool {
    let rule = Some(GateRule { concurrency: Some(1), ..GateRule::default() });
    fixture.store.set_rule(SetRule { pattern: "g".parse().unwrap(), rule, word: word() }).await.unwrap();
    for _ in 0..3 {
        let job = NewJob { gate: Some("g".parse().unwrap()), ..new_job(fixture.clock.now()) };
        fixture.store.enqueue_jobs(vec![job]).await.unwrap();
    }
    let first = fixture.claim(1).await.unwrap();
    fixture.end(first.lease, first.jobs[0].id, succeeded()).await;
    fixture.claim(1).await.unwrap();
    fixture.claim(1).await.is_none()
}

const SECOND: Duration = Duration::from_secs(1);

/// A schedule of each second that was just looked at.
async fn each_second(fixture: &Fixture) -> ScheduleRecord {
    let template = Template::of(new_job(fixture.clock.now()));
    let timing = Timing::new("* * * * * *".parse().unwrap());
    let (tenant, name) = (TenantName::default(), "s".parse().unwrap());
    fixture.store.set_schedule(SetSchedule { tenant, name, timing, template, word: word() }).await.unwrap();
    schedule(fixture).await
}

async fn schedule(fixture: &Fixture) -> ScheduleRecord {
    fixture.store.show_schedule(&TenantName::default(), &"s".parse().unwrap()).await.unwrap().0
}

async fn fires(fixture: &Fixture, read: &ScheduleRecord, fire_at: Timestamp) -> bool {
    let (schedule, version, look_at) = (read.id, read.version, read.now);
    let job = new_job(fixture.clock.now()).id;
    let request = FireSchedule { schedule, version, fire_at: Some(fire_at), job, look_at };
    matches!(fixture.store.fire_schedule(request).await, Ok(Fired::Stored(_)))
}

async fn a_schedule_moves_on_from_where_it_was_read(fixture: &Fixture) -> bool {
    let read = each_second(fixture).await;
    let (first, second) = (read.now.plus(SECOND), read.now.plus(SECOND * 2));
    fixture.clock.advance(SECOND * 2);
    assert!(fires(fixture, &read, first).await);
    !fires(fixture, &read, second).await
}

async fn a_fire_time_has_one_job(fixture: &Fixture) -> bool {
    let read = each_second(fixture).await;
    fixture.clock.advance(SECOND);
    assert!(fires(fixture, &read, read.now.plus(SECOND)).await);
    let again = schedule(fixture).await;
    !fires(fixture, &again, read.now.plus(SECOND)).await
}

async fn a_paused_schedule_fires_nothing(fixture: &Fixture) -> bool {
    let read = each_second(fixture).await;
    let (tenant, name) = (TenantName::default(), "s".parse().unwrap());
    let pause = PauseSchedule { tenant, name, paused: true, word: word() };
    fixture.store.pause_schedule(pause).await.unwrap();
    fixture.clock.advance(SECOND);
    let again = schedule(fixture).await;
    !fires(fixture, &again, read.now.plus(SECOND)).await
}

async fn a_fire_is_not_before_its_time(fixture: &Fixture) -> bool {
    let read = each_second(fixture).await;
    !fires(fixture, &read, read.now.plus(SECOND)).await
}

async fn other_worker(fixture: &Fixture) -> WorkerId {
    fixture.store.register_worker(&WorkerName::new("w2").unwrap()).await.unwrap()
}

async fn renews(fixture: &Fixture, worker: WorkerId, lease: LeaseNo) -> bool {
    let request = RenewLeases { worker, leases: vec![lease] };
    fixture.store.renew_leases(request).await.unwrap().leases == [lease]
}

async fn a_lease_is_its_workers(fixture: &Fixture) -> bool {
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    let other = other_worker(fixture).await;
    let renewed = renews(fixture, other, lease).await;
    let released = fixture.store.release_unknown(other, vec![], LeaseNo::MAX).await.unwrap();
    let ended = fixture.end_as(other, lease, job, succeeded()).await;
    !renewed && released.is_empty() && ended == Ended::LeaseLost { how: None }
}

async fn an_ended_attempt_is_its_workers(fixture: &Fixture) -> bool {
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    fixture.end(lease, job, succeeded()).await;
    assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Before(How::Succeeded));
    fixture.end_as(other_worker(fixture).await, lease, job, succeeded()).await == Ended::LeaseLost { how: None }
}

async fn a_grant_ends_once(fixture: &Fixture) -> bool {
    let jobs = fixture.enqueue(2).await;
    let lease = fixture.claim(2).await.unwrap().lease;
    fixture.end(lease, jobs[0], succeeded()).await;
    fixture.end(lease, jobs[0], failed()).await == Ended::LeaseLost { how: Some(How::Succeeded) }
}

async fn a_future_job_is_not_claimed(fixture: &Fixture) -> bool {
    let mut job = new_job(fixture.clock.now());
    job.due = Due::After(Duration::from_micros(1));
    fixture.store.enqueue_jobs(vec![job]).await.unwrap();
    fixture.claim(1).await.is_none()
}

async fn a_paused_queue_hands_out_nothing(fixture: &Fixture) -> bool {
    fixture.enqueue(1).await;
    let pause = PauseQueue { queue: QueueName::default(), paused: true, word: word() };
    fixture.store.pause_queue(pause).await.unwrap();
    fixture.claim(1).await.is_none()
}

async fn only_an_expired_lease_is_reclaimed(fixture: &Fixture) -> bool {
    fixture.enqueue(1).await;
    fixture.claim(1).await.unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    fixture.store.reclaim_jobs(None, 10).await.unwrap().is_empty()
}

async fn a_renewal_pushes_the_deadline(fixture: &Fixture) -> bool {
    fixture.enqueue(1).await;
    let lease = fixture.claim(1).await.unwrap().lease;
    fixture.clock.advance(Duration::from_secs(60));
    assert!(renews(fixture, fixture.worker, lease).await);
    fixture.clock.advance(Duration::from_secs(60));
    fixture.store.reclaim_jobs(None, 10).await.unwrap().is_empty()
}

async fn only_unknown_leases_are_released(fixture: &Fixture) -> bool {
    let jobs = fixture.enqueue(2).await;
    let known = fixture.claim(1).await.unwrap().lease;
    fixture.claim(1).await.unwrap();
    fixture.store.release_unknown(fixture.worker, vec![known], LeaseNo::MAX).await.unwrap() == [jobs[1]]
}

async fn a_late_sweep_leaves_newer_leases_alone(fixture: &Fixture) -> bool {
    let jobs = fixture.enqueue(2).await;
    let newest = fixture.claim(1).await.unwrap().lease;
    fixture.claim(1).await.unwrap();
    fixture.store.release_unknown(fixture.worker, vec![], newest).await.unwrap() == [jobs[0]]
}

/// With one writer a request and a retry cannot pass each other; the row is written around the verbs.
async fn a_requested_cancel_is_met(fixture: &Fixture) -> bool {
    let job = fixture.enqueue(1).await[0];
    let write = fixture.store.transaction(|tx| {
        let sql = "insert into cancel_request (job, requested_at) select id, 0 from job";
        tx.connection().execute(sql, []).map_err(StoreError::unavailable)
    });
    write.await.unwrap();
    let claimed = fixture.claim(1).await.unwrap();
    claimed.jobs.is_empty() && claimed.canceled == [job]
}

async fn a_requested_cancel_wins(fixture: &Fixture) -> bool {
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    fixture.store.cancel_job(CancelJob { sight: Sight::All, job, force: false, word: word() }).await.unwrap();
    let retry = Ending::Retry { delay: Duration::ZERO, error: error() };
    fixture.end(lease, job, retry).await == Ended::Now(How::Canceled)
}

async fn a_tenant_sees_its_own(fixture: &Fixture) -> bool {
    let job = fixture.enqueue(1).await[0];
    let sight = Sight::Tenant(TenantName::new("acme").unwrap());
    let shown = fixture.store.show_job(&sight, job).await;
    let canceled = fixture.store.cancel_job(CancelJob { sight, job, force: true, word: word() }).await;
    matches!((shown, canceled), (Err(StoreError::NotFound(_)), Err(StoreError::NotFound(_))))
}

async fn a_lease_in_use_is_kept(fixture: &Fixture) -> bool {
    fixture.enqueue(2).await;
    let lease = fixture.claim(2).await.unwrap().lease;
    fixture.store.drop_leases(fixture.worker, vec![lease]).await.unwrap().is_empty()
}

async fn a_job_is_pruned_after_its_leases(fixture: &Fixture) -> bool {
    let jobs = fixture.enqueue(2).await;
    let lease = fixture.claim(2).await.unwrap().lease;
    fixture.end(lease, jobs[0], succeeded()).await;
    let early = fixture.prune().await;
    fixture.end(lease, jobs[1], succeeded()).await;
    early == 0 && fixture.prune().await == 2
}
