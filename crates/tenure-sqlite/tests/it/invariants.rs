//! What the tables themselves refuse, and what the verifier sees when somebody writes around the verbs.

use rusqlite::Connection;
use tenure_store::AdminStore;

use crate::fixture::{Fixture, succeeded};

async fn with_history() -> (Fixture, Connection) {
    let fixture = Fixture::file().await;
    let jobs = fixture.enqueue(4).await;
    let claimed = fixture.claim(3).await.unwrap();
    fixture.end(claimed.lease, jobs[0], succeeded()).await;
    tenure_store::JournalStore::seal_journal(&fixture.store).await.unwrap().unwrap();
    let conn = Connection::open(fixture.path()).unwrap();
    (fixture, conn)
}

#[tokio::test]
async fn facts_cannot_be_rewritten() {
    let (_fixture, conn) = with_history().await;
    for (sql, word) in [
        ("update job set priority = 0", "written once"),
        ("update journal set actor = 'nobody'", "append-only"),
        ("delete from journal", "append-only"),
        ("update seal set rows = 1", "closed for ever"),
        ("delete from seal", "closed for ever"),
        ("update lease set worker = 7", "never rewritten"),
        ("update attempt set how = 9", "written once"),
        ("update attempt set final = 1", "written once"),
        ("update ready set priority = 4", "CHECK constraint"),
        ("update ready set attempt = -1", "CHECK constraint"),
        (
            "insert into ready select queue, line, priority, run_at + 1, job, attempt, losses, state from ready",
            "UNIQUE constraint",
        ),
        ("insert into seal select no + 1, first, last, sealed_at, rows, prev, hash from seal", "closed for ever"),
        ("insert or replace into seal select no, 1, 1, sealed_at, 1, prev, hash from seal", "closed for ever"),
        ("insert or replace into journal (id, at, event, jobs) values (1, 0, 1, '[]')", "append-only"),
        ("insert into journal (id, at, event, jobs) values (99, 0, 1, '[]')", "numbers its rows itself"),
        ("insert into journal (id, at, event, jobs) values (0, 0, 1, '[]')", "CHECK constraint"),
        ("insert into journal (id, at, event, jobs) values (-7, 0, 1, '[]')", "CHECK constraint"),
    ] {
        let refused = conn.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains(word), "{sql}: {refused}");
    }
}

/// Red when a column is added and the trigger does not name it.
#[tokio::test]
async fn no_column_of_an_attempt_can_be_updated_but_its_final_flag() {
    let (_fixture, conn) = with_history().await;
    let mut columns = conn.prepare("select name from pragma_table_info('attempt')").unwrap();
    let columns: Vec<String> = columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(columns.len() > 10, "{columns:?}");
    for column in columns.iter().filter(|column| *column != "final") {
        let refused = conn.execute(&format!("update attempt set {column} = {column}"), []).unwrap_err().to_string();
        assert!(refused.contains("written once"), "{column}: {refused}");
    }
    assert!(conn.execute("update attempt set final = 0", []).unwrap() > 0);
}

#[tokio::test]
async fn the_verifier_names_each_broken_invariant() {
    for (invariant, sql) in [
        (
            "L1",
            "insert into lease (queue, worker, claimed_at, expires_at, jobs, attempts, losses) \
                select queue, worker, claimed_at, expires_at, jobs, attempts, losses from lease",
        ),
        ("L2", "delete from ready"),
        ("L2", "insert into ready select queue, line, priority, run_at, (select job from attempt), 0, 0, 1 from ready"),
        (
            "L3",
            "insert into attempt (job, lease, attempt, losses, how, final, ended_at) \
                select job, lease - 1, attempt, losses, how, final, ended_at from attempt",
        ),
        ("L4", "update ready set attempt = 5"),
        ("L2", "delete from job where id = (select job from ready)"),
        (
            "L5",
            "insert into attempt (job, lease, attempt, losses, how, final, ended_at) \
                select unhex(jobs ->> 1, '-'), no + 1, 1, 0, 7, 0, 0 from lease",
        ),
        ("L6", "update ready set priority = 0"),
        ("L6", "update ready set line = '/g'"),
        ("G1", "insert into gate (name, in_use) values ('g', 1)"),
        ("L7", "update attempt set lease = 99"),
    ] {
        let (fixture, conn) = with_history().await;
        fixture.assert_sound().await;
        conn.execute_batch("drop trigger attempt_is_fixed").unwrap();
        assert!(conn.execute(sql, []).unwrap() > 0);
        let found = fixture.store.find_violations(100).await.unwrap();
        assert!(found.iter().any(|violation| violation.invariant == invariant), "{invariant}: {found:?}");
    }
}

#[tokio::test]
async fn the_views_show_what_people_look_for() {
    let (_fixture, conn) = with_history().await;
    let states = "select group_concat(state) from (select state from jobs order by state)";
    let states: String = conn.query_row(states, [], |row| row.get(0)).unwrap();
    assert_eq!(states, "queued,running,running,succeeded");
    let columns = "select id, tenant, queue, kind, priority, attempts, max_attempts, run_at, next_retry_at, locked_by, \
                   locked_at, heartbeat_at, lease_expires_at, created_at, started_at, completed_at, updated_at, \
                   error_message from jobs where state = 'running'";
    let (id, locked_by, expires): (String, String, String) =
        conn.query_row(columns, [], |row| Ok((row.get(0)?, row.get(9)?, row.get(12)?))).unwrap();
    assert_eq!((id.len(), locked_by.as_str(), expires.as_str()), (36, "w1", "2025-11-15T09:01:00.000Z"));
    let events = "select count(*) from audit_log where event in ('claimed', 'succeeded') and seal = 1";
    assert_eq!(conn.query_row(events, [], |row| row.get::<_, i64>(0)).unwrap(), 4);
}
