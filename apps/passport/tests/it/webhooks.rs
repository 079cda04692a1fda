//! Telling others, and what is done when they do not listen.

use std::time::Duration;

use kit::testing::Place;
use kit::{Running, until};
use passport::records::endpoint::ENDPOINTS_MAX;
use passport::records::{delivery, endpoint};
use passport::settings::Settings;
use passport::worker;
use passport::world::{Received, Receiver};
use serde_json::Value;
use tenure::{How, JobFilter, JobId, JobState, row};

use crate::plant::{BILL, Plant, RULES, kept, settings};

kit::on_each_store! { passport::TABLES;
    what_is_not_taken_is_tried_after_2_4_8_and_16_seconds_and_is_then_dead,
    a_later_attempt_that_is_taken_is_delivered,
    a_receiver_that_does_not_answer_in_time_is_tried_again,
    a_receiver_that_is_not_there_is_tried_again,
    a_redirect_is_not_followed,
    a_receiver_that_is_gone_is_told_nothing_more,
    a_secret_can_be_changed_and_belongs_to_its_endpoint,
    a_tenant_has_so_many_endpoints_and_can_remove_them,
    a_delivery_whose_job_was_canceled_is_failed,
}

impl Plant {
    /// One event to tell, and the job that tells it.
    async fn told(&self) -> JobId {
        self.upload(BILL, None).await;
        self.run().await;
        self.telling().await
    }

    async fn telling(&self) -> JobId {
        let kind = Some("DELIVER_WEBHOOK".parse().unwrap());
        let jobs = self.client.store().list_jobs(&JobFilter { kind, ..JobFilter::default() }).await.unwrap();
        jobs.first().expect("a delivery").id
    }

    async fn delivery(&self) -> Value {
        kept(delivery::list(&self.app, &self.tenant, 10).await).remove(0)
    }
}

/// Shows: S4.19 S4.20 S4.25 S4.33 S4.34 S4.49 S4.50 S4.57
async fn what_is_not_taken_is_tried_after_2_4_8_and_16_seconds_and_is_then_dead(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    plant.receiver.fail_next([500; 5]);
    let job = plant.told().await;
    for (attempt, seconds) in (1..).zip([2, 4, 8, 16]) {
        let record = plant.show(job).await;
        assert_eq!(plant.ended(job).await, (JobState::Retryable, attempt, "WebhookNon2xx".to_owned()));
        assert_eq!((record.lease, record.summary.locked_by), (None, None));
        assert_eq!(record.summary.run_at, plant.place.clock.now().plus(Duration::from_secs(seconds)));
        let row = plant.delivery().await;
        assert_eq!((row["status"].as_str(), row["http_status"].as_i64()), (Some("PENDING"), Some(500)));
        plant.advance(seconds - 1);
        assert_eq!(plant.run().await.claimed, 0, "not a second earlier");
        plant.advance(1);
        plant.run().await;
    }
    assert_eq!(plant.ended(job).await, (JobState::Dead, 5, "WebhookNon2xx".to_owned()));
    let row = plant.delivery().await;
    assert_eq!((row["status"].as_str(), row["attempts"].as_i64()), (Some("FAILED"), Some(5)));
    assert_eq!(row["error_message"], "WebhookNon2xx: the receiver answered 500");
    assert_eq!((row["response_body"].as_str(), row["delivered_at"].as_str()), (Some("as told"), None));
    assert_eq!(row["response_headers"]["content-type"], "text/plain; charset=utf-8");
    let back = "update passport_webhook_delivery set status = 'PENDING'";
    let refused = plant.place.database.execute(back, row![]).await.unwrap_err();
    assert!(refused.to_string().contains("goes from PENDING"), "{refused}");

    // A dead letter stays until somebody asks for it again, here by plain SQL where there is a server to say it to.
    plant.advance(86_400 * 30);
    assert_eq!(plant.run().await.claimed, 0);
    match plant.place.database.is_postgres() {
        true => {
            let requeue = "select 1 as one from tenure.requeue($1, now => $2)";
            let row = row![job, plant.place.clock.now()];
            plant.place.database.transaction(move |tx| tx.query(requeue, row)).await.unwrap();
        }
        false => plant.client.requeue(job).await.unwrap(),
    }
    assert_eq!(plant.show(job).await.summary.attempt, 0);
    plant.run().await;
    assert_eq!(plant.show(job).await.summary.state, JobState::Succeeded);
    assert_eq!(plant.delivery().await["status"], "DELIVERED");
    let received = plant.receiver.received();
    assert_eq!(received.len(), 6);
    let ids: Vec<&str> = received.iter().map(|call| call.header("x-bpc-delivery-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && !id.is_empty()), "one delivery, however often it is tried");
    assert!(received.iter().all(|call| call.body == received[0].body));
}

/// Shows: S4.33 S4.50
async fn a_later_attempt_that_is_taken_is_delivered(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    plant.receiver.fail_next([503]);
    let job = plant.told().await;
    plant.advance(2);
    plant.run().await;
    let record = plant.show(job).await;
    assert_eq!(record.attempts.iter().map(|attempt| attempt.how).collect::<Vec<_>>(), [How::Retry, How::Succeeded]);
    let row = plant.delivery().await;
    assert_eq!((row["status"].as_str(), row["http_status"].as_i64()), (Some("DELIVERED"), Some(200)));
    assert_eq!((row["attempts"].as_i64(), row["error_message"].as_str()), (Some(2), None));
    assert_eq!(row["delivered_at"], plant.place.clock.now().to_string());
}

/// Shows: S4.24 S4.48 S4.49
async fn a_receiver_that_does_not_answer_in_time_is_tried_again(place: Place) {
    // A tenth of a second here, thirty seconds unless set.
    let plant = Plant::of(place, Settings { webhook_timeout: Duration::from_millis(100), ..settings(&[]) }).await;
    plant.tell().await;
    plant.receiver.valve().close();
    let job = plant.told().await;
    assert_eq!(plant.ended(job).await, (JobState::Retryable, 1, "WebhookTimeout".to_owned()));
    plant.receiver.valve().open();
    plant.advance(2);
    plant.run().await;
    assert_eq!(plant.show(job).await.summary.state, JobState::Succeeded);
}

/// Shows: S4.23 S4.49
async fn a_receiver_that_is_not_there_is_tried_again(place: Place) {
    let plant = Plant::open(place).await;
    let away = Receiver::open().await.unwrap();
    kept(endpoint::create(&plant.app, &plant.tenant, &away.url()).await);
    away.site.close().await;
    let job = plant.told().await;
    assert_eq!(plant.ended(job).await, (JobState::Retryable, 1, "HttpException".to_owned()));
}

/// Shows: S4.49
async fn a_redirect_is_not_followed(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    plant.receiver.fail_next([302]);
    let job = plant.told().await;
    assert_eq!(plant.ended(job).await, (JobState::Retryable, 1, "WebhookNon2xx".to_owned()));
    assert_eq!(plant.receiver.received().len(), 1);
}

/// Shows: S4.49
async fn a_receiver_that_is_gone_is_told_nothing_more(place: Place) {
    let plant = Plant::open(place).await;
    let id = plant.tell().await;
    plant.receiver.fail_next([410]);
    let job = plant.told().await;
    assert_eq!(plant.ended(job).await, (JobState::Failed, 1, "ENDPOINT_GONE".to_owned()));
    assert_eq!(plant.delivery().await["status"], "FAILED");
    let endpoints = kept(endpoint::list(&plant.place.database, &plant.tenant).await);
    assert_eq!(endpoints[0].disabled_why.as_deref(), Some("the receiver answered 410"));
    plant.passport().await;
    assert_eq!(plant.receiver.received().len(), 1, "what happens meanwhile is not told");
    assert_eq!(plant.place.count("select count(*) as n from passport_webhook_delivery").await, 1, "nor to be told");

    let secret = kept(endpoint::rotate(&plant.app, &plant.tenant, id).await).unwrap();
    plant.receiver.trust(secret);
    plant.upload(&BILL.replace("4800", "4900"), None).await;
    plant.run().await;
    assert_eq!(plant.receiver.received().len(), 2, "enabled again, it is");
}

/// Shows: S4.51
async fn a_secret_can_be_changed_and_belongs_to_its_endpoint(place: Place) {
    let plant = Plant::open(place).await;
    let (id, first) = kept(endpoint::create(&plant.app, &plant.tenant, &plant.receiver.url()).await);
    plant.told().await;
    let second = kept(endpoint::rotate(&plant.app, &plant.tenant, id).await).unwrap();
    plant.upload(&BILL.replace("4800", "4900"), None).await;
    plant.run().await;
    let received = plant.receiver.received();
    let fits = |secret: &tenure::webhooks::Secret, call: &Received| {
        let (signature, secret) = (call.header("x-bpc-signature"), std::slice::from_ref(secret));
        tenure::webhooks::verify::verify_body(secret, signature, &call.body).is_ok()
    };
    assert!(fits(&first, &received[0]) && !fits(&second, &received[0]));
    assert!(fits(&second, &received[1]) && !fits(&first, &received[1]));
    // The other signature is by both, for a day.
    let signatures = |call: &Received| call.header("webhook-signature").split(' ').count();
    assert_eq!((signatures(&received[0]), signatures(&received[1])), (1, 2));
    plant.advance(86_400);
    plant.upload(&BILL.replace("4800", "5000"), None).await;
    plant.run().await;
    assert_eq!(signatures(&plant.receiver.received()[2]), 1);
    // The secret is not in the database as it is.
    let rows = plant.place.database.query("select secret from passport_webhook_endpoint", row![]).await.unwrap();
    let sealed: Vec<u8> = rows[0].get("secret").unwrap();
    let text = second.text();
    assert!(!sealed.windows(8).any(|window| text.as_bytes().windows(8).any(|plain| plain == window)));
    // And nobody registers what may not be called.
    for url in ["http://10.0.0.1/", "ftp://example.com/", "nonsense"] {
        assert!(endpoint::create(&plant.app, &plant.tenant, url).await.is_err(), "{url}");
    }
}

async fn a_tenant_has_so_many_endpoints_and_can_remove_them(place: Place) {
    let plant = Plant::open(place).await;
    let create = |number: usize| {
        let (app, tenant) = (plant.app.clone(), plant.tenant.clone());
        let url = format!("{}/{number}", plant.receiver.url());
        async move { endpoint::create(&app, &tenant, &url).await }
    };
    let asked: Vec<_> = (0..ENDPOINTS_MAX + 5).map(|number| tokio::spawn(create(number))).collect();
    let mut made = Vec::new();
    for asked in asked {
        made.extend(asked.await.unwrap().ok().map(|(id, _)| id));
    }
    assert_eq!(made.len(), ENDPOINTS_MAX, "those who ask at once do not find the last room together");

    assert!(kept(endpoint::remove(&plant.app, &plant.tenant, made[0]).await));
    assert!(!kept(endpoint::remove(&plant.app, &plant.tenant, uuid::Uuid::nil()).await));
    kept(create(100).await);
    assert!(create(101).await.is_err(), "there was one room");
    assert!(endpoint::rotate(&plant.app, &plant.tenant, made[0]).await.is_err(), "nor is there one to come back to");
    assert!(kept(endpoint::rotate(&plant.app, &plant.tenant, made[1]).await).is_some());
    plant.told().await;
    assert_eq!(plant.receiver.received().len(), ENDPOINTS_MAX, "who was removed is told nothing");
}

/// Shows: S4.50
async fn a_delivery_whose_job_was_canceled_is_failed(place: Place) {
    let plant = Plant::with(place, &[("BPC_JOBS_LEASE_SECONDS", "2"), ("BPC_JOBS_LEASE_RENEW_SECONDS", "1")]).await;
    plant.tell().await;
    // Before anybody sent it.
    plant.rules(RULES).await;
    let job = plant.telling().await;
    plant.client.cancel(job).await.unwrap();
    let row = plant.delivery().await;
    assert_eq!((row["status"].as_str(), row["error_message"].as_str()), (Some("FAILED"), Some("its job is canceled")));
    plant.client.requeue(job).await.unwrap();
    assert_eq!(plant.delivery().await["status"], "PENDING", "somebody revived it");

    // While somebody sends it.
    plant.receiver.valve().close();
    let running = Running::start(worker::worker(plant.place.worker(), &plant.app).build().unwrap());
    plant.receiver.traffic().wait_for("RULES_PUBLISHED", |calls| calls.now == 1).await;
    plant.client.cancel(job).await.unwrap();
    until("its end", async || {
        let state = plant.client.show(job).await?.summary.state;
        Ok((state == JobState::Canceled).then_some(()))
    })
    .await
    .unwrap();
    running.stop().await.unwrap();
    let select = "select status, error_message from passport_webhook_delivery";
    let row = plant.place.database.query(select, row![]).await.unwrap().remove(0);
    let seen: (String, String) = (row.get("status").unwrap(), row.get("error_message").unwrap());
    assert_eq!(seen, ("FAILED".to_owned(), "canceled before it was answered".to_owned()));
}
