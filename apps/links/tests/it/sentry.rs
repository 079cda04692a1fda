//! Who watches errors is told of links that are dead, and nothing about anybody.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use kit::testing::Place;
use kit::{Site, until};
use links::CanonicalUrl;
use links::enrich::Enrich;
use links::link::LinkId;
use links::world::World;
use serde_json::Value;
use tenure::{JobFilter, JobState};

use crate::processes::{import, start};

kit::on_each_store_for_processes! { links::TABLES; dead_links_are_told_to_sentry_without_anything_of_anybody, }

type Told = Arc<Mutex<Vec<String>>>;

/// A Sentry that keeps what it is told.
async fn sentry() -> (Site, Told) {
    let told = Told::default();
    let hear = |State(told): State<Told>, body: String| async move {
        told.lock().unwrap().push(body);
        "{}"
    };
    let router = Router::new().fallback(hear).with_state(Arc::clone(&told));
    (Site::open(router).await.unwrap(), told)
}

/// A job whose error repeats an address with its query: it is no address.
async fn enqueue_nonsense(place: &Place) {
    let link = LinkId::of(&CanonicalUrl::parse("http://a.example/").unwrap());
    let url = "http://a..example/reset?token=s3cr3t-9&mail=ada.lovelace@mail.example".to_owned();
    place.client().enqueue(Enrich { link, url }).await.unwrap();
}

/// Shows: S1.56 S1.57 S1.58
async fn dead_links_are_told_to_sentry_without_anything_of_anybody(place: Place) {
    let world = World::open().await.unwrap();
    let (site, told) = sentry().await;
    // One that is tried again first, and two that are dead at once.
    let urls = [
        "http://gone.example/?mail=ada.lovelace@mail.example",
        "http://captcha.example/reset?token=s3cr3t-9",
        "http://robots.example/?mail=ada.lovelace@mail.example",
    ];
    import(&place, &urls.map(str::to_owned), &[]).await;
    enqueue_nonsense(&place).await;
    let dsn = format!("http://key@{}/1", site.address());
    let _worker = start(&place, &world, &["worker"], &[("SENTRY_DSN", &dsn)]);
    let heard = until("three events", async || {
        let told = told.lock().unwrap().clone();
        Ok((told.len() == 3).then_some(told))
    })
    .await
    .unwrap();

    // The envelope around an event names the Sentry it is for.
    let event = |envelope: &String| {
        let line = envelope.lines().find(|line| line.contains("\"exception\"")).expect("an event");
        for secret in ["s3cr3t", "token", "lovelace", "mail.example"] {
            assert!(!line.contains(secret), "{secret} in {line}");
        }
        serde_json::from_str::<Value>(line).unwrap()
    };
    let mut events: Vec<Value> = heard.iter().map(event).collect();
    let sort = |event: &Value| event["exception"]["values"][0]["type"].as_str().unwrap().to_owned();
    events.sort_by_key(sort);
    assert_eq!(events.iter().map(sort).collect::<Vec<_>>(), ["CAPTCHA", "ROBOTS_REFUSED", "permanent"]);
    for event in &events[..2] {
        assert_eq!((&event["tags"]["job.kind"], &event["tags"]["outcome"]), (&"link.enrich".into(), &"dead".into()));
        let crumbs = event["breadcrumbs"]["values"].as_array().unwrap();
        let is_dead = |crumb: &&Value| crumb["message"].as_str().is_some_and(|it| it.starts_with("link.enrich dead"));
        assert!(crumbs.iter().any(|crumb| is_dead(&crumb)), "{crumbs:?}");
    }
    let said = events[2]["exception"]["values"][0]["value"].as_str().unwrap();
    assert!(said.contains("http://a..example/reset?[query]"), "scrubbed, and not merely silent: {said}");
    let dead = JobFilter { state: Some(JobState::Dead), ..JobFilter::default() };
    assert_eq!(place.client().store().list_jobs(&dead).await.unwrap().len(), 2);
}
