//! Runs and users' transactions that stay open: a page that is not committed holds up what it must, and nothing else.

use tenure_contract::fixture::{requeue, success};
use tenure_core::{JobId, Json, NewJob, RunId, RunState};
use tenure_postgres::tx;
use tenure_store::lease::Ending;
use tenure_store::record::Sight;
use tenure_store::run::{AdvancePage, Members, NewPartition, NewRun, OPEN_RUNS_MAX};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{JobStore, RunStore, StoreError};

use crate::scene::Scene;

fn partition(name: &str, job: &NewJob) -> NewPartition {
    NewPartition { name: name.parse().expect("a name"), job: job.clone(), offset: 0, limit: 30, expected: None }
}

fn sealed(scene: &Scene, members: Members) -> NewRun {
    NewRun {
        id: RunId::from_uuid(*scene.new_id().as_uuid()),
        tenant: Default::default(),
        owner: None,
        source: None,
        members,
        sealed: true,
        consolidate: Some(scene.new_job()),
        fail_fast: false,
        tolerated: 0,
        deadline: None,
    }
}

async fn fold_all(scene: &Scene) {
    while scene.store.fold_runs().await.expect("fold").more {}
}

async fn state(scene: &Scene, run: RunId) -> (RunState, u64) {
    let record = scene.store.show_run(&Sight::All, run).await.expect("show");
    (record.run.state, record.run.done)
}

async fn counts(scene: &Scene, run: RunId) -> (RunState, u64, u64) {
    let record = scene.store.show_run(&Sight::All, run).await.expect("show");
    (record.run.state, record.run.failed, record.run.canceled)
}

/// Somebody has canceled the consolidate of one run and does not commit: the other run is counted all the same. Folded
/// without savepoints and a short wait for locks, nobody is counted while the transaction is open.
#[tokio::test]
async fn a_run_that_somebody_holds_up_holds_up_no_other() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let items = [scene.new_job(), scene.new_job()];
    let [held, other] = items.clone().map(|item| sealed(&scene, Members { items: vec![item], ..Members::default() }));
    for run in [&held, &other] {
        scene.store.create_run(run.clone()).await.expect("create");
    }
    let claimed = scene.claim(worker, 9).await.expect("both are due");
    let mut client = scene.client().await;
    let user = client.transaction().await.expect("begin");
    let consolidate = *held.consolidate.as_ref().expect("it has one").id.as_uuid();
    user.execute("select tenure.cancel($1)", &[&consolidate]).await.expect("cancel");
    for item in &items {
        scene.end(worker, claimed.lease, item.id, success()).await;
    }

    assert_eq!(scene.store.fold_runs().await.expect("fold").opened, [other.id]);
    assert_eq!(state(&scene, held.id).await, (RunState::Queued, 0), "nothing of it is counted");
    user.rollback().await.expect("roll back");
    assert_eq!(scene.store.fold_runs().await.expect("fold").opened, [held.id]);
    scene.assert_sound().await;
}

/// A run fails fast while a page of it is about to commit: it does not wait for that, and neither does its sweep end
/// before the partition has. Where the sweep looks at jobs only, the next page stays open for ever.
#[tokio::test]
async fn a_page_that_commits_late_ends_with_its_run() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (page, broken, next) = (scene.new_job(), scene.new_job(), scene.new_job());
    let partitions = vec![partition("p", &page), partition("q", &broken)];
    let run = NewRun { fail_fast: true, ..sealed(&scene, Members { partitions, ..Members::default() }) };
    scene.store.create_run(run.clone()).await.expect("create");
    let claimed = scene.claim(worker, 9).await.expect("both are due");
    let mut client = scene.client().await;
    let user = client.transaction().await.expect("begin");
    let [result, usage] =
        [r#"{"rows": 30}"#, r#"{"calls": 2}"#].map(|text| Some(Json::parse("said", text).expect("JSON")));
    let said = CompleteJob {
        result: result.clone(),
        usage: usage.clone(),
        ..CompleteJob::new(worker, claimed.lease, page.id)
    };
    let request = AdvancePage { page: said, rows: 30, next: Some(next.id) };
    tx::advance_page(&user, &request).await.expect("advance");
    scene.end(worker, claimed.lease, broken.id, Ending::Failed { error: Json::null() }).await;
    fold_all(&scene).await;
    assert_eq!(counts(&scene, run.id).await, (RunState::Failed, 1, 0), "one of its partitions has not ended");
    user.commit().await.expect("commit");
    fold_all(&scene).await;
    assert_eq!(scene.state(next.id).await, "canceled");
    assert_eq!(counts(&scene, run.id).await, (RunState::Failed, 1, 1));
    // What was said with the page is kept with it.
    let shown = scene.store.show_job(&Sight::All, page.id).await.expect("show");
    assert_eq!((shown.attempts[0].result.clone(), shown.attempts[0].usage.clone()), (result, usage));
    scene.assert_sound().await;
}

/// A partition that had failed is revived and its page is about to commit: what the others say is counted meanwhile, but
/// the run is not given up. Settled all the same, it fails here.
#[tokio::test]
async fn a_run_of_which_something_is_unheard_decides_nothing() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (first, second) = (scene.new_job(), scene.new_job());
    let partitions = vec![partition("p", &first), partition("q", &second)];
    let run = sealed(&scene, Members { partitions, ..Members::default() });
    scene.store.create_run(run.clone()).await.expect("create");
    let claimed = scene.claim(worker, 9).await.expect("both are due");
    let lease = claimed.lease;
    scene.end(worker, lease, first.id, Ending::Failed { error: Json::null() }).await;
    scene.store.fold_runs().await.expect("fold");
    scene.store.requeue_job(requeue(first.id)).await.expect("requeue");
    let (again, revived) = scene.claim_one(worker).await;
    assert_eq!(revived, first.id);

    let mut client = scene.client().await;
    let user = client.transaction().await.expect("begin");
    let last = |lease, job: JobId| AdvancePage { page: CompleteJob::new(worker, lease, job), rows: 7, next: None };
    tx::advance_page(&user, &last(again, first.id)).await.expect("advance");
    scene.store.advance_page(last(lease, second.id)).await.expect("advance");
    let folded = scene.store.fold_runs().await.expect("fold");
    assert_eq!((folded.opened.len(), state(&scene, run.id).await), (0, (RunState::Running, 1)));
    user.commit().await.expect("commit");
    assert_eq!(scene.store.fold_runs().await.expect("fold").opened, [run.id]);
    scene.assert_sound().await;
}

/// Also where two sessions create the last one at once. Runs that have ended make room.
#[tokio::test]
async fn a_tenant_has_ten_thousand_open_runs_at_most() {
    let scene = Scene::new().await;
    scene.enqueue().await;
    scene.database.sql(&format!(
        "insert into tenure.run (id, tenant, state, sealed, fail_fast, tolerated, fan, created_at, deadline_asked)
         select gen_random_uuid(), (select id from tenure.tenant where name = 'default'), 0, true, false, 0, 0, now(), false
         from generate_series(2, {OPEN_RUNS_MAX})"
    ));
    let empty = || NewRun::new(RunId::from_uuid(*scene.new_id().as_uuid()));
    let (one, other) = tokio::join!(scene.store.create_run(empty()), scene.store.create_run(empty()));
    assert!(
        matches!((&one, &other), (Ok(_), Err(StoreError::Limit(_))) | (Err(StoreError::Limit(_)), Ok(_))),
        "{one:?} {other:?}"
    );
    match scene.store.create_run(empty()).await {
        Err(StoreError::Limit(text)) => assert_eq!(text, OPEN_RUNS_REFUSED),
        other => panic!("{other:?}"),
    }
    let of_another = NewRun { tenant: "acme".parse().expect("a name"), ..empty() };
    scene.store.create_run(of_another).await.expect("another tenant has room");
    scene
        .database
        .sql("update tenure.run set state = 4, finished_at = now() where id = (select id from tenure.run limit 1)");
    scene.store.create_run(empty()).await.expect("there is room again");
}

const OPEN_RUNS_REFUSED: &str = "open runs of tenant `default`: 10000 is the limit; \
                                 come again when some have ended, or cancel one with `tenure runs cancel RUN`";
