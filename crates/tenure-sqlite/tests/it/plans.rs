//! No verb walks over a whole table.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, StatementStatus, named_params};
use tenure_store::StoreError;

use crate::fixture::Fixture;

/// Tables that grow with the work. Leases, queues and workers are few.
const LARGE: [&str; 5] = ["job", "ready", "attempt", "unique_key", "journal"];
/// What looks at everything on purpose.
const LOOK_AT_ALL: [&str; 1] = ["find_violations.sql"];

#[tokio::test]
async fn no_statement_scans_a_large_table() {
    let fixture = Fixture::file().await;
    let conn = Connection::open(fixture.path()).unwrap();
    // With and without statistics.
    for statistics in [false, true] {
        if statistics {
            fixture.enqueue(500).await;
            conn.execute_batch("analyze").unwrap();
        }
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if LOOK_AT_ALL.contains(&name.as_str()) {
                continue;
            }
            for step in plan(&conn, &fs::read_to_string(&path).unwrap()) {
                let words: Vec<&str> = step.split(' ').collect();
                let walks = words[0] == "SCAN" || step.contains("AUTOMATIC");
                assert!(!(walks && LARGE.contains(&words[1])), "{name}: {step}");
                // By this alone it is everything that has ended.
                assert!(!step.contains("attempt_ended (final=?)"), "{name}: {step}");
            }
        }
    }
}

/// A claim names another moment every time, and a parameter in a range is something that SQLite likes to plan by.
#[tokio::test]
async fn a_claim_at_another_moment_is_not_prepared_anew() {
    let fixture = Fixture::memory().await;
    let sql = text("claim_jobs");
    let prepared_anew = fixture.store.transaction(move |tx| {
        let mut claim = tx.connection().prepare(&sql).unwrap();
        for now in 1..=3 {
            let params = named_params! { ":queue": 1, ":line": "", ":priority": 1, ":now": now, ":limit": 1 };
            assert!(claim.query(params).unwrap().next().unwrap().is_none());
        }
        Ok::<_, StoreError>(claim.get_status(StatementStatus::RePrepare))
    });
    assert_eq!(prepared_anew.await.unwrap(), 0);
}

#[tokio::test]
async fn a_claim_and_a_list_are_read_in_the_order_of_an_index() {
    let fixture = Fixture::file().await;
    let conn = Connection::open(fixture.path()).unwrap();
    for name in [
        "claim_jobs",
        "expired_leases",
        "prunable_jobs",
        "list_all",
        "list_of_kind",
        "list_of_queue",
        "list_of_tenant",
        "list_queued",
        "list_unusual",
        "list_succeeded",
        "list_unsuccessful",
        "read_journal",
        "list_journal",
        "list_acts",
    ] {
        for step in plan(&conn, &text(name)) {
            assert!(!step.contains("TEMP B-TREE"), "{name}: {step}");
        }
    }
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/sql/{name}.sql"));
    fs::read_to_string(path).unwrap()
}

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("explain query plan {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}
