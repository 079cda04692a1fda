//! ATTACK.md S17: somebody writes into the journal past the verbs. Plain UPDATE, DELETE and REPLACE are refused by
//! triggers (`invariants`); whoever drops those is found by the seals, and whoever cuts the chain off, by an anchor.

use rusqlite::Connection;
use tenure_core::seal::Anchor;
use tenure_store::audit::{self, Finding};
use tenure_store::{JournalStore, LeaseStore};

use crate::fixture::{Fixture, succeeded};

/// Three seals of two rows each (claimed, succeeded) and a tail of one (claimed), without the triggers.
async fn sealed() -> (Fixture, Connection, Anchor) {
    let fixture = Fixture::file().await;
    for _ in 0..3 {
        let job = fixture.enqueue(1).await[0];
        let lease = fixture.claim(1).await.unwrap().lease;
        fixture.end(lease, job, succeeded()).await;
        assert_eq!(fixture.store.seal_journal().await.unwrap().unwrap().rows, 2);
    }
    fixture.enqueue(1).await;
    fixture.claim(1).await.unwrap();
    let report = audit::verify(&fixture.store, None, |_| ()).await.unwrap();
    assert_eq!((report.seals, report.rows, report.tail, report.findings.len()), (3, 6, 1, 0));
    let conn = Connection::open(fixture.path()).unwrap();
    for trigger in ["journal_is_fixed", "journal_is_kept", "journal_is_not_replaced", "seal_is_fixed", "seal_is_kept"] {
        conn.execute_batch(&format!("drop trigger {trigger}")).unwrap();
    }
    (fixture, conn, report.head.unwrap())
}

/// What the check finds after `sql`, with the anchor of before or without.
async fn findings(sql: &str, anchored: bool) -> Vec<Finding> {
    let (fixture, conn, anchor) = sealed().await;
    conn.execute_batch(sql).unwrap();
    audit::verify(&fixture.store, anchored.then_some(&anchor), |_| ()).await.unwrap().findings
}

fn rows_changed(findings: &[Finding], seal: i64) -> bool {
    findings.iter().any(|finding| matches!(finding, Finding::RowsChanged { no, .. } if *no == seal))
}

#[tokio::test]
async fn a_changed_row_breaks_its_seal_whatever_was_changed() {
    for edit in [
        "at = at + 1",
        "worker = 9",
        "actor = 'somebody else'",
        "event = 13",
        "lease = lease + 1",
        "jobs = '[]'",
        "reason = 'because'",
        "details = '{}'",
    ] {
        let found = findings(&format!("update journal set {edit} where id = 4"), false).await;
        assert!(rows_changed(&found, 2), "{edit}: {found:?}");
        assert!(!rows_changed(&found, 1) && !rows_changed(&found, 3), "{edit}: {found:?}");
    }
}

#[tokio::test]
async fn a_deleted_a_moved_and_an_inserted_row_break_their_seal() {
    let copy = "insert into journal (id, at, worker, event, lease, jobs) select";
    let swap = "update journal set id = 99 where id = 3; update journal set id = 3 where id = 4; \
                update journal set id = 4 where id = 99";
    for (what, sql) in [
        ("deleted", "delete from journal where id = 3".to_owned()),
        ("swapped", swap.to_owned()),
        ("moved out", "update journal set id = 99 where id = 4".to_owned()),
        ("replaced", "replace into journal (id, at, event, jobs) values (4, 0, 15, '[]')".to_owned()),
        (
            "moved into",
            format!(
                "update seal set last = 7, rows = 3 where no = 3; {copy} 8, at, worker, event, lease, jobs from journal where id = 7"
            ),
        ),
        ("a seal that covers less", "update seal set last = 3, rows = 1 where no = 2".to_owned()),
    ] {
        let found = findings(&sql, false).await;
        assert!(rows_changed(&found, 2) || rows_changed(&found, 3), "{what}: {found:?}");
    }
}

#[tokio::test]
async fn a_changed_a_missing_and_a_forked_seal_are_found() {
    let found = findings("update seal set hash = zeroblob(32) where no = 2", false).await;
    assert!(rows_changed(&found, 2) && found.contains(&Finding::SealUnlinked { no: 3 }), "{found:?}");
    let found = findings("update seal set prev = randomblob(32) where no = 3", false).await;
    assert!(found.contains(&Finding::SealUnlinked { no: 3 }), "{found:?}");
    let found = findings("update seal set sealed_at = sealed_at - 1 where no = 2", false).await;
    assert!(rows_changed(&found, 2), "{found:?}");
    let found = findings("delete from seal where no = 2", false).await;
    assert!(found.contains(&Finding::SealMissing { expected: 2, found: 3 }), "{found:?}");
}

/// A clean cut leaves a good, shorter chain: only somebody who kept the head elsewhere can tell.
#[tokio::test]
async fn a_chain_that_was_cut_off_is_found_by_its_anchor() {
    let cut = "delete from seal where no = 3; delete from journal where id > 4";
    assert_eq!(findings(cut, false).await, []);
    let found = findings(cut, true).await;
    assert!(matches!(found[..], [Finding::AnchorMissed { no: 3, rows: 6, .. }]), "{found:?}");
    // Sealed anew it is long enough again, and still not the same.
    let (fixture, conn, anchor) = sealed().await;
    conn.execute_batch("delete from seal where no = 3").unwrap();
    conn.execute_batch("update journal set reason = 'because' where id = 5").unwrap();
    fixture.store.seal_journal().await.unwrap().unwrap();
    let found = audit::verify(&fixture.store, Some(&anchor), |_| ()).await.unwrap().findings;
    assert!(matches!(found[..], [Finding::AnchorMissed { no: 3, .. }]), "{found:?}");
}

/// A row appended as anybody with the file may: the lifecycle knows no such step.
#[tokio::test]
async fn a_forged_step_in_the_tail_is_found_by_the_replay() {
    let forged = "insert into journal (at, worker, event, lease, jobs) \
                  select at, worker, event, lease, jobs from journal where id = 1";
    let found = findings(forged, false).await;
    assert!(matches!(found[..], [Finding::IllegalStep { row: 8, .. }]), "{found:?}");
}

/// The store goes on after it was tampered with: the next verbs write, the next seal closes, and the check still tells.
#[tokio::test]
async fn a_broken_seal_stays_broken() {
    let (fixture, conn, _) = sealed().await;
    conn.execute_batch("delete from journal where id = 1").unwrap();
    fixture.clock.advance(std::time::Duration::from_secs(61));
    fixture.store.reclaim_jobs(None, 10).await.unwrap();
    fixture.store.seal_journal().await.unwrap().unwrap();
    let report = audit::verify(&fixture.store, None, |_| ()).await.unwrap();
    assert!(rows_changed(&report.findings, 1) && report.seals == 4, "{report:?}");
}

/// Rows in the table that no seal covers and none ever will: between two seals, and with numbers that are never drawn.
#[tokio::test]
async fn a_row_that_no_seal_will_cover_is_found() {
    let (fixture, conn, _) = sealed().await;
    fixture.store.seal_journal().await.unwrap().unwrap();
    // A number that was drawn and not used, as after a leap.
    conn.execute_batch("update sqlite_sequence set seq = 100 where name = 'journal'").unwrap();
    fixture.enqueue(1).await;
    fixture.claim(1).await.unwrap();
    fixture.store.seal_journal().await.unwrap().unwrap();
    assert_eq!(audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings, []);
    conn.execute_batch("pragma ignore_check_constraints = on").unwrap();
    for row in [50, 0, -1, i64::MIN] {
        let forged = "insert into journal (id, at, event, jobs) values (?1, 0, 6, '[]')";
        conn.execute(forged, [row]).unwrap();
        let found = audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings;
        assert_eq!(found, [Finding::StrayRow { row }]);
        assert_eq!(fixture.store.seal_journal().await.unwrap(), None);
        conn.execute("delete from journal where id = ?1", [row]).unwrap();
    }
    assert_eq!(audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings, []);
}

#[tokio::test]
async fn an_emptied_journal_is_found() {
    let (fixture, conn, _) = sealed().await;
    conn.execute_batch("delete from journal; delete from seal").unwrap();
    let found = audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings;
    assert_eq!(found, [Finding::JournalEmpty { drawn: 7, attempts: true }]);
    conn.execute_batch("delete from attempt").unwrap();
    let found = audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings;
    assert_eq!(found, [Finding::JournalEmpty { drawn: 7, attempts: false }]);
}
