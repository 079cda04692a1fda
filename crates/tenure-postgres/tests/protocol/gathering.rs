//! Enqueues that come at the same time share a transaction, and nothing else.

use tenure_core::unique::Policy;
use tenure_core::{JobId, NewJob, Unique};
use tenure_postgres::mutant::Mutant;
use tenure_postgres::{PgOptions, tx};
use tenure_store::enqueue::Enqueued;
use tenure_store::{JobStore, StoreError};
use tokio::task::JoinHandle;

use crate::scene::{Scene, mutate, number, run, until};

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

fn is_new(stored: Enqueued) -> bool {
    matches!(stored, Enqueued::Created(_))
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
    let answers = together(&scene, jobs).await;
    // Either of the two may come first.
    let of_key = |n: usize| answers[n].as_ref().expect("stored or found")[0];
    assert_eq!(of_key(5).job(), of_key(8).job());
    assert_ne!(is_new(of_key(5)), is_new(of_key(8)));
    for (n, answer) in answers.into_iter().enumerate() {
        match (n, answer) {
            (6, Err(StoreError::Invalid(_))) => {}
            (5 | 8, _) => {}
            (_, answer) => assert!(matches!(answer.as_deref(), Ok([Enqueued::Created(_)])), "{n}: {answer:?}"),
        }
    }
    assert_eq!(number(&scene.client().await, "select count(*) from tenure.job").await, 11);
}

/// A tenant keeps on asking for more than it may have. Red when what it asks for travels with that of others again and
/// again, which is refused as a whole each time, or never travels with others again.
#[tokio::test]
async fn who_met_a_quota_travels_alone_until_there_is_room() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    // A sequence is not rolled back: it counts the calls that are refused.
    run(&look, "create sequence tenure.refused; select tenure.set_tenant('greedy', 1, null, null, null); insert into tenure.queue (name, fair, lined) values ('mail', true, true)").await;
    mutate(&look, "tenure.refuse_beyond_quota", "if found then", "if found then perform nextval('tenure.refused');")
        .await;
    let of = |tenant: &str| NewJob {
        tenant: tenant.parse().expect("a name"),
        queue: "mail".parse().expect("a name"),
        ..scene.new_job()
    };
    let counted = "coalesce((select last_value from pg_sequences where sequencename = 'refused'), 0)";
    scene.store.enqueue_jobs(vec![of("greedy")]).await.expect("the one it may have");
    for round in 0..3 {
        let before = number(&look, counted).await;
        let jobs = (0..12).map(|n| of(if n % 2 == 0 { "modest" } else { "greedy" })).collect();
        for (n, answer) in together(&scene, jobs).await.into_iter().enumerate() {
            match (n % 2, answer) {
                (0, Ok(stored)) => assert!(is_new(stored[0]), "{n}"),
                (1, Err(StoreError::Full(_))) => {}
                (_, answer) => panic!("{n}: {answer:?}"),
            }
        }
        let refused = number(&look, counted).await - before;
        assert!(round == 0 || refused == 6, "six were refused, by {refused} calls in round {round}");
    }
    run(&look, "update tenure.tenant set quota = 100 where name = 'greedy'").await;
    scene.store.enqueue_jobs(vec![of("greedy")]).await.expect("there is room");
    let answers = together(&scene, (0..20).map(|_| of("greedy")).collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let of_greedy = "from tenure.job j join tenure.tenant t on t.id = j.tenant where t.name = 'greedy'";
    let transactions = number(&look, &format!("select count(distinct j.xmin::text) {of_greedy}")).await;
    assert!((3..=6).contains(&transactions), "22 enqueues in {transactions} transactions");
}

/// One of them has the id of a job in an open transaction: only that one waits for the transaction, and is refused. Red when
/// a lock timeout fails the whole call.
#[tokio::test]
async fn a_lock_in_company_is_met_by_one() {
    let scene = Scene::new().await;
    let jobs: Vec<NewJob> = (0..12).map(|_| scene.new_job()).collect();
    let user = scene.client().await;
    scene.enqueue().await;
    run(&user, "begin").await;
    tx::enqueue_within(&user, &[jobs[5].clone()]).await.expect("enqueue");
    let (store, first) = (scene.store.clone(), jobs[0].clone());
    store.enqueue_jobs(vec![first]).await.expect("enqueue");
    // The first two travel alone; those behind them travel together.
    let tasks: Vec<Stored> = jobs[1..]
        .iter()
        .cloned()
        .map(|job| {
            let store = scene.store.clone();
            tokio::spawn(async move { store.enqueue_jobs(vec![job]).await })
        })
        .collect();
    for (n, task) in (1..).zip(tasks) {
        let answer = task.await.expect("no panic");
        assert_eq!(answer.is_err(), n == 5, "{n}: {answer:?}");
        assert!(answer.is_ok_and(|stored| is_new(stored[0])) || n == 5, "{n}");
    }
    run(&user, "commit").await;
    assert_eq!(number(&user, "select count(*) from tenure.job").await, 13);
    scene.assert_sound().await;
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
