//! A disk that is full. The other process may write files of two megabytes and no larger: its commits fail with an
//! input/output error of the real kind, in the middle of a group.

use std::process::Command;
use std::time::Duration;

use tenure_core::{JobId, Json, NewJob};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{AdminStore, JobStore, JournalStore, StoreError, audit};

use crate::fixture::{Fixture, new_job, options};
use crate::writer::occupy;

/// Where the other process writes; unset in every other run.
const OTHER_PROCESS: &str = "TENURE_TEST_FULL_DISK";
/// Verbs that wait together.
const GROUP: usize = 6;

#[tokio::test]
async fn on_a_full_disk_what_was_answered_is_there_and_the_rest_is_unavailable() {
    let fixture = Fixture::file().await;
    // The signal would end the process before it hears of the error.
    let limited = "ulimit -f 2048 && trap '' XFSZ && exec \"$0\" --exact full_disk::other_process --nocapture";
    let other = Command::new("bash")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env(OTHER_PROCESS, fixture.path())
        .output()
        .unwrap();
    let said = String::from_utf8(other.stdout).unwrap();
    assert!(other.status.success(), "{said}\n{}", String::from_utf8_lossy(&other.stderr));
    let told = |word: &str| -> Vec<JobId> {
        said.lines().filter_map(|line| line.strip_prefix(word)).map(|id| id.parse().unwrap()).collect()
    };
    let (kept, unknown) = (told("kept "), told("unknown "));
    println!("{} kept, {} unknown", kept.len(), unknown.len());
    assert!(kept.len() > GROUP && unknown.len() >= GROUP);

    for job in &kept {
        fixture.store.show_job(&Sight::All, *job).await.unwrap();
    }
    let mut stored = 0;
    for job in &unknown {
        stored += usize::from(fixture.store.show_job(&Sight::All, *job).await.is_ok());
    }
    assert_eq!(stored, 0, "nothing half-way was kept");
    fixture.assert_sound().await;
    fixture.enqueue(1).await;
    assert_eq!(audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings, []);
}

/// Not a test of its own: what the process without space does.
#[tokio::test]
async fn other_process() {
    let Some(path) = std::env::var_os(OTHER_PROCESS) else { return };
    let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
    let mut failures = 0;
    // After the first failure a few more: the store neither hangs nor panics.
    while failures < 5 {
        let (jobs, mut tasks) = (large_jobs(), Vec::new());
        for job in &jobs {
            let (store, job) = (store.clone(), job.clone());
            tasks.push(tokio::spawn(async move { store.enqueue_jobs(vec![job]).await }));
        }
        let mut failed = false;
        for (job, task) in jobs.iter().zip(tasks) {
            match task.await.unwrap() {
                Ok(_) => println!("kept {}", job.id),
                Err(StoreError::Unavailable(..)) => {
                    failed = true;
                    println!("unknown {}", job.id);
                }
                Err(other) => panic!("{other}"),
            }
        }
        failures += u32::from(failed);
    }
    assert!(!store.list_jobs(&JobFilter::default()).await.unwrap().is_empty(), "reads go on");
    assert_eq!(store.find_violations(10).await.unwrap(), []);
}

fn large_jobs() -> Vec<NewJob> {
    let now = tenure_core::Timestamp::EPOCH.plus(std::time::UNIX_EPOCH.elapsed().unwrap());
    let payload = Json::parse("payload", format!("\"{}\"", "x".repeat(20_000))).unwrap();
    (0..GROUP).map(|_| NewJob { payload: payload.clone(), ..new_job(now) }).collect()
}

/// The other way to be full: the file may not grow, and one statement of a group is refused.
#[tokio::test]
async fn a_file_that_may_not_grow_refuses_what_does_not_fit() {
    let fixture = Fixture::file().await;
    let limit = |pages: Option<i64>| {
        fixture.store.transaction(move |tx| {
            let full: i64 = tx.connection().query_row("pragma page_count", [], |row| row.get(0)).unwrap();
            let pages = pages.unwrap_or(full);
            tx.connection().pragma_update(None, "max_page_count", pages).map_err(StoreError::unavailable)
        })
    };
    limit(None).await.unwrap();
    let (large, small) = (large_jobs_at(&fixture), new_job(fixture.clock.now()));
    let (ids, small_id) = (large.iter().map(|job| job.id).collect::<Vec<_>>(), small.id);
    let (store, (free, occupied)) = (&fixture.store, occupy(&fixture));
    tokio::task::yield_now().await;
    let group = async { tokio::join!(store.enqueue_jobs(vec![small]), store.enqueue_jobs(large.clone())) };
    let free_later = async {
        tokio::task::yield_now().await;
        drop(free);
    };
    let ((small, refused), ()) = tokio::join!(group, free_later);
    occupied.await.unwrap();
    assert!(refused.is_err_and(|error| error.is_passing()));
    for id in ids {
        assert!(matches!(store.show_job(&Sight::All, id).await, Err(StoreError::NotFound(_))));
    }
    // Its neighbour is there if and only if it was told so.
    assert_eq!(store.show_job(&Sight::All, small_id).await.is_ok(), small.is_ok(), "{small:?}");
    limit(Some(1_000_000)).await.unwrap();
    store.enqueue_jobs(large).await.unwrap();
    fixture.assert_sound().await;
    store.seal_journal().await.unwrap();
}

fn large_jobs_at(fixture: &Fixture) -> Vec<NewJob> {
    large_jobs().into_iter().map(|job| NewJob { id: new_job(fixture.clock.now()).id, ..job }).collect()
}

/// A lock that another process never gives back is not a full disk, but the answer is the same: no hang.
#[tokio::test]
async fn a_group_that_finds_no_lock_is_unavailable_as_a_whole() {
    let fixture = Fixture::file().await;
    let short = SqliteOptions { busy_timeout: Duration::from_millis(20), ..options(&fixture.clock) };
    let store = SqliteStore::open(fixture.path(), short).unwrap();
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let jobs = [(); 3].map(|()| vec![new_job(fixture.clock.now())]);
    let [a, b, c] = jobs.map(|jobs| store.enqueue_jobs(jobs));
    let (a, b, c) = tokio::join!(a, b, c);
    for answer in [a, b, c] {
        assert!(answer.is_err_and(|error| error.is_passing()));
    }
    other.execute_batch("rollback").unwrap();
    assert!(fixture.claim(3).await.is_none());
}
