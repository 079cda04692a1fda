//! Claims, leases and priorities, by the seed's own numbers, with a clock that the test moves.

use std::time::Duration;

use kit::testing::Place;
use passport::QUEUE;
use passport::jobs::{
    CompilePassport, CompilePassportJob, DeliverWebhook, DeliverWebhookJob, GenerateQr, GenerateQrJob, ParseFacts,
    ParseFactsJob, SignPassport, SignPassportJob,
};
use passport::worker;
use serde::{Deserialize, Serialize};
use tenure::core::WorkerId;
use tenure::core::name::{QueueName, WorkerName};
use tenure::preset::PASSPORT;
use tenure::store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending, GateWord, RenewLeases};
use tenure::{Fail, How, Job, JobState, Priority};
use uuid::Uuid;

use crate::plant::{BILL, Plant};

kit::on_each_store! { passport::TABLES;
    a_worker_dies_and_after_60_seconds_another_one_completes_its_job,
    a_lease_is_renewed_by_its_holder_alone,
    a_job_is_claimed_when_its_time_has_come,
    the_lower_number_goes_first_and_then_the_earlier_time,
    a_handler_that_fails_or_panics_does_not_stop_the_worker,
}

impl Plant {
    /// A worker that is only a name: it claims, and is never heard of again.
    pub(crate) async fn claim(&self, name: &str, limit: u32) -> (WorkerId, Option<Claimed>) {
        let store = self.client.store();
        let worker = store.register_worker(&WorkerName::new(name).unwrap()).await.unwrap();
        let request = ClaimJobs::new(worker, QueueName::new(QUEUE).unwrap(), limit);
        (worker, store.claim_jobs(request).await.unwrap())
    }

    async fn reclaim(&self) -> usize {
        self.client.store().reclaim_jobs(None, 100).await.unwrap().len()
    }
}

/// Shows: S4.04 S4.13 S4.17 S4.52
async fn a_worker_dies_and_after_60_seconds_another_one_completes_its_job(place: Place) {
    let plant = Plant::open(place).await;
    let uploaded = plant.upload(BILL, None).await;
    let claimed_at = plant.place.clock.now();
    let (dead, claimed) = plant.claim("worker-a", 1).await;
    let claimed = claimed.unwrap();

    let record = plant.show(uploaded.job_id).await;
    assert_eq!((record.summary.state, record.summary.locked_by.as_deref()), (JobState::Running, Some("worker-a")));
    assert_eq!(record.lease_expires_at, Some(claimed_at.plus(Duration::from_secs(60))));

    plant.advance(59);
    assert_eq!((plant.reclaim().await, plant.run().await.claimed), (0, 0), "it is still worker-a's");
    plant.advance(2);
    assert_eq!(plant.reclaim().await, 1);
    assert_eq!(plant.run().await.succeeded, 1);

    // Worker A was only slow, and reports after all.
    let report = EndJob {
        job: uploaded.job_id,
        ending: Ending::Succeeded { result: None, usage: None },
        gate: GateWord::default(),
    };
    let report = EndJobs { worker: dead, lease: claimed.lease, jobs: vec![report] };
    let answers = plant.client.store().end_jobs(report).await.unwrap();
    assert!(matches!(answers[..], [Ended::LeaseLost { .. }]), "{answers:?}");

    let record = plant.show(uploaded.job_id).await;
    let endings: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!((record.summary.state, endings), (JobState::Succeeded, vec![How::Lost, How::Succeeded]));
    assert_eq!(record.attempts[0].started_at, Some(claimed_at), "when it started is kept");
    assert_eq!((record.lease, record.lease_expires_at), (None, None), "an ending takes the lease away");
    assert_eq!(plant.events().await, ["FACTS_PARSED"], "and nothing is doubled");
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 3);
}

/// Shows: S4.14 S4.16
async fn a_lease_is_renewed_by_its_holder_alone(place: Place) {
    let plant = Plant::open(place).await;
    let uploaded = plant.upload(BILL, None).await;
    let (holder, claimed) = plant.claim("worker-a", 1).await;
    let (other, none) = plant.claim("worker-b", 1).await;
    assert_eq!(none, None);
    let leases = vec![claimed.unwrap().lease];
    let renew = async |worker| {
        let request = RenewLeases { worker, leases: leases.clone() };
        plant.client.store().renew_leases(request).await.unwrap().leases
    };
    // Every 30 seconds, and each time it is good for another 60.
    for _ in 0..4 {
        plant.advance(30);
        assert_eq!((renew(other).await.len(), renew(holder).await.len()), (0, 1));
        let expires = plant.show(uploaded.job_id).await.lease_expires_at;
        assert_eq!(expires, Some(plant.place.clock.now().plus(Duration::from_secs(60))));
        assert_eq!(plant.reclaim().await, 0);
    }
    plant.advance(61);
    plant.reclaim().await;
    plant.run().await;
    assert_eq!(renew(holder).await.len(), 0, "there is nothing to renew in a job that has ended");
}

/// Shows: S4.02
async fn a_job_is_claimed_when_its_time_has_come(place: Place) {
    let plant = Plant::open(place).await;
    let job = GenerateQrJob::from(GenerateQr { passport_version_id: Uuid::nil() });
    plant.client.enqueue(job).delay(Duration::from_secs(10)).await.unwrap();
    plant.advance(9);
    assert_eq!(plant.run().await.claimed, 0);
    plant.advance(1);
    assert_eq!(plant.run().await.claimed, 1);
}

/// Shows: S4.19 S4.20 S4.59 S4.60
async fn the_lower_number_goes_first_and_then_the_earlier_time(place: Place) {
    let plant = Plant::open(place).await;
    let (id, client) = (Uuid::nil(), &plant.client);
    let parse = || ParseFactsJob::from(ParseFacts { document_version_id: id, then: None });
    let compile = CompilePassport {
        passport_id: id,
        snapshot_id: id,
        rules_id: id,
        build_id: "1".to_owned(),
        issued_at: "2026-11-15T09:30:00Z".to_owned(),
        key_id: "k".to_owned(),
    };
    let sign = SignPassport { passport_version_id: id, key_id: "k".to_owned() };
    // The least urgent first, a second apart.
    client.enqueue(DeliverWebhookJob::from(DeliverWebhook { webhook_delivery_id: id })).await.unwrap();
    plant.advance(1);
    client.enqueue(GenerateQrJob::from(GenerateQr { passport_version_id: id })).await.unwrap();
    plant.advance(1);
    client.enqueue(parse()).await.unwrap();
    plant.advance(1);
    client.enqueue(SignPassportJob::from(sign)).await.unwrap();
    plant.advance(1);
    client.enqueue(CompilePassportJob::from(compile)).await.unwrap();
    plant.advance(1);
    client.enqueue(parse()).priority(Priority::CRITICAL).await.unwrap();
    let mut claimed = Vec::new();
    for _ in 0..6 {
        let jobs = plant.claim("worker-a", 1).await.1.unwrap().jobs;
        assert_eq!(jobs[0].rules, PASSPORT.rules, "{}", jobs[0].kind);
        claimed.push((jobs[0].priority.get(), jobs[0].kind.to_string()));
    }
    let claimed: Vec<(u8, &str)> = claimed.iter().map(|(priority, kind)| (*priority, kind.as_str())).collect();
    assert_eq!(
        claimed,
        [
            (0, "PARSE_FACTS"),
            (1, "SIGN_PASSPORT"),
            (1, "COMPILE_PASSPORT"),
            (2, "GENERATE_QR"),
            (2, "PARSE_FACTS"),
            (3, "DELIVER_WEBHOOK"),
        ]
    );

    // Every eighth claim of a worker begins at the other end.
    client.enqueue(DeliverWebhookJob::from(DeliverWebhook { webhook_delivery_id: id })).await.unwrap();
    client.enqueue(parse()).priority(Priority::CRITICAL).await.unwrap();
    let worker = plant.claim("worker-b", 1).await;
    assert_eq!(worker.1.unwrap().jobs[0].priority, Priority::CRITICAL);
    client.enqueue(parse()).priority(Priority::CRITICAL).await.unwrap();
    let eighth = ClaimJobs::turn(worker.0, QueueName::new(QUEUE).unwrap(), 1, 7);
    let claimed = client.store().claim_jobs(eighth).await.unwrap().unwrap();
    assert_eq!(claimed.jobs[0].kind.as_str(), "DELIVER_WEBHOOK");
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "EXPLODE", queue = "passport", priority = "critical", max_attempts = 5)]
struct Explode {
    panics: bool,
}

async fn explode(job: Explode) -> Result<(), Fail> {
    assert!(!job.panics, "as told");
    Err(Fail::code("NOT_ON_ANY_LIST", "as told"))
}

/// Shows: S4.36
async fn a_handler_that_fails_or_panics_does_not_stop_the_worker(place: Place) {
    let plant = Plant::open(place).await;
    let worker = worker::worker(plant.place.worker(), &plant.app).handle(explode).build().unwrap();
    let panics = plant.client.enqueue(Explode { panics: true }).await.unwrap().job();
    let fails = plant.client.enqueue(Explode { panics: false }).await.unwrap().job();
    let parse = plant.upload(BILL, None).await.job_id;
    worker.run_until_idle().await.unwrap();
    assert_eq!(plant.ended(panics).await, (JobState::Failed, 1, "panic".to_owned()));
    assert_eq!(plant.ended(fails).await, (JobState::Failed, 1, "NOT_ON_ANY_LIST".to_owned()));
    assert_eq!(plant.show(parse).await.summary.state, JobState::Succeeded);
}
