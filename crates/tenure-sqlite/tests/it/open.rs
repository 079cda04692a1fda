//! Opening, migrating, and what is refused before.

use std::time::Duration;

use tenure_core::name::QueueName;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::ManualClock;
use tenure_store::operate::SetQueue;
use tenure_store::{AdminStore, JobStore, StoreError};

use crate::fixture::{Directory, Fixture, NOW, new_job, options};

#[tokio::test]
async fn verbs_before_the_migration_say_what_to_run() {
    let directory = Directory::new();
    let clock = ManualClock::new(NOW);
    for store in [SqliteStore::in_memory(options(&clock)), SqliteStore::open(directory.file(), options(&clock))] {
        let store = store.unwrap();
        let write = store.enqueue_jobs(vec![new_job(NOW)]).await.unwrap_err();
        let read = store.list_queues().await.unwrap_err();
        for refused in [write, read] {
            let StoreError::Schema(text) = refused else { panic!("{refused}") };
            assert!(text.contains("run `tenure migrate`"), "{text}");
        }
        assert!(store.list_migrations().await.unwrap().iter().all(|step| !step.applied));
    }
}

#[tokio::test]
async fn migrating_twice_applies_nothing_twice() {
    let directory = Directory::new();
    let store = SqliteStore::open(directory.file(), SqliteOptions::default()).unwrap();
    let applied = store.migrate().await.unwrap();
    assert!(!applied.is_empty() && applied.iter().all(|step| step.applied));
    assert_eq!(store.migrate().await.unwrap(), []);
    assert_eq!(store.list_migrations().await.unwrap(), applied);
}

#[tokio::test]
async fn stores_that_migrate_at_once_apply_each_step_once() {
    let directory = Directory::new();
    let stores: Vec<SqliteStore> =
        (0..4).map(|_| SqliteStore::open(directory.file(), SqliteOptions::default()).unwrap()).collect();
    let all = tokio::join!(stores[0].migrate(), stores[1].migrate(), stores[2].migrate(), stores[3].migrate());
    let applied: usize = [all.0, all.1, all.2, all.3].into_iter().map(|applied| applied.unwrap().len()).sum();
    assert_eq!(applied, stores[0].list_migrations().await.unwrap().len());
}

#[test]
fn many_may_open_and_migrate_a_new_file_at_once() {
    for _ in 0..10 {
        let directory = Directory::new();
        let (path, start) = (directory.file(), std::sync::Barrier::new(4));
        let open = || {
            start.wait();
            let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(store.migrate()).unwrap().len()
        };
        let applied: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(applied, 11);
    }
}

#[test]
fn a_file_without_a_name_is_refused() {
    for path in ["", ":memory:", "file::memory:", "file:data.db?mode=ro"] {
        assert!(matches!(SqliteStore::open(path, SqliteOptions::default()), Err(StoreError::Invalid(_))), "{path}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let fixture = Fixture::file().await;
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    let step = "insert into migration (version, name, min_binary, applied_at) values (999, 'future', 998, 0)";
    other.execute(step, []).unwrap();
    let store = SqliteStore::open(fixture.path(), SqliteOptions::default()).unwrap();
    for refused in [store.migrate().await.map(drop), store.list_queues().await.map(drop)] {
        let Err(StoreError::Schema(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains("version 999") && text.contains("knows up to 11"), "both versions: {text}");
        assert!(text.contains("newer program"), "{text}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused_by_name() {
    let directory = Directory::new();
    std::fs::create_dir_all(directory.file().parent().unwrap()).unwrap();
    std::fs::write(directory.file(), "this is a letter, not a database".repeat(40)).unwrap();
    let Err(refused) = SqliteStore::open(directory.file(), SqliteOptions::default()) else { panic!("opened a letter") };
    assert!(matches!(refused, StoreError::Corrupt(_)) && refused.to_string().contains("tenure.db"), "{refused}");
}

#[test]
fn a_place_where_nothing_can_be_made_is_unavailable_by_name() {
    let directory = Directory::new();
    std::fs::create_dir_all(directory.file().join("is-a-directory")).unwrap();
    let below_a_file = std::env::current_exe().unwrap().join("tenure.db");
    for path in [directory.file(), below_a_file, "/proc/tenure/tenure.db".into()] {
        let Err(refused) = SqliteStore::open(&path, SqliteOptions::default()) else { panic!("opened {path:?}") };
        assert!(refused.is_passing() && refused.to_string().contains("tenure.db"), "{refused}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_written_is_unavailable_and_still_read() {
    let fixture = Fixture::file().await;
    let job = fixture.enqueue(1).await[0];
    let lock = fixture
        .store
        .transaction(|tx| tx.connection().pragma_update(None, "query_only", true).map_err(StoreError::unavailable));
    lock.await.unwrap();
    let refused = fixture.store.enqueue_jobs(vec![new_job(NOW)]).await.unwrap_err();
    assert!(refused.is_passing(), "{refused}");
    assert_eq!(fixture.state(job).await, tenure_core::State::Queued);
}

#[tokio::test]
async fn who_waits_for_ever_is_given_a_day() {
    let forever = SqliteOptions { busy_timeout: Duration::MAX, ..SqliteOptions::default() };
    let directory = Directory::new();
    for store in [SqliteStore::in_memory(forever.clone()), SqliteStore::open(directory.file(), forever)] {
        store.unwrap().migrate().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_that_stays_is_unavailable_after_the_timeout() {
    let fixture = Fixture::file().await;
    let opts = SqliteOptions { busy_timeout: Duration::from_millis(20), ..SqliteOptions::default() };
    let store = SqliteStore::open(fixture.path(), opts).unwrap();
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let request = SetQueue::new(QueueName::default(), Duration::from_secs(5));
    let busy = store.set_queue(request.clone()).await.unwrap_err();
    assert!(busy.is_passing(), "{busy}");
    assert!(store.list_queues().await.unwrap().is_empty(), "reads go on");
    other.execute_batch("rollback").unwrap();
    store.set_queue(request).await.unwrap();
}

/// Payloads may hold anything: other users of the machine cannot read a database that the store makes.
#[cfg(unix)]
#[tokio::test]
async fn a_new_database_is_read_by_its_owner_only_and_one_that_exists_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = Directory::new();
    let folder = directory.file().with_file_name("made");
    let path = folder.join("deep").join("jobs.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    assert_eq!((mode(&folder), mode(&folder.join("deep"))), (0o700, 0o700));
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        assert_eq!(mode(name.as_ref()), 0o600, "{}", name.display());
    }
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(SqliteStore::open(&path, SqliteOptions::default()).unwrap());
    assert_eq!((mode(&path), mode(&folder)), (0o640, 0o755), "an operator's own modes stay");
}
