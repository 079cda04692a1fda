//! The program as people call it.

use std::path::PathBuf;
use std::time::Duration;

use kit::testing::{Place, Process};
use kit::until;
use links::world::World;
use tenure::{How, JobFilter};

use crate::bed::export;
use crate::processes::start;

kit::on_each_store_for_processes! { links::TABLES;
    the_commands_import_and_report,
    only_a_worker_says_what_all_workers_share,
}

/// A file that is gone with its value.
struct File(PathBuf);

impl File {
    fn with(place: &Place, name: &str, urls: &[&str]) -> Self {
        let name = format!("links-{}-{}-{name}.html", std::process::id(), place.database.is_postgres());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, export(urls)).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean.
        let _left_behind = std::fs::remove_file(&self.0);
    }
}

/// Runs a command to its end, which is this.
async fn end(mut process: Process, is_well: bool) -> Process {
    assert_eq!(process.ended().await.success(), is_well, "{:?}", process.said());
    process
}

/// Shows: S1.02
async fn the_commands_import_and_report(place: Place) {
    let world = World::open().await.unwrap();
    let file = File::with(&place, "three", &["http://a.example/", "http://captcha.example/", "http://once.example/"]);
    let _worker = start(&place, &world, &["worker"], &[]);
    let import = ["import", file.path(), "--user", "ada", "--wait"];
    let waited = end(start(&place, &world, &import, &[("LINKS_RETRY_SECONDS", "1")]), true).await;
    waited.until_said(&["3 links, 0 skipped, 0 unreadable"]).await;
    waited.until_said(&["waiting for its links", "tried again after 1 s"]).await;
    waited.until_said(&["succeeded: 3 of 3 links, 1 failed"]).await;
    assert_eq!(world.pages().of("http://once.example/").calls, 2, "one was tried again");
    let report = end(start(&place, &world, &["report", "--days", "1"], &[]), true).await;
    report.until_said(&["captcha.example", "captcha", "1"]).await;

    for (arguments, env, error) in [
        (["import", "no-such-file", "--user", "ada"].as_slice(), ("X", ""), "error: no-such-file: "),
        (&["import", env!("CARGO_MANIFEST_PATH"), "--user", "ada"], ("X", ""), "error: file `[package]"),
        (&["worker"], ("LINKS_CONCURRENCY", "0"), "error: LINKS_CONCURRENCY=`0` is refused: "),
        (&["serve", "--listen", "0.0.0.0:0"], ("X", ""), "error: listen on 0.0.0.0:0 is refused: "),
    ] {
        end(start(&place, &world, arguments, &[env]), false).await.until_logged(&[error]).await;
    }
    for job in place.client().store().list_jobs(&JobFilter::default()).await.unwrap() {
        let attempts = place.client().show(job.id).await.unwrap().attempts;
        assert!(attempts.iter().all(|attempt| attempt.how != How::Lost));
    }
}

/// Shows: S1.44
async fn only_a_worker_says_what_all_workers_share(place: Place) {
    let world = World::open().await.unwrap();
    let store = place.client();
    let shared = async || {
        let queues = store.store().list_queues().await?;
        let lease = queues.iter().find(|queue| queue.name.as_str() == "links").map(|queue| queue.lease_ttl);
        let rules = store.store().list_rules(10).await?;
        Ok((lease, rules.first().and_then(|(_, rule)| rule.concurrency)))
    };
    let wanted = (Some(Duration::from_secs(77)), Some(3));
    let _worker = start(&place, &world, &["worker"], &[("LINKS_LEASE_SECONDS", "77"), ("LINKS_PER_DOMAIN", "3")]);
    until("a worker's word", async || Ok((shared().await? == wanted).then_some(()))).await.unwrap();

    let file = File::with(&place, "one", &["http://a.example/"]);
    end(start(&place, &world, &["import", file.path(), "--user", "ada"], &[]), true).await;
    let mut serving = start(&place, &world, &["serve", "--listen", "127.0.0.1:0"], &[]);
    serving.until_said(&["listening on http://127.0.0.1:"]).await;
    serving.terminate();
    assert!(serving.ended().await.success(), "it stops when it is told to");
    let seen: Result<_, kit::BoxError> = shared().await;
    assert_eq!(seen.unwrap(), wanted);
}
