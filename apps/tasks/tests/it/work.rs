//! What tasks do, what they use, and how they end.

use std::sync::Arc;
use std::time::Duration;

use kit::testing::Place;
use serde_json::{Value, json};
use tasks::report::{Sum, Sums, sums};
use tasks::settings::this_machine;
use tasks::task::{Fetch, Status};
use tasks::usage::Usage;
use tasks::world::Library;
use tenure::store::operate::{PauseQueue, Word};
use tenure::webhooks::Cidr;
use tenure::{JobId, QueueName, StoreError, row};

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    a_document_is_kept_with_its_result_and_what_it_used,
    a_digest_is_made_of_what_was_fetched,
    a_report_adds_up_what_the_library_sums_of_every_kind,
    an_error_is_recorded_and_final,
    who_is_done_is_never_picked_up_again,
    an_error_is_revived_by_hand_alone,
    only_what_matches_is_picked_up,
    this_machine_is_called_only_where_that_is_allowed,
}

/// Shows: S3.10 S3.11 S3.12
async fn a_document_is_kept_with_its_result_and_what_it_used(place: Place) {
    let scene = Scene::new(place).await;
    let (task, text) = (scene.fetch("words-600").await, Library::words(600));
    let summary = scene.run().await;
    assert_eq!((summary.claimed, summary.succeeded), (1, 1));
    let bytes = text.len() as u64;
    let documents = scene.place.database.query("select url, body from task_document", row![]).await.unwrap();
    assert_eq!(documents[0].get::<Vec<u8>>("body").unwrap(), text.into_bytes());
    let results = scene.place.database.query("select * from task_result", row![]).await.unwrap();
    let [result] = results.try_into().unwrap();
    assert_eq!(result.get::<String>("job").unwrap(), task.to_string());
    assert_eq!(result.get::<String>("kind").unwrap(), "task.fetch");
    assert_eq!(result.get::<i64>("attempt").unwrap(), 1);
    let record = scene.show(task).await;
    assert_eq!(Status::from(record.summary.state), Status::Done);
    assert_eq!(result.get::<i64>("fence").unwrap(), record.attempts[0].lease.0);
    assert_eq!(kept(&scene, task).await["bytes"], json!(bytes));
    let used = used(&scene, task).await;
    assert_eq!((used.bytes, used.units), (bytes, bytes.div_ceil(1_024)));
}

/// Shows: S3.10 S3.12
async fn a_digest_is_made_of_what_was_fetched(place: Place) {
    let scene = Scene::new(place).await;
    scene.world.library.put("short", "one two\nthree ");
    scene.fetch("short").await;
    scene.run().await;
    let task = scene.digest("short").await;
    scene.run().await;
    let kept = kept(&scene, task).await;
    let hash = "6757c04585ba1c5f3ffb3f3ba17d2480de5f1d43af3e3a777deb76f588787864";
    assert_eq!((&kept["words"], &kept["sha256"]), (&json!(3), &json!(hash)));
    let used = used(&scene, task).await;
    assert_eq!((used.bytes, used.units), (14, 1));
    assert_eq!(scene.world.library.traffic().of("short").calls, 1, "nobody asks the library again");
}

/// Shows: S3.12
async fn a_report_adds_up_what_the_library_sums_of_every_kind(place: Place) {
    let scene = Scene::new(place).await;
    for name in ["words-10", "words-200"] {
        scene.fetch(name).await;
    }
    scene.digest("words-200").await;
    scene.fetch("missing").await;
    scene.run().await;
    let task = scene.report().await;
    scene.run().await;
    let said: Sums = serde_json::from_value(kept(&scene, task).await).unwrap();
    let [small, large] = [10, 200].map(|words| Library::words(words).len() as u64);
    let of = |sum: Sum| (sum.tasks, sum.usage.bytes, sum.usage.units);
    assert_eq!(of(said["task.fetch"]), (2, small + large, 1 + large.div_ceil(1_024)), "an error uses nothing");
    assert_eq!(of(said["task.digest"]), (1, large, 2));
    assert_eq!(said.len(), 2);
    let used = used(&scene, task).await;
    assert_eq!((used.bytes, used.units), (0, 3), "one for each task");

    // The next day it is a line of its own, and a month later it is no news.
    scene.place.advance(Duration::from_secs(86_400));
    scene.fetch("words-10").await;
    scene.run().await;
    let store = Arc::clone(scene.client().store());
    let sums_now = sums(&*store).await.unwrap();
    assert_eq!((of(sums_now["task.fetch"]).0, of(sums_now["task.report"])), (3, (1, 0, 3)));
    scene.place.advance(Duration::from_secs(30 * 86_400));
    assert_eq!(of(sums(&*store).await.unwrap()["task.fetch"]), (1, small, 1));
}

/// Whatever it is, also what others would try again.
///
/// Shows: S3.14 S3.15 S3.39
async fn an_error_is_recorded_and_final(place: Place) {
    let scene = Scene::new(place).await;
    let mut tasks: Vec<(JobId, &str)> = Vec::new();
    for (status, code) in [(404, "http_404"), (429, "http_429"), (500, "http_500"), (503, "http_503")] {
        let name = format!("bad-{status}");
        scene.world.library.fail(&name, status);
        tasks.push((scene.fetch(&name).await, code));
    }
    tasks.push((scene.digest("words-7").await, "NOT_FETCHED"));
    let nobody = Fetch { url: "http://127.0.0.1:1/".into() };
    tasks.push((scene.client().enqueue(nobody).await.unwrap().job(), "connection"));
    assert_eq!(scene.run().await.failed, tasks.len() as u64);
    for (task, code) in &tasks {
        let record = scene.show(*task).await;
        assert_eq!((record.summary.state.as_str(), record.attempts.len()), ("failed", 1), "{code}");
        let error: Value = serde_json::from_str(record.summary.error.unwrap().as_str()).unwrap();
        assert_eq!((&error["code"], &error["class"]), (&json!(code), &json!("permanent")), "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    scene.place.advance(Duration::from_secs(86_400));
    assert_eq!(scene.run().await.claimed, 0, "nothing is tried again");
    assert_eq!(scene.place.count("select count(*) as n from task_result").await, 0);
}

/// Shows: S3.38
async fn who_is_done_is_never_picked_up_again(place: Place) {
    let scene = Scene::new(place).await;
    let task = scene.fetch("words-7").await;
    scene.run().await;
    scene.place.advance(Duration::from_secs(86_400));
    assert_eq!(scene.run().await.claimed, 0);
    let revived = scene.client().requeue(task).await;
    assert!(matches!(revived, Err(StoreError::Conflict(_))), "{revived:?}");
    assert_eq!((scene.status(task).await, scene.world.library.traffic().of("words-7").calls), (Status::Done, 1));
}

/// Shows: S3.40
async fn an_error_is_revived_by_hand_alone(place: Place) {
    let scene = Scene::new(place).await;
    let task = scene.fetch("later").await;
    scene.run().await;
    assert_eq!(scene.status(task).await, Status::Error);
    scene.world.library.put("later", "here it is");
    assert_eq!(scene.run().await.claimed, 0);
    scene.client().requeue(task).await.unwrap();
    assert_eq!((scene.status(task).await, scene.run().await.succeeded), (Status::Pending, 1));
    let record = scene.show(task).await;
    assert_eq!((Status::from(record.summary.state), record.attempts.len()), (Status::Done, 2));
}

/// Shows: S3.06
async fn only_what_matches_is_picked_up(place: Place) {
    let scene = Scene::new(place).await;
    let client = scene.client();
    let fetch = |name: &str| Fetch { url: scene.world.document(name) };
    let later = client.enqueue(fetch("later")).delay(Duration::from_secs(60)).await.unwrap().job();
    let elsewhere = client.enqueue(fetch("elsewhere")).queue("others").await.unwrap().job();
    let here = client.enqueue(fetch("words-7")).await.unwrap().job();
    let pause = |paused| {
        let request = PauseQueue { queue: QueueName::new("tasks").unwrap(), paused, word: Word::default() };
        let store = Arc::clone(client.store());
        async move { store.pause_queue(request).await.unwrap() }
    };
    pause(true).await;
    assert_eq!(scene.run().await.claimed, 0, "nothing of a paused queue");
    pause(false).await;
    assert_eq!(scene.run().await.claimed, 1, "what is due here");
    for (task, status) in [(later, Status::Pending), (elsewhere, Status::Pending), (here, Status::Done)] {
        assert_eq!(scene.status(task).await, status);
    }
    scene.place.advance(Duration::from_secs(60));
    assert_eq!(scene.run().await.claimed, 1, "what has become due");
    assert_eq!(scene.status(elsewhere).await, Status::Pending);
}

/// Whether it stands in the URL itself or behind a name.
async fn this_machine_is_called_only_where_that_is_allowed(place: Place) {
    let mut scene = Scene::new(place).await;
    let here = scene.world.document("words-7");
    let by_name = here.replace("127.0.0.1", "localhost");
    let elsewhere: Vec<Cidr> = vec!["10.0.0.0/8".parse().unwrap()];
    for (url, allow, refusal) in [
        (here.as_str(), Vec::new(), "endpoints are called by https"),
        ("https://127.0.0.1/", Vec::new(), "it is loopback"),
        ("https://localhost/", Vec::new(), "a name inside of a network"),
        (&here, elsewhere.clone(), "it is loopback"),
        // Nothing is wrong with the name, which is only known where it is resolved.
        (&by_name, elsewhere, "it is loopback"),
    ] {
        scene.settings.allow = allow;
        let task = scene.client().enqueue(Fetch { url: url.into() }).await.unwrap().job();
        assert_eq!(scene.run().await.failed, 1);
        let error = scene.show(task).await.summary.error.unwrap();
        assert!(error.as_str().contains(refusal) && error.as_str().contains("permanent"), "{url}: {error:?}");
    }
    assert_eq!(scene.world.library.traffic().calls(), 0);
    scene.settings.allow = this_machine().unwrap();
    scene.client().enqueue(Fetch { url: by_name }).await.unwrap();
    assert_eq!(scene.run().await.succeeded, 1);
}

/// What the library knows that a task used.
async fn used(scene: &Scene, task: JobId) -> Usage {
    let record = scene.show(task).await;
    serde_json::from_str(record.attempts.last().unwrap().usage.as_ref().unwrap().as_str()).unwrap()
}

async fn kept(scene: &Scene, task: JobId) -> Value {
    let record = scene.show(task).await;
    serde_json::from_str(record.attempts.last().unwrap().result.as_ref().unwrap().as_str()).unwrap()
}
