//! A waker beside the store: it is told of new jobs, it wakes claims that wait, and it may be required.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_server::Options;
use tenure_store::Waker;
use tenure_store::waker::ManualWaker;
use tokio::task::JoinSet;

use crate::http::text;
use crate::place::{self, Place};

/// A server that nothing but the waker wakes: time stands still here, and it does not poll.
async fn place_with(waker: &ManualWaker, required: bool) -> Place {
    let waker: Arc<dyn Waker> = Arc::new(waker.clone());
    let poll_every = Duration::from_secs(86_400);
    Place::sqlite_with(Options { waker: Some(waker), waker_required: required, poll_every, ..place::options() }).await
}

fn published(waker: &ManualWaker) -> Vec<String> {
    waker.published().iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_jobs_are_published_once_they_are_stored() {
    let waker = ManualWaker::default();
    let place = place_with(&waker, false).await;
    let mut told = vec![place.enqueue(json!({ "kind": "a", "unique": "one" })).await];
    let again = place.root.post("/v1/jobs", json!({ "kind": "a", "unique": "one" })).await.ok(200);
    assert_eq!(again["id"], told[0]);
    assert_eq!(published(&waker), told, "what was there before is no news");
    assert_eq!(place.root.post("/v1/jobs", json!({ "kind": "a", "priority": 9 })).await.code(422), "invalid");
    let batch = json!({ "jobs": [{ "kind": "b" }, { "kind": "a", "unique": "one" }, { "kind": "b" }] });
    let stored = place.root.post("/v1/jobs/batch", batch).await.ok(200);
    told.extend([0, 2].map(|at| text(&stored["jobs"][at]["id"]).to_owned()));
    assert_eq!(published(&waker), told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_runs_and_revived_jobs_are_published() {
    let waker = ManualWaker::default();
    let place = place_with(&waker, false).await;
    let page = json!({ "name": "p", "job": { "kind": "page" }, "limit": 10 });
    let run = json!({ "items": [{ "kind": "a" }], "partitions": [page], "sealed": false });
    let run = place.root.post("/v1/runs", run).await.ok(201);
    assert_eq!(waker.published().len(), 2);
    let more = format!("/v1/runs/{}/members", text(&run["id"]));
    place.root.post(&more, json!({ "items": [{ "kind": "a" }] })).await.ok(200);
    assert_eq!(waker.published().len(), 3);
    let id = place.enqueue(json!({ "kind": "a" })).await;
    place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({})).await.ok(200);
    place.root.post(&format!("/v1/jobs/{id}/requeue"), json!({})).await.ok(200);
    assert_eq!(published(&waker)[3..], [id.clone(), id]);
}

/// Time passes without a commit, so the store has nothing to say: the job is found because somebody else spoke.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_is_woken() {
    let waker = ManualWaker::default();
    let place = place_with(&waker, false).await;
    let id = place.enqueue(json!({ "kind": "a", "delay": "60s" })).await;
    let worker = place.worker().await;
    let waiting = tokio::spawn(async move {
        worker.post("/v1/leases", json!({ "queues": ["mail", "default"], "limit": 1, "wait_ms": 30_000 })).await.ok(200)
    });
    let waits = async {
        // One for each of its queues.
        while waker.waiting() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("it waits");
    place.clock.advance(Duration::from_secs(61));
    waker.wake();
    let claimed = waiting.await.expect("an answer");
    assert_eq!(claimed["lease"]["jobs"][0]["id"], json!(id));
    assert!(claimed["waited_ms"].as_u64().is_some_and(|waited| waited < 30_000), "found by the last look: {claimed}");
}

/// Who finds something lets the next one look: one word is enough for all that is due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_word_is_enough_for_all_who_wait() {
    let waker = ManualWaker::default();
    let place = place_with(&waker, false).await;
    let mut waiting = JoinSet::new();
    let mut jobs = HashSet::new();
    for _ in 0..5 {
        jobs.insert(place.enqueue(json!({ "kind": "a", "delay": "60s" })).await);
        let worker = place.worker().await;
        let body = json!({ "queues": ["default"], "limit": 1, "wait_ms": 30_000 });
        waiting.spawn(async move { worker.post("/v1/leases", body).await.ok(200) });
    }
    let waits = async {
        while waker.waiting() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("they wait");
    place.clock.advance(Duration::from_secs(61));
    waker.wake();
    for claimed in waiting.join_all().await {
        assert!(jobs.remove(text(&claimed["lease"]["jobs"][0]["id"])), "{claimed}");
        assert!(claimed["waited_ms"].as_u64().is_some_and(|waited| waited < 30_000), "{claimed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_away_matters_when_it_is_required() {
    async fn ready(place: &Place, status: u16) -> Value {
        place.nobody().get("/v1/health/ready").await.ok(status)
    }
    let waker = ManualWaker::default();
    for (required, status) in [(false, 200), (true, 503)] {
        waker.set_up(false);
        let place = place_with(&waker, required).await;
        let away = ready(&place, status).await;
        assert_eq!(away["checks"][0], json!({ "name": "store", "status": "ok", "required": true }));
        assert_eq!(away["checks"][1], json!({ "name": "broker", "status": "unavailable", "required": required }));
        waker.set_up(true);
        let there = ready(&place, 200).await;
        assert_eq!((&there["status"], &there["checks"][1]["status"]), (&json!("ok"), &json!("ok")));
    }
    let place = Place::sqlite().await;
    let checks = ready(&place, 200).await["checks"].clone();
    assert_eq!(checks, json!([{ "name": "store", "status": "ok", "required": true }]));
    let nobody = Options { waker_required: true, ..place::options() };
    assert!(nobody.check().is_err(), "nobody can be waited for who is not there");
}
