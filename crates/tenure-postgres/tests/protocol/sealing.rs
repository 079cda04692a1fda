//! Sealing: every committed row falls into exactly one seal, in an order the lifecycle allows, whoever has what open.

use tenure_contract::fixture::success;
use tenure_core::LeaseNo;
use tenure_core::journal::JournalEvent;
use tenure_postgres::PgOptions;
use tenure_postgres::mutant::Mutant;
use tenure_store::JournalStore;
use tenure_store::audit::{self, Finding};
use tenure_store::journal::JournalPage;

use crate::database::Database;
use crate::scene::{Scene, complete_in, connect, failure, number, real_now, run, said};

/// A job fails and is requeued by a transaction that is older than its claim; then it succeeds.
async fn requeue_by_an_old_transaction(scene: &Scene) {
    let worker = scene.worker("w").await;
    let operator = scene.client().await;
    run(&operator, "begin; select pg_current_xact_id()").await;
    let job = scene.enqueue().await;
    let (lease, _) = scene.claim_one(worker).await;
    scene.end(worker, lease, job, failure()).await;
    run(&operator, &format!("select tenure.requeue('{job}'); commit")).await;
    scene.clock.set(real_now());
    let (lease, _) = scene.claim_one(worker).await;
    scene.end(worker, lease, job, success()).await;
}

/// S1: rows of a seal are in id order, so a requeue by an old transaction follows the failure it revived.
#[tokio::test]
async fn a_requeue_by_an_old_transaction_is_sealed_after_the_failure_it_revived() {
    let scene = Scene::new().await;
    requeue_by_an_old_transaction(&scene).await;
    scene.assert_sound().await;
}

/// S1, the mutant: in the order of transaction ids the record says something that cannot happen.
#[tokio::test]
async fn rows_in_the_order_of_transactions_do_not_replay() {
    let scene = Scene::new().await;
    requeue_by_an_old_transaction(&scene).await;
    scene.assert_sound().await;
    let mutant = Mutant { statement: "read_sealed", find: "order by id", replace: "order by xid, id" };
    let store = scene.other_store(PgOptions { mutant: Some(mutant), ..PgOptions::default() }).await;
    let report = audit::verify(&store, None, |_| {}).await.expect("verify");
    assert!(report.findings.iter().any(|finding| matches!(finding, Finding::IllegalStep { .. })), "{report:#?}");
}

/// S2: transactions are open in another database, prepared in this one, and running in this one. Red when only what is
/// older than all of them is sealed: then nothing is.
#[tokio::test]
async fn sealing_goes_on_while_transactions_are_open_elsewhere() {
    let scene = Scene::new().await;
    let elsewhere = Database::bare();
    let (other, prepared, running) = (connect(&elsewhere.url).await, scene.client().await, scene.client().await);
    let name = &scene.database.name;
    run(&other, "begin; select pg_current_xact_id()").await;
    run(&prepared, &format!("begin; create table t (); prepare transaction '{name}'")).await;
    run(&running, "begin; select pg_current_xact_id()").await;

    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 5).await;
    for job in &jobs {
        scene.end(worker, lease, *job, success()).await;
    }
    let report = scene.audit().await;
    run(&prepared, &format!("rollback prepared '{name}'")).await;
    assert_eq!((report.rows, report.tail, report.findings.len()), (6, 0, 0), "{report:#?}");
}

/// A transaction stays open over two seals. Red when a row is sealed by when it was written rather than by when it
/// became visible: it is left out for ever, or twice there.
#[tokio::test]
async fn rows_of_an_open_transaction_are_sealed_once_after_it_commits() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 3).await;
    let (user, nested) = (scene.client().await, scene.client().await);
    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[0]).await;
    // Inside a savepoint a row still carries the transaction's own id.
    run(&nested, "begin; savepoint one").await;
    complete_in(&nested, worker, lease, jobs[1]).await;
    run(&nested, "release one").await;

    for _ in 0..2 {
        assert!(scene.audit().await.findings.is_empty());
        scene.claim_batch(worker, 1).await;
    }
    let sealed_before = scene.audit().await.rows;
    run(&user, "commit").await;
    run(&nested, "commit").await;
    let report = scene.audit().await;
    assert_eq!((report.rows, report.tail, report.findings.len()), (sealed_before + 2, 0, 0), "{report:#?}");
    assert_eq!(times_sealed(&scene, lease).await, 2, "each of the two once");
    scene.assert_sound().await;
}

/// How many completions under a lease the seals hold altogether.
async fn times_sealed(scene: &Scene, lease: LeaseNo) -> usize {
    let mut times = 0;
    for seal in scene.store.list_seals(0, 100).await.expect("list seals") {
        let page = JournalPage { seal: Some(seal.no), after: 0, limit: 1_000 };
        let rows = scene.store.read_journal(page).await.expect("read the journal");
        let completions = rows.iter().filter(|row| row.event == JournalEvent::Ended(tenure_core::How::Succeeded));
        times += completions.filter(|row| row.lease == Some(lease)).count();
    }
    times
}

/// A number that was drawn and rolled back is a gap in the ids, not in the record. Red when seals expect ids without gaps.
#[tokio::test]
async fn a_rolled_back_transaction_leaves_no_finding() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    run(&client, "begin").await;
    complete_in(&client, worker, lease, jobs[0]).await;
    scene.audit().await;
    run(&client, "rollback").await;
    scene.end_all(worker, lease, &jobs, &success()).await;
    scene.assert_sound().await;
    let holes = "select max(id) - min(id) + 1 - count(*) from tenure.journal";
    assert!(number(&client, holes).await > 0, "the rollback has drawn a number");
}

/// S17: nobody dates a row before the last seal. Red without the stamping trigger.
#[tokio::test]
async fn a_writer_cannot_name_the_transaction_the_era_or_the_number_of_a_row() {
    let scene = Scene::new().await;
    let writer = scene.client().await;
    run(&writer, "begin").await;
    let forged = "insert into tenure.journal (era, at, event, jobs) values (9, now(), 6, '{}')
        returning (xid = pg_current_xact_id() and era = 1)::int::bigint";
    let stamped: i64 = writer.query_one(forged, &[]).await.expect("insert").get(0);
    assert_eq!(stamped, 1);
    run(&writer, "commit").await;
    let dated = "insert into tenure.journal (xid, at, event, jobs) values ('3', now(), 6, '{}')";
    let refused = writer.batch_execute(dated).await.expect_err("the xid is the transaction's own");
    assert!(said(&refused).starts_with("TN409 tenure.journal.xid is 3"), "{}", said(&refused));
    let numbered = "insert into tenure.journal (id, at, event, jobs) values (1, now(), 6, '{}')";
    let refused = writer.batch_execute(numbered).await.expect_err("the number is the table's own");
    assert!(said(&refused).starts_with("428C9"), "{}", said(&refused));
    scene.assert_sound().await;
}

/// Sealing reads young rows by id only, so a transaction's xid must be older than its ids. Red when the columns xid and id
/// change places.
#[tokio::test]
async fn a_row_gets_its_id_after_its_transaction_has_an_xid() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    for rows in [
        "values (now(), 6::smallint, '{}'::uuid[]), (now(), 6, '{}')",
        "select now(), 6, '{}' from generate_series(1, 9) n order by n",
    ] {
        let insert = format!("explain (verbose, costs off) insert into tenure.journal (at, event, jobs) {rows}");
        let plan = client.query(&insert, &[]).await.expect("explain");
        let plan: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
        let output = plan.iter().find(|line| line.contains("nextval")).expect("the id is drawn in the plan");
        let (xid, id) = (output.find("pg_current_xact_id()"), output.find("nextval("));
        assert!(xid.is_some() && xid < id, "{plan:#?}");
    }
}
