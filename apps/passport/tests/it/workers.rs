//! Whole worker processes: two that must not meet, one that is killed, one whose broker is away.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kit::testing::Place;
use kit::{BoxError, until};
use passport::orders;
use tenure::{How, JobFilter, JobState, row};

use crate::plant::{BILL, Plant, battery, kept};
use crate::process::worker;

kit::on_each_store_for_processes! { passport::TABLES;
    two_workers_run_each_job_once,
    a_worker_is_killed_in_the_middle_and_another_one_finishes_with_nothing_doubled,
    a_job_that_takes_longer_than_its_lease_stays_with_its_worker,
    a_worker_whose_broker_is_away_says_so_and_polls,
}

const SHORT: [(&str, &str); 2] = [("BPC_JOBS_LEASE_SECONDS", "2"), ("BPC_JOBS_LEASE_RENEW_SECONDS", "1")];

impl Plant {
    /// Orders passports, each from a bill of its own.
    async fn order_many(&self, count: usize) {
        let order = self.order().await;
        for number in 0..count {
            let passport = kept(orders::register(&self.app, &self.tenant, battery(&format!("SN-{number}"))).await);
            let bill = BILL.replace("52000", &format!("{}", 52_000 + number));
            self.upload(&bill, Some(orders::Order { passport_id: passport, ..order.clone() })).await;
        }
    }

    async fn all_done(&self) -> Result<Option<()>, BoxError> {
        let queues = self.client.store().list_queues().await?;
        let ours = queues.iter().find(|queue| queue.name.as_str() == passport::QUEUE);
        Ok(ours.is_some_and(|it| it.due + it.scheduled + it.running == 0).then_some(()))
    }
}

/// Shows: S4.01 S4.03
async fn two_workers_run_each_job_once(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    // Nobody is answered before both are at work.
    plant.receiver.valve().close();
    plant.order_many(6).await;
    let one = [("BPC_JOBS_SLOTS", "1")];
    let _both = ["worker-1", "worker-2"].map(|name| worker(&plant.place, name, &one));
    until("both wait for the receiver", async || {
        Ok((plant.receiver.traffic().all().values().map(|count| count.now).sum::<u64>() == 2).then_some(()))
    })
    .await
    .unwrap();
    plant.receiver.valve().open();
    until("all done", async || plant.all_done().await).await.unwrap();

    let filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    let jobs = plant.client.store().list_jobs(&filter).await.unwrap();
    let mut workers = BTreeSet::new();
    for job in &jobs {
        let [attempt] = plant.show(job.id).await.attempts.try_into().unwrap();
        assert_eq!(attempt.how, How::Succeeded, "{}", job.kind);
        workers.insert(attempt.worker.unwrap());
    }
    assert_eq!(workers.iter().map(String::as_str).collect::<Vec<_>>(), ["worker-1", "worker-2"]);
    // Rules once; then 6 × (parsed, sealed, compiled, signed, labeled), and as many deliveries.
    assert_eq!(plant.events().await.len(), 1 + 6 * 5);
    assert_eq!(jobs.len(), 31 + 6 * 4);
    assert_eq!(plant.receiver.received().len(), 31);
}

/// Shows: S4.52
async fn a_worker_is_killed_in_the_middle_and_another_one_finishes_with_nothing_doubled(place: Place) {
    let plant = Plant::with(place, &SHORT).await;
    plant.tell().await;
    plant.receiver.valve().close();
    plant.order_many(8).await;
    let mut first = worker(&plant.place, "worker-a", &SHORT);
    // It has done some of the work, and as many as may be with one endpoint wait for the receiver.
    until("worker-a waits", async || Ok((plant.receiver.traffic().calls() >= 2).then_some(()))).await.unwrap();
    first.kill();
    let _second = worker(&plant.place, "worker-b", &SHORT);
    plant.receiver.valve().open();
    until("all done", async || plant.all_done().await).await.unwrap();

    let filter = JobFilter { limit: 1_000, ..JobFilter::default() };
    let mut lost = 0;
    for job in plant.client.store().list_jobs(&filter).await.unwrap() {
        assert_eq!(job.state, JobState::Succeeded);
        let endings: Vec<(How, Option<String>)> =
            plant.show(job.id).await.attempts.into_iter().map(|attempt| (attempt.how, attempt.worker)).collect();
        if endings[0].0 == How::Lost {
            let expected = [(How::Lost, Some("worker-a".to_owned())), (How::Succeeded, Some("worker-b".to_owned()))];
            assert_eq!(endings, expected);
            lost += 1;
        } else {
            assert_eq!(endings.len(), 1);
        }
    }
    assert!(lost >= 2, "{lost}: worker-a held those that waited");
    assert_eq!(plant.place.count("select count(*) as n from passport_version where status = 'LABELED'").await, 8);
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 2 + 8);
    assert_eq!(plant.events().await.len(), 1 + 8 * 5);
    let pending = "select count(*) as n from passport_webhook_delivery where status <> 'DELIVERED'";
    assert_eq!(plant.place.count(pending).await, 0);
    // Who was called twice was called under the same id: a receiver can drop the second.
    let mut deliveries = BTreeMap::<String, BTreeSet<Vec<u8>>>::new();
    for call in plant.receiver.received() {
        assert!(call.is_genuine);
        deliveries.entry(call.header("x-bpc-delivery-id").to_owned()).or_default().insert(call.body);
    }
    assert_eq!(deliveries.len(), 1 + 8 * 5);
    assert!(deliveries.values().all(|bodies| bodies.len() == 1));
}

/// Shows: S4.14
async fn a_job_that_takes_longer_than_its_lease_stays_with_its_worker(place: Place) {
    let plant = Plant::with(place, &SHORT).await;
    plant.tell().await;
    plant.receiver.valve().close();
    plant.upload(BILL, None).await;
    let _both = ["worker-a", "worker-b"].map(|name| worker(&plant.place, name, &SHORT));
    plant.receiver.traffic().wait_for("FACTS_PARSED", |calls| calls.now == 1).await;
    let filter = JobFilter { kind: Some("DELIVER_WEBHOOK".parse().unwrap()), ..JobFilter::default() };
    let job = plant.client.store().list_jobs(&filter).await.unwrap()[0].id;
    // Longer than its lease, by its own renewals.
    let heard = RefCell::new(Vec::new());
    until("renewals for longer than the lease", async || {
        let record = plant.client.show(job).await?;
        let (at, expires) = (record.heartbeat_at.ok_or("a heartbeat")?, record.lease_expires_at.ok_or("a lease")?);
        assert_eq!(expires.since(at), Duration::from_secs(2));
        let mut heard = heard.borrow_mut();
        if heard.last() != Some(&at) {
            heard.push(at);
        }
        Ok((at.since(heard[0]) > Duration::from_millis(2_500)).then_some(()))
    })
    .await
    .unwrap();
    let apart: Vec<Duration> = heard.into_inner().windows(2).map(|pair| pair[1].since(pair[0])).collect();
    let second = Duration::from_millis(900)..Duration::from_millis(1_900);
    assert!(apart.iter().all(|apart| second.contains(apart)), "{apart:?}");
    plant.receiver.valve().open();
    until("all done", async || plant.all_done().await).await.unwrap();
    let record = plant.show(job).await;
    assert_eq!((record.attempts.len(), record.losses, plant.receiver.received().len()), (1, 0, 1));
}

/// Shows: S4.01 S4.10
async fn a_worker_whose_broker_is_away_says_so_and_polls(place: Place) {
    let plant = Plant::open(place).await;
    // Nobody listens on port 1.
    let env = [("BPC_QUEUE_ENABLED", "true"), ("BPC_QUEUE_URL", "amqp://127.0.0.1:1")];
    let worker = worker(&plant.place, "worker-1", &env);
    worker.until_logged(&["WARN", "the broker is away", "polling"]).await;
    let uploaded = plant.upload(BILL, None).await;
    until("parsed all the same", async || {
        let state = plant.client.show(uploaded.job_id).await?.summary.state;
        Ok((state == JobState::Succeeded).then_some(()))
    })
    .await
    .unwrap();
    let parsed = "select count(*) as n from passport_document_version where parsed_at is not null";
    assert_eq!(plant.place.database.query(parsed, row![]).await.unwrap()[0].get::<i64>("n").unwrap(), 1);
}
