//! Rows of the journal that no seal covers and none ever will, and a journal without rows.

use std::cell::Cell;

use tenure_contract::fixture::success;
use tenure_store::JournalStore;
use tenure_store::audit::{self, Finding};
use tokio_postgres::Client;

use crate::scene::{Scene, complete_in, number, run, said};

/// A journal with some sealed rows, and a superuser that nothing on the table stops.
async fn open() -> (Scene, Client) {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let intruder = scene.client().await;
    for _ in 0..2 {
        let (lease, jobs) = scene.claim_batch(worker, 2).await;
        // A rollback leaves a free id behind.
        run(&intruder, "begin; insert into tenure.journal (at, event, jobs) values (now(), 6, '{}'); rollback").await;
        scene.end_all(worker, lease, &jobs, &success()).await;
        scene.store.seal_journal().await.expect("seal").expect("there is something to seal");
    }
    run(
        &intruder,
        "alter table tenure.journal disable trigger all; alter table tenure.seal disable trigger all;
         alter table tenure.journal drop constraint journal_id_check; alter table tenure.journal drop constraint journal_xid_check",
    )
    .await;
    (scene, intruder)
}

async fn findings(scene: &Scene) -> Vec<Finding> {
    audit::verify(&scene.store, None, |_| {}).await.expect("verify").findings
}

/// Forged rows, before and after the next seal. Red when only what a seal or the tail covers is looked at.
#[tokio::test]
async fn a_row_that_no_seal_will_cover_is_found() {
    let (scene, intruder) = open().await;
    let free = "(select min(id) + 1 from tenure.journal g where not exists (select from tenure.journal h where h.id = g.id + 1))";
    let (ours, drawn) = ("pg_current_xact_id()", "nextval('tenure.journal_id_seq')");
    for (what, id, xid, era) in [
        ("a foreign era", drawn, ours, "9"),
        ("no era", drawn, ours, "0"),
        ("xid 0", drawn, "'0'", "1"),
        ("an xid that is never reached", drawn, "'4611686018427387904'", "1"),
        ("an id that was not drawn yet", "1::bigint << 50", ours, "1"),
        ("id 0", "0", ours, "1"),
        ("a negative id", "-1", "'0'", "1"),
        ("the least id", "-9223372036854775808", ours, "7"),
        ("a free id below the last seal", free, ours, "1"),
    ] {
        let forge = format!(
            "insert into tenure.journal (id, xid, era, at, event, jobs) overriding system value
             values ({id}, {xid}, {era}, now(), 6, '{{}}') returning id"
        );
        let row: i64 = intruder.query_one(&forge, &[]).await.expect(what).get(0);
        assert_eq!(findings(&scene).await, [Finding::StrayRow { row }], "{what}");
        // It does not get under a later seal, either.
        let honest = "alter table tenure.journal enable trigger all; insert into tenure.journal (at, event, jobs) values (now(), 6, '{}');
            alter table tenure.journal disable trigger all";
        run(&intruder, honest).await;
        while scene.store.seal_journal().await.expect("seal").is_some() {}
        assert_eq!(findings(&scene).await, [Finding::StrayRow { row }], "{what}, sealed");
        run(&intruder, &format!("delete from tenure.journal where id = {row}")).await;
        assert_eq!(findings(&scene).await, [], "{what}, removed");
    }
}

/// Red when an empty journal is one in which nothing happened yet.
#[tokio::test]
async fn an_emptied_journal_is_found() {
    let (scene, intruder) = open().await;
    run(&intruder, "delete from tenure.journal; delete from tenure.seal").await;
    let drawn = number(&intruder, "select last_value from tenure.journal_id_seq").await;
    assert_eq!(findings(&scene).await, [Finding::JournalEmpty { drawn, attempts: true }]);
    run(&intruder, "delete from tenure.attempt").await;
    assert_eq!(findings(&scene).await, [], "numbers alone may be those of transactions that were rolled back");
}

/// A transaction that writes the first row of all is not the end of a journal.
#[tokio::test]
async fn a_first_row_that_is_not_committed_yet_is_no_finding() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, "begin; insert into tenure.journal (at, event, jobs) values (now(), 6, '{}')").await;
    assert_eq!(findings(&scene).await, []);
    run(&client, "commit").await;
    assert_eq!(findings(&scene).await, []);
}

/// The role that writes the journal writes no row at a place of its own choice.
#[tokio::test]
async fn a_number_that_was_not_drawn_is_refused() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    scene.claim_batch(worker, 1).await;
    let writer = scene.client().await;
    let insert = |id: &str| {
        format!(
            "insert into tenure.journal (id, at, event, jobs) overriding system value values ({id}, now(), 6, '{{}}')"
        )
    };
    let refused = writer.batch_execute(&insert("77")).await.expect_err("nothing was drawn by this session");
    assert!(said(&refused).starts_with("55000"), "{}", said(&refused));
    run(&writer, "insert into tenure.journal (at, event, jobs) values (now(), 6, '{}')").await;
    for id in ["77", "1", "-1", "0", "1::bigint << 50"] {
        let refused = writer.batch_execute(&insert(id)).await.expect_err("the number is the table's own");
        assert!(said(&refused).starts_with("TN409 tenure.journal.xid is "), "{}", said(&refused));
    }
    // Neither without the trigger, where the number is none.
    run(&writer, "alter table tenure.journal disable trigger all").await;
    for id in ["0", "-1"] {
        let sql = insert(id)
            .replace("(id, at,", "(id, era, at,")
            .replace(&format!("({id}, now()"), &format!("({id}, 1, now()"));
        let refused = writer.batch_execute(&sql).await.expect_err("a constraint");
        assert!(said(&refused).starts_with("23514"), "{}", said(&refused));
    }
    scene.assert_sound().await;
}

/// Jobs end in users' transactions, in and out of order, and two sealers seal, while the journal is checked again and again.
#[tokio::test]
async fn a_check_beside_writers_and_sealers_finds_nothing() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let done = Cell::new(false);
    let work = async {
        let (early, late) = (scene.client().await, scene.client().await);
        run(&late, "begin").await;
        while !done.get() {
            let (lease, batch) = scene.claim_batch(worker, 5).await;
            // It is visible a round later, behind rows with larger numbers.
            run(&late, "commit; begin").await;
            complete_in(&late, worker, lease, batch[0]).await;
            run(&early, "begin").await;
            complete_in(&early, worker, lease, batch[1]).await;
            run(&early, "commit").await;
            scene.end_all(worker, lease, &batch[2..], &success()).await;
        }
    };
    let seal = async || {
        while !done.get() {
            scene.store.seal_journal().await.expect("seal");
        }
    };
    let check = async {
        for round in 0..15 {
            let report = audit::verify(&scene.store, None, |_| {}).await.expect("verify");
            assert_eq!(report.findings, [], "round {round}: {report:#?}");
        }
        done.set(true);
    };
    tokio::join!(work, seal(), seal(), check);
}
