//! What a watch tells: each change once, also one that shows up late.

use std::sync::mpsc;

use kit::testing::Place;
use tasks::task::Report;
use tasks::watch::Watch;
use tenure::{StoreError, row};
use tokio::sync::Mutex;

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    a_watch_shows_what_is_new,
}

/// Shows: S3.01
async fn a_watch_shows_what_is_new(place: Place) {
    let scene = Scene::new(place).await;
    let mut watch = Watch::new(scene.client());
    assert_eq!(watch.look().await.unwrap(), [""; 0]);
    let held = scene.world.library.hold("words-7");
    let task = scene.fetch("words-7").await;
    let worker = scene.start("seen");
    scene.until_asked("words-7", 1).await;
    let (id, mut lines) = (task.to_string(), Vec::new());
    look_for(&mut watch, &mut lines, &[&id, "task.fetch claimed by seen, fence 1"]).await;
    look_for(&mut watch, &mut lines, &["seen", "Polling", "1 running"]).await;
    held.open();
    look_for(&mut watch, &mut lines, &[&id, "task.fetch succeeded by seen"]).await;
    worker.stop().await.unwrap();
    look_for(&mut watch, &mut lines, &["seen", "stopped", "0 running"]).await;
    let claims = lines.iter().filter(|line| line.contains("claimed by")).count();
    assert_eq!(claims, 1, "each change is told once: {lines:#?}");
}

/// Looks until a line with all of these words has come.
async fn look_for(watch: &mut Watch, lines: &mut Vec<String>, words: &[&str]) {
    let (watch, lines) = (Mutex::new(watch), Mutex::new(lines));
    let look = async || {
        let (mut watch, mut lines) = (watch.lock().await, lines.lock().await);
        lines.extend(watch.look().await?);
        let is_it = |line: &String| words.iter().all(|word| line.contains(word));
        Ok(lines.iter().any(is_it).then_some(()))
    };
    kit::until(&format!("a line with {words:?}"), look).await.unwrap();
}

/// On Postgres rows have their numbers before they are committed: the first of two is committed last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_committed_late_is_told_all_the_same() {
    let scene = Scene::new(Place::postgres(tasks::TABLES).await).await;
    let client = scene.client();
    let late = client.enqueue(Report {}).await.unwrap().job();
    let soon = client.enqueue(Report {}).await.unwrap().job();
    let mut watch = Watch::new(client.clone());
    assert_eq!(watch.look().await.unwrap(), [""; 0]);
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (commit, committed) = mpsc::channel::<()>();
    let database = scene.place.database.clone();
    let slow = tokio::spawn(async move {
        let work = database.transaction(move |tx| {
            tx.execute(BEGUN, row![late, tx.now()?])?;
            begun.send(()).unwrap();
            committed.recv().unwrap();
            Ok::<_, StoreError>(())
        });
        work.await.unwrap();
    });
    has_begun.await.unwrap();
    client.cancel(soon).await.unwrap();
    let told = watch.look().await.unwrap();
    assert!(told.len() == 1 && told[0].contains(&soon.to_string()), "{told:?}");
    commit.send(()).unwrap();
    slow.await.unwrap();
    let told = watch.look().await.unwrap();
    assert!(told.len() == 1 && told[0].contains(&late.to_string()), "{told:?}");
    assert_eq!(watch.look().await.unwrap(), [""; 0]);
}

/// A row that says of a task that it was released.
const BEGUN: &str = "insert into tenure.journal (at, era, event, jobs)
    values ($2, 1, 2, array[cast($1 as text)::uuid])";
