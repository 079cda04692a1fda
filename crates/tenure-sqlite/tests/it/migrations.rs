//! A file of the release before is brought up, and nothing of it is lost.

use std::path::Path;

use rusqlite::Connection;
use tenure_core::JobId;
use tenure_core::journal::JournalEvent;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::journal::JournalPage;
use tenure_store::{AdminStore, JournalStore, StoreError, audit};

use crate::fixture::Directory;

const JOB: &str = "01900000-0000-7000-8000-000000000001";

/// The steps up to this one, in order.
fn steps(last: usize) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().take(last).map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// An empty database with every step.
fn migrated() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    steps(usize::MAX).iter().for_each(|step| conn.execute_batch(step).unwrap());
    conn
}

/// A file as the first release made it: a worker, a job that was canceled twice, and an id that was given up.
fn first_release(directory: &Directory) {
    std::fs::create_dir_all(directory.file().parent().unwrap()).unwrap();
    let conn = Connection::open(directory.file()).unwrap();
    steps(1).iter().for_each(|step| conn.execute_batch(step).unwrap());
    conn.execute_batch(&format!(
        "insert into migration (version, name, min_binary, applied_at) values (1, 'jobs_leases_and_journal', 1, 0);
         insert into worker (name, started_at) values ('old', 7);
         insert into journal (at, event, jobs, actor, reason, details) values
             (10, 15, '[\"{JOB}\"]', 'ops', 'wrong', null), (20, 3, '[\"{JOB}\"]', null, null, '{{\"a\":1}}');
         update sqlite_sequence set seq = 40 where name = 'journal';"
    ))
    .unwrap();
}

#[tokio::test]
async fn the_record_moves_over_whole() {
    let directory = Directory::new();
    first_release(&directory);
    let store = SqliteStore::open(directory.file(), SqliteOptions::default()).unwrap();
    assert!(matches!(store.list_workers(10).await, Err(StoreError::Schema(_))));
    let applied = store.migrate().await.unwrap();
    assert_eq!(applied.iter().map(|step| step.version).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);

    let workers = store.list_workers(10).await.unwrap();
    assert_eq!((workers.len(), workers[0].name.as_str(), workers[0].registered_at.as_micros()), (1, "old", 7));
    assert_eq!((&workers[0].beat, workers[0].seen_at), (&None, None));
    let rows = store.read_journal(JournalPage { seal: None, after: 0, limit: 10 }).await.unwrap();
    let job: JobId = JOB.parse().unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.id, row.at.as_micros(), row.event, row.jobs.clone())).collect();
    let canceled = JournalEvent::Ended(tenure_core::How::Canceled);
    assert_eq!(told, [(1, 10, canceled, vec![job]), (2, 20, JournalEvent::Requeued, vec![job])]);
    assert_eq!((rows[0].actor.as_deref(), rows[0].reason.as_deref()), (Some("ops"), Some("wrong")));
    assert_eq!(rows[1].details.as_ref().map(|details| details.as_str()), Some("{\"a\":1}"));
    store.seal_journal().await.unwrap().unwrap();
    let report = audit::verify(&store, None, |_| {}).await.unwrap();
    assert_eq!((report.rows, report.findings), (2, vec![]));
}

#[tokio::test]
async fn the_record_is_guarded_after_the_move() {
    let directory = Directory::new();
    first_release(&directory);
    let store = SqliteStore::open(directory.file(), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let conn = Connection::open(directory.file()).unwrap();
    let refused = "insert into journal (at, event, jobs) values (30, 20, '[]') returning id";
    let id: i64 = conn.query_row(refused, [], |row| row.get(0)).unwrap();
    assert_eq!(id, 41, "the sequence goes on where it was");
    let word: String = conn.query_row("select event from audit_log where id = 41", [], |row| row.get(0)).unwrap();
    assert_eq!(word, "refused");
    for forbidden in [
        "update journal set at = 0",
        "delete from journal",
        "replace into journal (id, at, event, jobs) values (1, 0, 1, '[]')",
        "insert into journal (at, event, jobs) values (0, 10, '[]')",
        "insert into journal (at, event, jobs) values (0, 19, '[]')",
        "insert into journal (at, event, jobs) values (0, 80, '[]')",
    ] {
        assert!(conn.execute_batch(forbidden).is_err(), "{forbidden}");
    }
    let indexes = "select count(*) from sqlite_master where type = 'index' and tbl_name = 'journal'";
    assert_eq!(conn.query_row(indexes, [], |row| row.get::<_, i64>(0)).unwrap(), 4);
}

/// People read the registry, too.
#[test]
fn the_view_of_workers_shows_what_they_said() {
    let conn = migrated();
    conn.execute_batch(
        "insert into worker (name, started_at) values ('silent', 0);
         insert into worker (name, started_at, seen_at, state, running, reporting, version, host, pid, queues)
         values ('busy', 0, 1500000, 'polling', 3, 1, '1.2', 'h', 7, '[[\"mail\",4],[\"default\",1]]')",
    )
    .unwrap();
    let line = "select group_concat(concat_ws('|', name, state, queues, seen_at), '; ' order by id) from workers";
    let shown: String = conn.query_row(line, [], |row| row.get(0)).unwrap();
    assert_eq!(shown, "silent; busy|polling|mail=4, default=1|1970-01-01T00:00:01.500Z");
}

#[test]
fn the_view_of_the_record_has_a_word_for_every_event() {
    let conn = migrated();
    for event in JournalEvent::ALL {
        conn.execute("insert into journal (at, event, jobs) values (0, ?1, '[]')", [event.code()]).unwrap();
        let word = "select event from audit_log order by id desc limit 1";
        let word: Option<String> = conn.query_row(word, [], |row| row.get(0)).unwrap();
        assert_eq!(word.as_deref(), Some(event.as_str()));
    }
}
