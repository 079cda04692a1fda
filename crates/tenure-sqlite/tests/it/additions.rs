//! A newer program adds to the schema of a file while an older one works: columns, tables, and steps that only add.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tenure_contract::{CASES, clock_at_start, run_case};
use tenure_core::How;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::Clock;
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending};
use tenure_store::record::JobFilter;
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, audit};

use crate::fixture::{Directory, Fixture};

/// What a newer program may do without telling the older one: a column in every table, a table, and a step in the list.
fn add_to(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let tables = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'";
    let mut tables = conn.prepare(tables).unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.len() > 20, "{tables:?}");
    for table in tables {
        conn.execute_batch(&format!("alter table \"{table}\" add column added_later text default 'of the future'"))
            .unwrap();
    }
    let known: i32 = conn.query_row("select max(version) from migration", [], |row| row.get(0)).unwrap();
    conn.execute_batch("create table added_later (id integer primary key) strict").unwrap();
    let step = "insert into migration (version, name, min_binary, applied_at) values (999, 'of_the_future', ?1, 0)";
    conn.execute(step, [known]).unwrap();
}

/// Red when a statement reads columns by `*`, or inserts without naming them.
#[tokio::test]
async fn the_contract_holds_on_a_schema_with_additions() {
    for (case, _) in CASES.iter().step_by(16) {
        let (directory, clock) = (Directory::new(), clock_at_start());
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = SqliteStore::open(directory.file(), options.clone()).unwrap();
        store.migrate().await.unwrap();
        drop(store);
        add_to(&directory.file());
        let store = SqliteStore::open(directory.file(), options).unwrap();
        let fixture = tenure_contract::Fixture::new("sqlite with additions", Arc::new(store), clock);
        run_case(case, fixture.keeping(directory)).await.unwrap();
    }
}

/// The store was opened, and its statements were prepared, before the columns came.
#[tokio::test]
async fn a_store_goes_on_when_every_table_gets_a_column() {
    let fixture = Fixture::file().await;
    for round in 0..3 {
        fixture.enqueue(3).await;
        let claimed = fixture.claim(3).await.unwrap();
        let end = |job| EndJob::new(job, Ending::Succeeded { result: None, usage: None });
        let jobs = claimed.jobs.iter().map(|job| end(job.id)).collect();
        let ended = EndJobs { worker: fixture.worker, lease: claimed.lease, jobs };
        assert_eq!(fixture.store.end_jobs(ended).await.unwrap(), [Ended::Now(How::Succeeded); 3]);
        assert_eq!(fixture.store.list_jobs(&JobFilter::default()).await.unwrap().len(), 3 * (round + 1));
        fixture.store.seal_journal().await.unwrap().unwrap();
        if round == 1 {
            add_to(&fixture.path());
        }
    }
    let report = audit::verify(&fixture.store, None, |_| {}).await.unwrap();
    assert_eq!(report.findings, vec![]);
}

/// An older program that is rolled back to runs its `migrate` first, and finds nothing to do.
#[tokio::test]
async fn a_newer_schema_that_only_adds_is_used_and_shown() {
    let fixture = Fixture::file().await;
    let known = fixture.store.list_migrations().await.unwrap().len();
    add_to(&fixture.path());
    let store = SqliteStore::open(fixture.path(), SqliteOptions::default()).unwrap();
    assert!(store.migrate().await.unwrap().is_empty());
    let listed = store.list_migrations().await.unwrap();
    let newest = listed.last().unwrap();
    assert_eq!((newest.version, newest.name.as_str(), newest.applied), (999, "of_the_future", true));
    assert_eq!(listed.len(), known + 1);
    assert_eq!(store.list_jobs(&JobFilter::default()).await.unwrap(), vec![]);
}
