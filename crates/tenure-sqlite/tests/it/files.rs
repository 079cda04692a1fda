//! What a file keeps, and who else may use it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_core::State;
use tenure_core::name::WorkerName;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{AdminStore, JobStore, LeaseStore, audit};

use crate::fixture::{Fixture, error, failed, options, succeeded};

#[tokio::test]
async fn a_reopened_file_keeps_everything() {
    let mut fixture = Fixture::file().await;
    let jobs = fixture.enqueue(4).await;
    let claimed = fixture.claim(3).await.unwrap();
    fixture.end(claimed.lease, jobs[0], succeeded()).await;
    fixture.end(claimed.lease, jobs[1], Ending::Retry { delay: Duration::from_secs(9), error: error() }).await;
    let mut before = Vec::new();
    for job in &jobs {
        before.push(fixture.store.show_job(&Sight::All, *job).await.unwrap());
    }

    fixture.store = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    for (job, before) in jobs.iter().zip(before) {
        assert_eq!(fixture.store.show_job(&Sight::All, *job).await.unwrap(), before);
    }
    assert_eq!(fixture.end(claimed.lease, jobs[2], succeeded()).await, Ended::Now(tenure_core::How::Succeeded));
    let report = audit::verify(&fixture.store, None, |_| ()).await.unwrap();
    assert_eq!((report.findings.len(), report.tail), (0, 4));
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_lease_number_never_repeats() {
    let mut fixture = Fixture::file().await;
    let mut last = 0;
    for _ in 0..3 {
        let jobs = fixture.enqueue(1).await;
        let claimed = fixture.claim(1).await.unwrap();
        assert!(claimed.lease.0 > last, "{} after {last}", claimed.lease);
        last = claimed.lease.0;
        // The only lease there is goes, and with it the largest number in the table.
        assert_eq!(fixture.end(claimed.lease, jobs[0], failed()).await, Ended::Now(tenure_core::How::Failed));
        assert_eq!(fixture.store.drop_leases(fixture.worker, vec![claimed.lease]).await.unwrap(), [claimed.lease]);
        fixture.store = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    }
}

#[tokio::test]
async fn two_stores_on_one_file_hand_each_job_out_once() {
    let fixture = Fixture::file().await;
    let other = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    let second = other.register_worker(&WorkerName::new("w2").unwrap()).await.unwrap();
    fixture.enqueue(300).await;
    let drain = |store: SqliteStore, worker| async move {
        let mut mine = Vec::new();
        let queue = tenure_core::QueueName::default();
        while let Some(claimed) = store.claim_jobs(ClaimJobs::new(worker, queue.clone(), 7)).await.unwrap() {
            mine.extend(claimed.jobs.into_iter().map(|job| job.id));
        }
        mine
    };
    let (mut a, b) = tokio::join!(drain(fixture.store.clone(), fixture.worker), drain(other.clone(), second));
    a.extend(b);
    a.sort_unstable();
    a.dedup();
    assert_eq!(a.len(), 300);
    fixture.assert_sound().await;
    let filter = JobFilter { state: Some(State::Running), limit: 1_000, ..JobFilter::default() };
    assert_eq!(other.list_jobs(&filter).await.unwrap().len(), 300);
}

/// Where the other process of the test below writes; unset in every other run.
const OTHER_PROCESS: &str = "TENURE_TEST_OTHER_PROCESS";

#[tokio::test]
async fn a_process_killed_while_it_writes_leaves_a_sound_file() {
    let fixture = Fixture::file().await;
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::other_process", "--nocapture"])
        .env(OTHER_PROCESS, fixture.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("ten rounds")), "the other process works");
    // Both write until one is killed in the middle of whatever it does.
    fixture.enqueue(5).await;
    other.kill().unwrap();
    other.wait().unwrap();

    fixture.assert_sound().await;
    let report = audit::verify(&fixture.store, None, |_| ()).await.unwrap();
    assert_eq!(report.findings, []);
    assert!(report.tail >= 20, "{report:?}");
    fixture.clock.advance(Duration::from_secs(86_400 * 30 * 365));
    fixture.store.reclaim_jobs(None, 100).await.unwrap();
    fixture.assert_sound().await;
}

/// Not a test of its own: what the killed process does.
#[tokio::test]
async fn other_process() {
    let Some(path) = std::env::var_os(OTHER_PROCESS) else { return };
    let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
    let worker = store.register_worker(&WorkerName::new("other").unwrap()).await.unwrap();
    for round in 0_u32.. {
        let now = tenure_core::Timestamp::EPOCH.plus(std::time::UNIX_EPOCH.elapsed().unwrap());
        store.enqueue_jobs((0..20).map(|_| crate::fixture::new_job(now)).collect()).await.unwrap();
        let request = ClaimJobs::new(worker, tenure_core::QueueName::default(), 15);
        let claimed = store.claim_jobs(request).await.unwrap().unwrap();
        let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, succeeded())).collect();
        store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.unwrap();
        if round == 10 {
            println!("ten rounds");
        }
    }
}
