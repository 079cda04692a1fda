//! Names that an open transaction brings: a tenant, a queue, the first gate of a queue. It holds up no other enqueue of the
//! same names, and when it commits or rolls back, each name is there once.

use std::time::Duration;

use tenure_core::unique::Policy;
use tenure_core::{JobId, NewJob, QueueName, Unique, WorkerId};
use tenure_postgres::tx;
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::ClaimJobs;
use tenure_store::operate::SetQueue;
use tenure_store::record::Sight;
use tenure_store::run::{Members, NewRun};
use tenure_store::{AdminStore, JobStore, LeaseStore, RunStore};
use tokio_postgres::Client;

use crate::scene::{Scene, number, pid, run, said, soon, text, until, until_blocked};

/// A job with these names; an empty one is the default, or none.
fn job_in(scene: &Scene, tenant: &str, queue: &str, gate: &str) -> NewJob {
    let mut job = scene.new_job();
    if !tenant.is_empty() {
        job.tenant = tenant.parse().expect("a tenant");
    }
    if !queue.is_empty() {
        job.queue = queue.parse().expect("a queue");
    }
    if !gate.is_empty() {
        job.gate = Some(gate.parse().expect("a gate"));
    }
    job
}

/// Stores a job in the open transaction of a user.
async fn bring(user: &Client, job: &NewJob) {
    let stored = soon("enqueue within", tx::enqueue_within(user, std::slice::from_ref(job))).await.expect("enqueue");
    assert_eq!(stored, [Enqueued::Created(job.id)]);
}

/// Stores a job by the store, which waits for no lock longer than a second.
async fn store(scene: &Scene, job: &NewJob) {
    let stored = soon("enqueue", scene.store.enqueue_jobs(vec![job.clone()])).await.expect("enqueue");
    assert_eq!(stored, [Enqueued::Created(job.id)]);
}

/// Everything that is due in a queue. Users' transactions read the server's clock, which has moved on.
async fn claim_all(scene: &Scene, worker: WorkerId, queue: &QueueName) -> Vec<JobId> {
    let mut jobs = Vec::new();
    scene.advance(Duration::from_secs(60));
    let request = ClaimJobs::new(worker, queue.clone(), 100);
    while let Some(claimed) = scene.store.claim_jobs(request.clone()).await.expect("claim") {
        jobs.extend(claimed.jobs.iter().map(|job| job.id));
    }
    jobs.sort_unstable();
    jobs
}

async fn assert_named_once(client: &Client, table: &str, name: &str) {
    assert_eq!(
        number(client, &format!("select count(*) from tenure.{table} where name = '{name}'")).await,
        1,
        "{name}"
    );
}

/// Red when an enqueue inserts or updates the shared row of a name in its own transaction: the second enqueue then waits
/// for the user, and its lock timeout refuses it.
#[tokio::test]
async fn an_open_transaction_that_brings_a_name_holds_up_nobody() {
    for (tenant, queue, gate) in [("acme", "", ""), ("", "mail", ""), ("", "", "api"), ("acme", "mail", "api")] {
        for end in ["commit", "rollback"] {
            let scene = Scene::new().await;
            let (user, look) = (scene.client().await, scene.client().await);
            let worker = scene.worker("w").await;
            let job = || job_in(&scene, tenant, queue, gate);
            let (first, second, third) = (job(), job(), job());
            run(&user, "begin").await;
            bring(&user, &first).await;

            store(&scene, &second).await;
            // What is committed is claimed by the queue's name while the other transaction is open.
            assert_eq!(claim_all(&scene, worker, &second.queue).await, [second.id], "{tenant} {queue} {gate} {end}");
            assert_eq!(scene.show(second.id).await.summary.tenant, second.tenant);
            store(&scene, &third).await;

            run(&user, end).await;
            let mut left = vec![third.id];
            left.extend((end == "commit").then_some(first.id));
            left.sort_unstable();
            assert_eq!(claim_all(&scene, worker, &second.queue).await, left, "{tenant} {queue} {gate} {end}");
            assert_named_once(&look, "tenant", second.tenant.as_str()).await;
            assert_named_once(&look, "queue", second.queue.as_str()).await;
            assert_eq!(number(&look, "select count(*) from tenure.new_name").await, 0);
            scene.assert_sound().await;
        }
    }
}

/// Of names that only a transaction has brought that was rolled back, as a whole or to a savepoint, nothing is left.
#[tokio::test]
async fn names_of_a_transaction_that_is_rolled_back_are_gone() {
    let scene = Scene::new().await;
    let user = scene.client().await;
    run(&user, "begin").await;
    bring(&user, &job_in(&scene, "gone", "gone", "api")).await;
    run(&user, "rollback").await;

    run(&user, "begin; savepoint s").await;
    bring(&user, &job_in(&scene, "undone", "undone", "")).await;
    run(&user, "rollback to s").await;
    let kept = job_in(&scene, "kept", "kept", "");
    bring(&user, &kept).await;
    run(&user, "commit").await;

    let names = "select string_agg(name, ' ' order by name) from tenure.queue";
    assert_eq!(text(&user, names).await, "default kept");
    assert_eq!(text(&user, &names.replace("queue", "tenant")).await, "default kept");
    assert_eq!(number(&user, "select count(*) from tenure.queue where lined").await, 0);
    let worker = scene.worker("w").await;
    assert_eq!(claim_all(&scene, worker, &kept.queue).await, [kept.id]);
    scene.assert_sound().await;
}

/// Red when names are inserted as they come: each transaction waits for the other's, and one is ended as a deadlock. At
/// the commit they are entered in one order.
#[tokio::test]
async fn two_transactions_that_bring_two_names_in_opposite_order_do_not_deadlock() {
    let scene = Scene::new().await;
    let (one, two) = (scene.client().await, scene.client().await);
    let worker = scene.worker("w").await;
    let mut jobs = Vec::new();
    for user in [&one, &two] {
        run(user, "begin").await;
    }
    for (user, queue) in [(&one, "a"), (&two, "b"), (&one, "b"), (&two, "a")] {
        let job = job_in(&scene, queue, queue, "");
        bring(user, &job).await;
        jobs.push(job.id);
    }
    let (first, second) =
        tokio::join!(soon("commit", one.batch_execute("commit")), soon("commit", two.batch_execute("commit")));
    first.expect("the first commit");
    second.expect("the second commit");
    assert_eq!(claim_all(&scene, worker, &"a".parse().expect("a queue")).await, [jobs[0], jobs[3]]);
    assert_eq!(claim_all(&scene, worker, &"b".parse().expect("a queue")).await, [jobs[1], jobs[2]]);
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(number(&one, deadlocks).await, 0);
    scene.assert_sound().await;
}

/// Plain SQL has the same form as ever, and a transaction sees its own jobs by their names before it commits.
#[tokio::test]
async fn a_transaction_sees_the_names_that_it_brings() {
    let scene = Scene::new().await;
    let (one, two) = (scene.client().await, scene.client().await);
    let enqueue = "select job::text from tenure.enqueue('noop', queue => 'mail', tenant => 'acme', gate => 'api')";
    let mine = "select count(*) from tenure.jobs where queue = 'mail' and tenant = 'acme' and gate = 'api'";
    for user in [&one, &two] {
        run(user, "begin").await;
        for jobs in 1..=2 {
            let job = text(user, enqueue).await;
            assert_eq!(number(user, mine).await, jobs);
            assert_eq!(text(user, &format!("select queue from tenure.status('{job}')")).await, "mail");
        }
    }
    run(&one, "commit").await;
    assert_eq!(number(&two, mine).await, 4, "its own, and those of the other transaction");
    text(&two, enqueue).await;
    assert_eq!(number(&two, mine).await, 5);
    run(&two, "commit").await;
    assert_eq!(number(&one, mine).await, 5);
    assert_named_once(&one, "queue", "mail").await;
    assert_named_once(&one, "tenant", "acme").await;
    scene.assert_sound().await;
}

/// Names may derive the same id; each has a row and an id of its own. Red when the commit does not compare names: the
/// first transaction's jobs would then belong to the other tenant.
#[tokio::test]
async fn of_two_names_with_the_same_derived_id_each_has_its_own_row() {
    let scene = Scene::new().await;
    let (user, look) = (scene.client().await, scene.client().await);
    let taken = |name: &str| {
        format!("insert into tenure.tenant (id, name) values (tenure.derived_id('{name}', 0), 'taken-{name}')")
    };
    run(&look, &taken("acme")).await;
    let job = job_in(&scene, "acme", "", "");
    store(&scene, &job).await;
    assert_eq!(
        number(&look, "select (id = tenure.derived_id('acme', 1))::int from tenure.tenant where name = 'acme'").await,
        1
    );
    assert_eq!(scene.show(job.id).await.summary.tenant, job.tenant);

    // The id is taken while a transaction that derived it is open: that one has to be run again.
    run(&user, "begin").await;
    bring(&user, &job_in(&scene, "late", "", "")).await;
    run(&look, &taken("late")).await;
    let refused = soon("commit", user.batch_execute("commit")).await.expect_err("refused");
    assert!(said(&refused).starts_with("40001 tenant `late` cannot be entered"), "{}", said(&refused));
    run(&user, "begin").await;
    bring(&user, &job_in(&scene, "late", "", "")).await;
    run(&user, "commit").await;
    assert_eq!(
        number(&look, "select (id = tenure.derived_id('late', 1))::int from tenure.tenant where name = 'late'").await,
        1
    );
    scene.assert_sound().await;
}

/// The library's own enqueue is run again by the library.
#[tokio::test]
async fn an_enqueue_that_loses_its_derived_id_is_tried_again_unseen() {
    let scene = Scene::new().await;
    let (gate, look) = (scene.client().await, scene.client().await);
    run(&gate, "begin; insert into tenure.queue (id, name) values (tenure.derived_id('mail', 0), 'other')").await;
    let (store, job) = (scene.store.clone(), job_in(&scene, "", "mail", ""));
    let (id, queue) = (job.id, job.queue.clone());
    let stored = tokio::spawn(async move { store.enqueue_jobs(vec![job]).await });
    let waiting =
        "select count(*) = 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    until(&look, "the commit waits", waiting).await;
    run(&gate, "commit").await;
    assert_eq!(soon("enqueue", stored).await.expect("no panic").expect("enqueue"), [Enqueued::Created(id)]);
    let worker = scene.worker("w").await;
    assert_eq!(claim_all(&scene, worker, &queue).await, [id]);
    scene.assert_sound().await;
}

/// An operator sets up a queue, and a run is created, while a transaction that brings the same names is open.
#[tokio::test]
async fn other_verbs_do_not_wait_for_a_transaction_that_brings_their_names() {
    let scene = Scene::new().await;
    let (user, look) = (scene.client().await, scene.client().await);
    let first = job_in(&scene, "acme", "mail", "");
    run(&user, "begin").await;
    bring(&user, &first).await;

    let lease = Duration::from_secs(7);
    let queue = SetQueue { fair: Some(true), ..SetQueue::new(first.queue.clone(), lease) };
    soon("set the queue", scene.store.set_queue(queue)).await.expect("set the queue");
    let item = job_in(&scene, "acme", "mail", "");
    let new_run = NewRun {
        id: tenure_core::RunId::from_uuid(*scene.new_id().as_uuid()),
        tenant: item.tenant.clone(),
        owner: None,
        source: None,
        members: Members { items: vec![item.clone()], ..Members::default() },
        sealed: true,
        consolidate: None,
        fail_fast: false,
        tolerated: 0,
        deadline: None,
    };
    let of_run = new_run.id;
    soon("create a run", scene.store.create_run(new_run)).await.expect("create a run");
    run(&user, "commit").await;

    assert_named_once(&look, "queue", "mail").await;
    assert_named_once(&look, "tenant", "acme").await;
    let settings =
        "select lease_ttl_ms || ' ' || fair || ' ' || lined || ' ' || parted from tenure.queue where name = 'mail'";
    assert_eq!(text(&look, settings).await, "7000 true true true");
    let sight = Sight::Tenant(item.tenant.clone());
    assert_eq!(scene.store.show_run(&sight, of_run).await.expect("show").tenant, item.tenant);
    let worker = scene.worker("w").await;
    let mut both = vec![first.id, item.id];
    both.sort_unstable();
    assert_eq!(claim_all(&scene, worker, &first.queue).await, both);
    scene.assert_sound().await;
}

/// A producer with few rights, whose role is gone when it commits.
#[tokio::test]
async fn a_producers_names_are_entered_whatever_its_role_is_at_the_commit() {
    let scene = Scene::new().await;
    scene.store.install_roles().await.expect("install roles");
    let user = scene.client().await;
    for (queue, before_commit) in [("one", "select"), ("two", "set local role tenure_reader")] {
        run(&user, "begin; set local role tenure_producer").await;
        let enqueue = format!(
            "select job::text from tenure.enqueue('noop', queue => '{queue}', tenant => '{queue}', gate => 'api')"
        );
        text(&user, &enqueue).await;
        run(&user, &format!("{before_commit}; commit")).await;
        assert_named_once(&user, "queue", queue).await;
        assert_named_once(&user, "tenant", queue).await;
    }
    run(&user, "begin; set local role tenure_producer").await;
    let refused = user.batch_execute("insert into tenure.queue (name) values ('three')").await.expect_err("refused");
    assert!(said(&refused).starts_with("42501"), "{}", said(&refused));
    run(&user, "rollback").await;
    scene.assert_sound().await;
}

/// A transaction with an old snapshot cannot see who entered its name meanwhile: it is to be run again, as ever under
/// these isolation levels. Alone it is not refused.
#[tokio::test]
async fn a_transaction_with_an_old_snapshot_is_refused_only_when_its_name_was_entered_meanwhile() {
    for isolation in ["repeatable read", "serializable"] {
        let scene = Scene::new().await;
        let user = scene.client().await;
        run(&user, &format!("begin isolation level {isolation}")).await;
        bring(&user, &job_in(&scene, "alone", "alone", "")).await;
        run(&user, "commit").await;

        run(&user, &format!("begin isolation level {isolation}; select from tenure.queue")).await;
        store(&scene, &job_in(&scene, "", "met", "")).await;
        bring(&user, &job_in(&scene, "", "met", "")).await;
        let refused = soon("commit", user.batch_execute("commit")).await.expect_err("refused");
        assert!(said(&refused).starts_with("40001"), "{isolation}: {}", said(&refused));
        scene.assert_sound().await;
    }
}

/// Two transactions that bring a tenant together with the same key: the second waits for the first, as ever.
#[tokio::test]
async fn of_two_transactions_that_bring_a_tenant_and_the_same_key_the_second_finds_the_firsts_job() {
    let scene = Scene::new().await;
    let keyed = || NewJob { unique: Some(Unique::new("k", Policy::WhileActive)), ..job_in(&scene, "acme", "", "") };
    let (one, two, look) = (scene.client().await, scene.client().await, scene.client().await);
    let (first, second) = (keyed(), keyed());
    run(&one, "begin").await;
    bring(&one, &first).await;
    let pid = pid(&two).await;
    let waits = tokio::spawn(async move { tx::enqueue_within(&two, &[second]).await });
    until_blocked(&look, pid).await;
    run(&one, "commit").await;
    let found = soon("the second", waits).await.expect("no panic").expect("enqueue");
    assert!(matches!(found[..], [Enqueued::Found { job, .. }] if job == first.id), "{found:?}");
    scene.assert_sound().await;
}
