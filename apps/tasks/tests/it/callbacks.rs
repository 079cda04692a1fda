//! The API is told how tasks ended: from the journal, signed, and again until it listens.

use std::sync::Arc;
use std::time::Duration;

use kit::http::HttpOptions;
use kit::testing::Place;
use kit::{Http, Traffic};
use serde_json::json;
use tasks::callbacks::{connect, courier, disconnect, is_connected};
use tasks::task::Status;
use tasks::world::Library;
use tasks::world::api::Told;
use tenure::store::webhook::{DeliveryFilter, DeliveryState};
use tenure::webhooks::{Secret, Teller};
use tenure::{Sight, Worker};

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    success_and_failure_are_told_once_each,
    a_task_that_used_up_its_tries_is_told_as_an_error,
    an_api_that_is_unwell_is_told_again_with_the_same_event,
    an_api_that_hangs_is_told_again,
    what_was_not_committed_is_not_told,
    a_word_of_somebody_else_is_not_believed,
    there_is_one_endpoint_and_it_keeps_its_secret,
}

/// The scene with everything that tells.
struct Office {
    scene: Scene,
    courier: Worker,
    teller: Teller,
}

impl Office {
    async fn new(scene: Scene) -> Self {
        let callbacks = scene.settings.callbacks.clone().unwrap();
        let store = Arc::clone(scene.client().store());
        connect(&*store, &scene.settings, &callbacks).await.unwrap();
        let courier = courier(&scene.place.database, &scene.settings, &callbacks).unwrap();
        let courier = courier.client(scene.place.client()).build().unwrap();
        Self { scene, courier, teller: Teller::new(store) }
    }

    /// Everything that happened so far is told, as far as the API takes it.
    async fn tell(&self) {
        let store = Arc::clone(self.scene.client().store());
        store.seal_journal().await.unwrap();
        self.teller.tell_all().await.unwrap();
        self.courier.run_until_idle().await.unwrap();
    }

    fn told(&self) -> Vec<Told> {
        self.scene.world.api.told()
    }

    fn traffic(&self) -> &Traffic {
        self.scene.world.api.traffic()
    }

    async fn deliveries(&self) -> Vec<DeliveryState> {
        let filter = DeliveryFilter::new(Sight::All, 100);
        let deliveries = self.scene.client().store().list_deliveries(&filter).await.unwrap();
        deliveries.into_iter().map(|delivery| delivery.state).collect()
    }
}

/// Shows: S3.13 S3.16
async fn success_and_failure_are_told_once_each(place: Place) {
    let office = Office::new(Scene::new(place).await).await;
    let (good, bad) = (office.scene.fetch("words-7").await, office.scene.fetch("missing").await);
    office.scene.run().await;
    assert_eq!(office.told(), [], "told after it was sealed, not before");
    for _ in 0..3 {
        office.tell().await;
    }
    let mut told = office.told();
    told.sort_by_key(|told| told.event_type.clone());
    let [failure, success] = told.try_into().unwrap();
    assert_eq!((failure.event_type.as_str(), failure.task), ("job.failed", bad.to_string()));
    assert_eq!((&failure.error["code"], failure.times), (&json!("http_404"), 1));
    assert_eq!((success.event_type.as_str(), success.task), ("job.succeeded", good.to_string()));
    let bytes = Library::words(7).len();
    assert_eq!(success.result, json!({ "url": office.scene.world.document("words-7"), "bytes": bytes }));
    assert_eq!((&success.usage["bytes"], success.times), (&json!(bytes), 1));
    assert_eq!(success.fence, office.scene.show(good).await.attempts[0].lease.0);
    assert_eq!((office.traffic().of("calls").calls, office.traffic().of("not genuine").calls), (2, 0));
    assert_eq!(office.deliveries().await, [DeliveryState::Delivered; 2]);
}

/// Shows: S3.16
async fn a_task_that_used_up_its_tries_is_told_as_an_error(place: Place) {
    let office = Office::new(Scene::new(place).await).await;
    let task = office.scene.fetch("words-7").await;
    let store = Arc::clone(office.scene.client().store());
    for _ in 0..3 {
        crate::recovery::dies_with_a_task(&store, "dead").await;
        office.scene.place.advance(Duration::from_secs(61));
        store.reclaim_jobs(None, 10).await.unwrap();
        office.scene.place.advance(Duration::from_secs(2));
    }
    office.tell().await;
    let told: Vec<(String, String)> = office.told().into_iter().map(|told| (told.event_type, told.task)).collect();
    assert_eq!(told, [("job.dead".to_owned(), task.to_string())], "the two lost tries before are no end");
}

/// Shows: S3.13
async fn an_api_that_is_unwell_is_told_again_with_the_same_event(place: Place) {
    let office = Office::new(Scene::new(place).await).await;
    office.scene.fetch("words-7").await;
    office.scene.run().await;
    office.scene.world.api.be_unwell(2);
    office.tell().await;
    assert_eq!((office.told().len(), office.traffic().of("unwell").calls), (0, 1));
    office.tell().await;
    assert_eq!(office.traffic().of("calls").calls, 1, "not before its time");
    // After 5 s and after 30 s, each give or take a fifth.
    office.scene.place.advance(Duration::from_secs(6));
    office.tell().await;
    assert_eq!((office.told().len(), office.traffic().of("unwell").calls), (0, 2));
    office.scene.place.advance(Duration::from_secs(36));
    office.tell().await;
    let told = office.told();
    assert_eq!((told.len(), told[0].times, office.traffic().of("calls").calls), (1, 1, 3));
    assert_eq!(office.deliveries().await, [DeliveryState::Delivered]);
}

/// Shows: S3.13
async fn an_api_that_hangs_is_told_again(place: Place) {
    let mut scene = Scene::new(place).await;
    scene.settings.callbacks.as_mut().unwrap().timeout = Duration::from_millis(200);
    let office = Office::new(scene).await;
    office.scene.fetch("words-7").await;
    office.scene.run().await;
    office.scene.world.api.valve().close();
    office.tell().await;
    assert_eq!((office.told().len(), office.traffic().of("calls").calls), (0, 1));
    office.scene.world.api.valve().open();
    office.scene.place.advance(Duration::from_secs(6));
    office.tell().await;
    assert_eq!(office.told().len(), 1);
}

/// Shows: S3.13 S3.16 S3.31 S3.32
async fn what_was_not_committed_is_not_told(place: Place) {
    let office = Office::new(Scene::new(place).await).await;
    let worker = office.scene.start("holder");
    for (name, status, event) in [("words-7", Status::Done, "succeeded"), ("missing", Status::Error, "failed")] {
        let before = office.told().len();
        let held = office.scene.world.library.hold(name);
        let task = office.scene.fetch(name).await;
        office.scene.until_asked(name, 1).await;
        office.tell().await;
        assert_eq!(office.told().len(), before, "it runs");
        held.open();
        office.scene.until(task, status).await;
        office.tell().await;
        // The row that says so, and the word that was told, are one event.
        let rows = office.scene.client().store().list_job_rows(&Sight::All, task).await.unwrap();
        let ended = rows.iter().find(|row| row.event.as_str() == event).unwrap();
        assert_eq!(office.told()[before].event, format!("evt_{}_{task}", ended.id));
    }
    worker.stop().await.unwrap();
}

async fn a_word_of_somebody_else_is_not_believed(place: Place) {
    let scene = Scene::new(place).await;
    let http = Http::new(&HttpOptions::default()).unwrap();
    let body = br#"{"event_id":"e","event_type":"job.succeeded","aggregate_id":"t","payload":{"fence":1}}"#;
    let forged = [("webhook-id", "e"), ("webhook-timestamp", "1"), ("webhook-signature", "v1,AAAA")];
    let answer = http.post(&scene.world.callback(), &forged, body.to_vec()).await.unwrap();
    assert_eq!(
        (answer.status, scene.world.api.told().len(), scene.world.api.traffic().of("not genuine").calls),
        (401, 0, 1)
    );
}

async fn there_is_one_endpoint_and_it_keeps_its_secret(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    let callbacks = scene.settings.callbacks.clone().unwrap();
    let (one, two) =
        tokio::join!(connect(&*store, &scene.settings, &callbacks), connect(&*store, &scene.settings, &callbacks));
    assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
    let filter = tenure::store::webhook::EndpointFilter { sight: Sight::All, after: None, limit: 10 };
    assert_eq!(store.list_endpoints(&filter).await.unwrap().len(), 1);
    let mut others = callbacks;
    others.secret = Secret::generate();
    let refused = connect(&*store, &scene.settings, &others).await.unwrap_err().to_string();
    assert!(refused.starts_with("TASKS_API_SECRET is refused"), "{refused}");
    disconnect(&*store).await.unwrap();
    assert!(!is_connected(&*store).await.unwrap());
    connect(&*store, &scene.settings, &others).await.unwrap();
    assert_eq!(store.list_endpoints(&filter).await.unwrap().len(), 1);
}
