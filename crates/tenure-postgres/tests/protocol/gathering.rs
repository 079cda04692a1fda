//! Enqueues that come at the same time share a transaction, and nothing else.

use tenure_core::unique::Policy;
use tenure_core::{JobId, NewJob, Unique};
use tenure_postgres::PgOptions;
use tenure_postgres::mutant::Mutant;
use tenure_store::enqueue::Enqueued;
use tenure_store::{JobStore, StoreError};
use tokio::task::JoinHandle;

use crate::scene::{Scene, number, run, until};

type Stored = JoinHandle<Result<Vec<Enqueued>, StoreError>>;

/// Sends enqueues of which none can be stored before all were sent; answers them in order.
async fn together(scene: &Scene, jobs: Vec<NewJob>) -> Vec<Result<Vec<Enqueued>, StoreError>> {
    let gate = scene.client().await;
    // The names are stored before: nothing but the jobs is to be waited for.
    scene.enqueue().await;
    run(&gate, "begin; lock table tenure.job in exclusive mode").await;
    let tasks: Vec<Stored> = jobs
        .into_iter()
        .map(|job| {
            let store = scene.store.clone();
            tokio::spawn(async move { store.enqueue_jobs(vec![job]).await })
        })
        .collect();
    let look = scene.client().await;
    let waiting =
        "select count(*) > 0 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    until(&look, "a call waits", waiting).await;
    run(&gate, "commit").await;
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("no panic"));
    }
    answers
}

#[tokio::test]
async fn enqueues_that_meet_share_a_transaction() {
    let scene = Scene::new().await;
    let jobs: Vec<NewJob> = (0..30).map(|_| scene.new_job()).collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let answers = together(&scene, jobs).await;
    for (id, answer) in ids.iter().zip(answers) {
        assert_eq!(answer.expect("stored"), [Enqueued::Created(*id)]);
    }
    let transactions = number(&scene.client().await, "select count(distinct xmin::text) from tenure.job").await;
    assert!((2..=4).contains(&transactions), "30 enqueues and the first one in {transactions} transactions");
}

/// One of them is refused, and two have one key, which travel alone: whoever caused it hears of it, nobody else does.
#[tokio::test]
async fn a_refusal_in_company_is_heard_by_nobody_else() {
    let scene = Scene::new().await;
    let keyed = || NewJob { unique: Some(Unique::new("one", Policy::WhileActive)), ..scene.new_job() };
    let mut jobs: Vec<NewJob> = (0..12).map(|_| scene.new_job()).collect();
    jobs[5] = keyed();
    jobs[6].id = JobId::from_parts(tenure_core::Timestamp::from_micros(0), [7; 10]);
    jobs[8] = keyed();
    let first = jobs[5].id;
    let answers = together(&scene, jobs).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match (n, answer) {
            (6, Err(StoreError::Invalid(_))) => {}
            (8, Ok(stored)) => assert_eq!(stored[0].job(), first),
            (_, answer) => assert!(matches!(answer.as_deref(), Ok([Enqueued::Created(_)])), "{n}: {answer:?}"),
        }
    }
    assert_eq!(number(&scene.client().await, "select count(*) from tenure.job").await, 11);
}

/// The caller that sent the call may stop waiting: the jobs of all are stored.
#[tokio::test]
async fn a_caller_that_stops_waiting_stops_nobody() {
    let scene = Scene::new().await;
    scene.enqueue().await;
    let gate = scene.client().await;
    run(&gate, "begin; lock table tenure.job in exclusive mode").await;
    let (store, job) = (scene.store.clone(), scene.new_job());
    let first = tokio::spawn(async move { store.enqueue_jobs(vec![job]).await });
    let waiting =
        "select count(*) = 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    until(&scene.client().await, "it waits", waiting).await;
    first.abort();
    run(&gate, "commit").await;
    until(&scene.client().await, "it is stored", "select count(*) = 2 from tenure.job").await;
}

/// Ids are held against the server's clock where nobody gives another: a row of another century would stay for ever.
async fn enqueue_off_the_clock(scene: &Scene) -> Result<Vec<Enqueued>, StoreError> {
    scene.enqueue().await;
    let id = JobId::from_parts(tenure_core::Timestamp::from_micros(0), [7; 10]);
    scene.store.enqueue_jobs(vec![scene.new_job(), NewJob { id, ..scene.new_job() }]).await
}

#[tokio::test]
async fn an_id_off_the_servers_clock_is_refused() {
    let scene = Scene::on_server_time(PgOptions::default()).await;
    let refused = enqueue_off_the_clock(&scene).await;
    assert!(matches!(&refused, Err(StoreError::Invalid(_))), "{refused:?}");
    assert_eq!(number(&scene.client().await, "select count(*) from tenure.job").await, 1);
}

#[tokio::test]
async fn without_its_bounds_a_plain_enqueue_stores_any_id() {
    let mutant = Some(Mutant { statement: "enqueue_plain", find: "i.id > m.first and i.id < m.last", replace: "true" });
    let scene = Scene::on_server_time(PgOptions { mutant, ..PgOptions::default() }).await;
    enqueue_off_the_clock(&scene).await.expect("stored");
}
