//! What workers did, as an operator sees it: another process works on the same file.

use std::time::Duration;

use serde_json::json;
use tenure_core::name::{KindName, QueueName, WorkerName};
use tenure_core::{JobId, Json, NewJob, Timestamp, WorkerId};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};
use tenure_store::{AdminStore, JobStore, LeaseStore};

use crate::place::Place;

/// A worker on the place's file whose clock is ten minutes behind: what it holds has been silent for that long.
struct Bench {
    store: SqliteStore,
    clock: ManualClock,
    worker: WorkerId,
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

impl Bench {
    fn new(place: &Place) -> Self {
        place.write("tenure.toml", "database = \"jobs.db\"");
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let clock = ManualClock::new(Timestamp::EPOCH.plus(since).minus(Duration::from_secs(600)));
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = SqliteStore::open(place.path("jobs.db"), options).unwrap();
        let worker = wait(async {
            store.migrate().await.unwrap();
            store.register_worker(&WorkerName::new("ops").unwrap()).await.unwrap()
        });
        Self { store, clock, worker }
    }

    fn enqueue(&self, n: u8) -> JobId {
        let id = JobId::from_parts(self.clock.now(), [n; 10]);
        let job = NewJob::new(id, KindName::new("mail.send").unwrap(), Json::null());
        wait(self.store.enqueue_jobs(vec![job])).unwrap();
        id
    }

    fn claim(&self) -> Claimed {
        let request = ClaimJobs::new(self.worker, QueueName::default(), 10);
        wait(self.store.claim_jobs(request)).unwrap().expect("a job is due")
    }

    fn end(&self, claimed: &Claimed, job: JobId, ending: Ending) -> Ended {
        let report = EndJobs { worker: self.worker, lease: claimed.lease, jobs: vec![EndJob { job, ending }] };
        wait(self.store.end_jobs(report)).unwrap()[0]
    }
}

fn error(text: &str) -> Json {
    Json::parse("error", json!({ "message": text }).to_string()).unwrap()
}

#[test]
fn a_silent_worker_is_seen_asked_and_fenced() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let id = bench.enqueue(1);
    let claimed = bench.claim();
    let shown_id = id.to_string();
    for args in [&["--stuck=5m"][..], &["--state=running"]] {
        let jobs = place.json(&[&["jobs", "list"], args].concat());
        assert_eq!((&jobs[0]["id"], &jobs[0]["locked_by"]), (&json!(shown_id), &json!("ops")), "{args:?}: {jobs}");
    }
    assert_eq!(place.json(&["jobs", "list", "--stuck=1h"]), json!([]));
    assert!(place.run(&["jobs", "list"]).out.contains("held by ops"));
    assert!(place.run(&["jobs", "show", &shown_id]).out.contains("running, try 1"));

    assert_eq!(place.json(&["jobs", "cancel", &shown_id])["canceled"], "requested");
    assert_eq!(place.json(&["jobs", "show", &shown_id])["cancel_requested"], true);
    assert_eq!(place.json(&["jobs", "cancel", &shown_id, "--force"])["canceled"], "now");
    let answer = bench.end(&claimed, id, Ending::Succeeded { result: None, usage: None });
    assert!(matches!(answer, Ended::LeaseLost { .. }), "{answer:?}");
    assert_eq!(place.json(&["jobs", "show", &shown_id])["state"], "canceled");
    let audit = place.json(&["audit", "verify", "--seal"]);
    assert_eq!(audit["verified"], true, "{audit}");
}

#[test]
fn dead_letters_are_listed_shown_and_requeued() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let (id, other) = (bench.enqueue(1), bench.enqueue(2));
    let claimed = bench.claim();
    let retry = Ending::Retry { delay: Duration::from_secs(10), error: error("connection refused") };
    bench.end(&claimed, id, retry);
    bench.end(&claimed, other, Ending::Succeeded { result: Some(error("sent")), usage: None });
    bench.clock.advance(Duration::from_secs(11));
    let claimed = bench.claim();
    // An error text is somebody else's: it must not steer the terminal.
    bench.end(&claimed, id, Ending::Dead { error: error("no such host \u{1b}[2J\nsecond line") });

    let shown_id = id.to_string();
    let dead = place.json(&["jobs", "list", "--state=dead"]);
    assert_eq!((&dead[0]["id"], dead.as_array().unwrap().len()), (&json!(shown_id), 1));
    let shown = place.run(&["jobs", "show", &shown_id]).out;
    for part in ["try 1: retry", "connection refused", "try 2: dead", "no such host \\u{1b}[2J\\nsecond line", "ops"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let listed = place.run(&["jobs", "list"]).out;
    assert!(listed.lines().count() == 3 && !listed.contains('\x1b'), "{listed}");
    assert!(place.run(&["jobs", "show", &other.to_string()]).out.contains("Result\n"));

    assert_eq!(place.json(&["jobs", "requeue", "--state=dead", "--queue=default"])["requeued"], 1);
    let job = place.json(&["jobs", "show", &shown_id]);
    assert_eq!(
        (&job["state"], &job["attempt"], job["attempts"].as_array().unwrap().len()),
        (&json!("queued"), &json!(0), 2)
    );
    let refused = place.run(&["jobs", "requeue", &other.to_string()]);
    assert_eq!(refused.code, 1, "a job that succeeded is not run again: {refused:?}");
    assert_eq!(place.json(&["audit", "verify", "--seal"])["verified"], true);
}
