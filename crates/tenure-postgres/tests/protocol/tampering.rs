//! Tampering: what somebody did to the journal behind the verbs, as a superuser with the triggers switched off.

use tenure_contract::fixture::success;
use tenure_core::seal::Anchor;
use tenure_store::audit::{self, Finding, Report};
use tenure_store::{JournalStore, journal::JournalPage};

use crate::scene::{Scene, failure, run, said};

/// A journal of three seals with three rows each.
struct Record {
    scene: Scene,
    /// Ids of the rows under the second seal.
    second: Vec<i64>,
    /// An id between them that no row has.
    free: i64,
    anchor: Anchor,
}

impl Record {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let worker = scene.worker("w").await;
        for _ in 0..3 {
            let (lease, jobs) = scene.claim_batch(worker, 2).await;
            scene.end(worker, lease, jobs[0], success()).await;
            // A rollback leaves a free id behind.
            let row = "insert into tenure.journal (at, event, jobs) values (now(), 6, '{}')";
            run(&scene.client().await, &format!("begin; {row}; rollback")).await;
            scene.end(worker, lease, jobs[1], failure()).await;
            scene.store.seal_journal().await.expect("seal").expect("there is something to seal");
        }
        let report = audit::verify(&scene.store, None, |_| {}).await.expect("verify");
        assert_eq!((report.seals, report.rows, report.tail), (3, 9, 0));
        assert!(report.findings.is_empty(), "{report:#?}");
        let page = JournalPage { seal: Some(2), after: 0, limit: 10 };
        let second: Vec<i64> = scene.store.read_journal(page).await.expect("read").iter().map(|row| row.id).collect();
        let free = second[2] - 1;
        assert!(second[1] < free, "{second:?}");
        Self { scene, second, free, anchor: report.head.expect("a head") }
    }

    /// Runs SQL as nobody should, then checks.
    async fn after(&self, sql: &str) -> Report {
        let intruder = self.scene.client().await;
        for table in ["journal", "seal"] {
            run(&intruder, &format!("alter table tenure.{table} disable trigger all")).await;
        }
        run(&intruder, sql).await;
        audit::verify(&self.scene.store, None, |_| {}).await.expect("verify")
    }

    async fn check_with_anchor(&self) -> Report {
        audit::verify(&self.scene.store, Some(&self.anchor), |_| {}).await.expect("verify")
    }
}

#[track_caller]
fn assert_found(report: &Report, finding: &Finding) {
    assert!(report.findings.contains(finding), "no {finding:?} in {report:#?}");
}

fn rows_changed(no: i64, found: i64) -> Finding {
    Finding::RowsChanged { no, expected: 3, found }
}

#[tokio::test]
async fn an_edited_row_is_found() {
    let record = Record::new().await;
    let id = record.second[0];
    for edit in [
        "reason = 'because'",
        "at = at + interval '1 us'",
        "jobs = jobs[2:2] || jobs[1:1]",
        "lease = lease + 1",
        "details = '{}'",
    ] {
        let keep = format!("create table before as select * from tenure.journal where id = {id}");
        let report = record.after(&format!("{keep}; update tenure.journal set {edit} where id = {id}")).await;
        assert_eq!(report.findings.first(), Some(&rows_changed(2, 3)), "{edit}");
        let undo = "update tenure.journal j set (at, lease, jobs, reason, details) = (b.at, b.lease, b.jobs, b.reason, b.details)
            from before b where b.id = j.id; drop table before";
        assert!(record.after(undo).await.findings.is_empty(), "undone, {edit} leaves nothing");
    }
}

#[tokio::test]
async fn a_deleted_row_is_found() {
    let record = Record::new().await;
    let report = record.after(&format!("delete from tenure.journal where id = {}", record.second[1])).await;
    assert_found(&report, &rows_changed(2, 2));
}

/// Two rows of one seal change places: the same rows, in another order.
#[tokio::test]
async fn rows_in_another_order_are_found() {
    let record = Record::new().await;
    let (one, two) = (record.second[1], record.second[2]);
    let swap = format!(
        "alter table tenure.journal alter column id drop identity;
         update tenure.journal set id = -1 where id = {one};
         update tenure.journal set id = {one} where id = {two};
         update tenure.journal set id = {two} where id = -1"
    );
    assert_found(&record.after(&swap).await, &rows_changed(2, 3));
}

/// A row that pretends to have been there when its seal was closed.
#[tokio::test]
async fn a_row_inserted_under_a_seal_is_found() {
    let record = Record::new().await;
    let insert = format!(
        "insert into tenure.journal (id, xid, era, at, event, jobs) overriding system value
         select {}, xid, era, at, 6, '{{}}' from tenure.journal where id = {}",
        record.free, record.second[0]
    );
    assert_found(&record.after(&insert).await, &rows_changed(2, 4));
}

/// A row with the xid of a sealed one and an id of its own is no part of the past: it is unsealed like any new row.
#[tokio::test]
async fn a_row_with_an_old_xid_and_a_new_id_is_not_under_an_old_seal() {
    let record = Record::new().await;
    let id = record.second[0];
    let insert = format!(
        "insert into tenure.journal (xid, era, at, event, jobs) select xid, era, at, 6, '{{}}' from tenure.journal where id = {id}"
    );
    let report = record.after(&insert).await;
    assert_eq!((report.rows, report.tail, report.findings.len()), (9, 1, 0), "{report:#?}");
}

/// A row moved under another seal changes both.
#[tokio::test]
async fn a_row_moved_to_another_seal_is_found_in_both() {
    let record = Record::new().await;
    let (from, to) = (record.free + 3, record.free);
    let moved = format!(
        "alter table tenure.journal alter column id drop identity;
         update tenure.journal set id = {to}, xid = (select xid from tenure.journal where id = {}) where id = {from}",
        record.second[0]
    );
    let report = record.after(&moved).await;
    assert_found(&report, &rows_changed(2, 4));
    assert_found(&report, &rows_changed(3, 2));
}

/// A row whose transaction is exchanged for a later one is missing where it was.
#[tokio::test]
async fn a_row_of_another_transaction_is_found() {
    let record = Record::new().await;
    let id = record.second[2];
    let later = "(select max(xid) from tenure.journal where id = (select max(id) from tenure.journal))";
    let report = record.after(&format!("update tenure.journal set xid = {later} where id = {id}")).await;
    assert_found(&report, &rows_changed(2, 2));
}

/// The end is cut off, rows and seal together: what is left is whole in itself, and only the anchor tells.
#[tokio::test]
async fn a_truncated_journal_is_found_by_its_anchor() {
    let record = Record::new().await;
    assert!(record.check_with_anchor().await.findings.is_empty(), "the anchor fits");
    let last = record.second.iter().max().expect("rows");
    let report = record
        .after(&format!("delete from tenure.journal where id > {last}; delete from tenure.seal where no = 3"))
        .await;
    assert!(report.findings.is_empty(), "without an anchor nothing is missing: {report:#?}");
    let report = record.check_with_anchor().await;
    assert!(matches!(report.findings[..], [Finding::AnchorMissed { no: 3, rows: 9, .. }]), "{report:#?}");
}

/// A whole new chain over changed rows is as good as any, but it is not the one that was anchored.
#[tokio::test]
async fn a_chain_that_was_sealed_anew_is_found_by_its_anchor() {
    let record = Record::new().await;
    let id = record.second[0];
    record.after(&format!("update tenure.journal set reason = 'never' where id = {id}; delete from tenure.seal")).await;
    record.scene.assert_sound().await;
    let report = record.check_with_anchor().await;
    assert!(matches!(report.findings[..], [Finding::AnchorMissed { no: 3, .. }]), "{report:#?}");
}

#[tokio::test]
async fn an_edited_seal_is_found() {
    let forged = "'\\x0000000000000000000000000000000000000000000000000000000000000001'";
    let edits = [
        (format!("hash = {forged}"), Finding::SealUnlinked { no: 3 }),
        (format!("prev = {forged}"), Finding::SealUnlinked { no: 2 }),
        ("rows = rows + 1".to_owned(), Finding::RowsChanged { no: 2, expected: 4, found: 3 }),
        ("snapshot = (select snapshot from tenure.seal where no = 3)".to_owned(), rows_changed(2, 3)),
        ("snapshot = null".to_owned(), rows_changed(2, 3)),
        ("before = '1:1:'".to_owned(), rows_changed(2, 3)),
        ("after = 1".to_owned(), rows_changed(2, 3)),
        ("floor = 0".to_owned(), rows_changed(2, 6)),
        ("upto = upto + 3".to_owned(), rows_changed(2, 3)),
        ("era = 2".to_owned(), rows_changed(2, 0)),
    ];
    let record = Record::new().await;
    for (edit, finding) in edits {
        let sql =
            format!("create table before as select * from tenure.seal; update tenure.seal set {edit} where no = 2");
        let report = record.after(&sql).await;
        assert_found(&report, &finding);
        let undo = "delete from tenure.seal; insert into tenure.seal select * from before; drop table before";
        assert!(record.after(undo).await.findings.is_empty(), "undone, {edit} leaves nothing");
    }
}

#[tokio::test]
async fn a_deleted_seal_is_found() {
    let record = Record::new().await;
    let report = record.after("delete from tenure.seal where no = 2").await;
    assert_found(&report, &Finding::SealMissing { expected: 2, found: 3 });
    // Numbered anew, it no longer follows what stands before it.
    let report = record.after("update tenure.seal set no = 2 where no = 3").await;
    assert_found(&report, &Finding::SealUnlinked { no: 2 });
}

/// Without switching triggers off nobody changes the record at all. Red when a trigger is missing.
#[tokio::test]
async fn plain_changes_of_the_record_are_refused() {
    let record = Record::new().await;
    let client = record.scene.client().await;
    for table in ["journal", "seal"] {
        for sql in [
            format!("update tenure.{table} set era = 1"),
            format!("delete from tenure.{table}"),
            format!("truncate tenure.{table}"),
        ] {
            let refused = client.batch_execute(&sql).await.expect_err(&sql);
            assert!(said(&refused).starts_with("TN409"), "{sql}: {}", said(&refused));
        }
    }
    let refused = client.batch_execute("update tenure.job set priority = 0").await.expect_err("jobs never change");
    assert!(said(&refused).starts_with("TN409"), "{}", said(&refused));
    assert!(record.check_with_anchor().await.findings.is_empty());
}

/// Red when a column is added to attempts and can be changed.
#[tokio::test]
async fn no_column_of_an_attempt_can_be_updated_but_its_final_flag() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 1).await;
    scene.end(worker, lease, jobs[0], success()).await;
    let client = scene.client().await;
    let columns = "select a.attname, format_type(a.atttypid, null) from pg_attribute a
        where a.attrelid = 'tenure.attempt'::regclass and a.attnum > 0 and not a.attisdropped";
    let columns = client.query(columns, &[]).await.expect("columns");
    assert!(columns.len() > 10);
    for row in &columns {
        let (column, kind): (&str, &str) = (row.get(0), row.get(1));
        let changed = match kind {
            "uuid" => "tenure.new_id()".to_owned(),
            "bigint" | "integer" | "smallint" => format!("coalesce({column}, 0) + 1"),
            "timestamp with time zone" => format!("{column} + interval '1 us'"),
            "jsonb" => format!("'{{\"{column}\": 1}}'"),
            "boolean" => format!("{column}"),
            other => panic!("{column} is {other}"),
        };
        let sql = format!("update tenure.attempt set {column} = {changed}");
        let refused = client.batch_execute(&sql).await.expect_err(&sql);
        assert!(said(&refused).starts_with("TN409"), "{sql}: {}", said(&refused));
    }
    run(&client, "update tenure.attempt set final = false").await;
    let refused = client.batch_execute("update tenure.attempt set final = true").await.expect_err("nothing sets it");
    assert!(said(&refused).starts_with("TN409"), "{}", said(&refused));
}
