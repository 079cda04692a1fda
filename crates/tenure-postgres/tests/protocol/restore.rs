//! A dump of a database with every feature in use, restored into a younger cluster: all of it goes on.

use std::time::Duration;

use tenure_contract::fixture::success;
use tenure_contract::postgres_server::{Options, Postgres};
use tenure_core::cron::Timing;
use tenure_core::gate::GateRule;
use tenure_core::name::{KindName, TenantName};
use tenure_core::unique::{Policy, Unique};
use tenure_core::{EndpointId, JobId, Json, NewJob, RunId, RunState};
use tenure_postgres::{PgOptions, PgStore, tx};
use tenure_store::clock::Clock;
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::SetRule;
use tenure_store::journal::JournalPage;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::operate::{SetQueue, Word};
use tenure_store::record::Sight;
use tenure_store::run::{AdvancePage, Members, NewPartition, NewRun, PageFound};
use tenure_store::schedule::{Fired, SetSchedule, Template};
use tenure_store::user_tx::CompleteJob;
use tenure_store::webhook::{NewDelivery, NewEndpoint, PutDeliveries};
use tenure_store::{
    AdminStore, GateStore, JobStore, JournalStore, LeaseStore, RollupStore, RunStore, ScheduleStore, WebhookStore,
    audit,
};

use crate::home::{BURN, restore};
use crate::scene::{Scene, connect, number, run};

/// Leases end after this, by the clock of the scene.
const LEASE: Duration = Duration::from_secs(60);

/// A database in which everything is going on, and what is known of it.
struct Busy {
    scene: Scene,
    worker: tenure_core::WorkerId,
    run: RunId,
    consolidate: JobId,
    gated: JobId,
    behind: JobId,
    unique: NewJob,
    idempotent: NewJob,
    delivery: JobId,
}

fn gated(scene: &Scene) -> NewJob {
    NewJob { gate: Some("g".parse().expect("a gate")), queue: "gated".parse().expect("a queue"), ..scene.new_job() }
}

async fn claim(
    store: &PgStore,
    worker: tenure_core::WorkerId,
    queue: &str,
) -> Option<(tenure_core::LeaseNo, Vec<JobId>)> {
    let claim = ClaimJobs::new(worker, queue.parse().expect("a queue"), 50);
    let claimed = store.claim_jobs(claim).await.expect("claim")?;
    Some((claimed.lease, claimed.jobs.iter().map(|job| job.id).collect()))
}

/// Runs of pages, gates with permits, a schedule, usage, rollups, seals, keys, and a delivery, each in the middle.
async fn busy() -> Busy {
    let scene = Scene::new().await;
    run(&scene.client().await, BURN).await;
    let (store, worker) = (&scene.store, scene.worker("w").await);
    for queue in ["gated", "later"] {
        store.set_queue(SetQueue::new(queue.parse().expect("a queue"), LEASE)).await.expect("set");
    }
    // A run: one page of its partition is done and counted, the next one waits, another member is counted.
    let (page, next, item, consolidate) = (scene.new_job(), scene.new_job(), scene.new_job(), scene.new_job());
    let partition =
        NewPartition { name: "p".parse().expect("a name"), job: page.clone(), offset: 0, limit: 30, expected: None };
    let request = NewRun {
        id: RunId::from_uuid(*scene.new_id().as_uuid()),
        tenant: TenantName::default(),
        owner: None,
        source: None,
        members: Members { items: vec![item.clone()], partitions: vec![partition] },
        sealed: true,
        consolidate: Some(consolidate.clone()),
        fail_fast: false,
        tolerated: 0,
        deadline: None,
    };
    let run_id = request.id;
    store.create_run(request).await.expect("create a run");
    let (lease, _) = claim(store, worker, "default").await.expect("a page and an item");
    let mut client = scene.client().await;
    let user = client.transaction().await.expect("begin");
    let done = CompleteJob::new(worker, lease, page.id);
    tx::advance_page(&user, &AdvancePage { page: done, rows: 30, next: Some(next.id) }).await.expect("advance");
    user.commit().await.expect("commit");
    let used = Json::parse("usage", "{\"calls\": 2}").expect("JSON");
    let usage = Ending::Succeeded { result: None, usage: Some(used) };
    assert!(matches!(scene.end(worker, lease, item.id, usage).await, Ended::Now(_)));
    while store.fold_runs().await.expect("fold").more {}
    // A gate of one permit: a job has it, another one waits.
    let rule = Some(GateRule { concurrency: Some(1), ..GateRule::default() });
    store
        .set_rule(SetRule { pattern: "g".parse().expect("a pattern"), rule, word: Word::default() })
        .await
        .expect("set");
    // One has passed and left, so that the gate has folded something.
    let passed = gated(&scene);
    store.enqueue_jobs(vec![passed.clone()]).await.expect("enqueue");
    let (lease, _) = claim(store, worker, "gated").await.expect("it is due");
    scene.end(worker, lease, passed.id, success()).await;
    let (holder, behind) = (gated(&scene), gated(&scene));
    store.enqueue_jobs(vec![holder.clone()]).await.expect("enqueue");
    let (_, held) = claim(store, worker, "gated").await.expect("it is due");
    assert_eq!(held, [holder.id]);
    store.enqueue_jobs(vec![behind.clone()]).await.expect("enqueue");
    // A schedule, keys, and a delivery that is to be sent.
    let timing = Timing::new("* * * * * *".parse().expect("a cron"));
    let template = Template::new(KindName::new("noop").expect("a name"), Json::null());
    let (tenant, name) = (TenantName::default(), "s".parse().expect("a name"));
    store.set_schedule(SetSchedule { tenant, name, timing, template, word: Word::default() }).await.expect("set");
    let later = |job: NewJob| NewJob { queue: "later".parse().expect("a queue"), ..job };
    let unique = later(NewJob { unique: Some(Unique::new("k", Policy::WhileActive)), ..scene.new_job() });
    let idempotent = later(NewJob { idempotency_key: Some("once".to_owned()), ..scene.new_job() });
    store.enqueue_jobs(vec![unique.clone(), idempotent.clone()]).await.expect("enqueue");
    let delivery = put_delivery(&scene).await;
    // Some of it is sealed and summed.
    store.seal_journal().await.expect("seal").expect("there is something");
    while store.fold_rollups().await.expect("fold") > 0 {}
    scene.enqueue().await;
    Busy {
        worker,
        run: run_id,
        consolidate: consolidate.id,
        gated: holder.id,
        behind: behind.id,
        unique,
        idempotent,
        delivery,
        scene,
    }
}

async fn put_delivery(scene: &Scene) -> JobId {
    let endpoint = NewEndpoint {
        id: EndpointId::from_uuid(*scene.new_id().as_uuid()),
        tenant: TenantName::default(),
        url: Some("https://example.com/hook".into()),
        events: "job.*".parse().expect("events"),
        prefix: "X-Acme-".into(),
        secret: vec![1, 2, 3],
        word: Word::default(),
    };
    let (to, job) = (scene.store.create_endpoint(endpoint).await.expect("create").id, scene.new_id());
    let new = NewDelivery {
        job,
        endpoint: to,
        journal: 1,
        subject: job.to_string(),
        event_id: "evt_1".into(),
        event_type: "job.succeeded".into(),
        callback_url: None,
        trace: None,
        body: "{}".into(),
    };
    let at = scene.store.find_cursor().await.expect("a cursor");
    let request = PutDeliveries { from: at, to: at, deliveries: vec![new], failed: Vec::new() };
    assert!(scene.store.put_deliveries(request).await.expect("put"));
    job
}

/// Restored and rehomed; `forget` is run before the rehoming.
async fn restored(busy: &Busy, forget: &str) -> (Postgres, PgStore) {
    let younger = Postgres::start(&Options::default()).expect("start another cluster");
    let url = restore(&busy.scene.database.url, &younger, &busy.scene.database.name);
    run(&connect(&url).await, forget).await;
    PgStore::rehome(&url, false).await.expect("rehome");
    let options = PgOptions { clock: Clock::Manual(busy.scene.clock.clone()), ..PgOptions::default() };
    (younger, PgStore::connect(&url, options).await.expect("connect"))
}

/// Claims and ends what is due in every queue, folds and seals, until nothing is left; answers what was claimed.
async fn work_off(store: &PgStore, worker: tenure_core::WorkerId, url: &str) -> Vec<JobId> {
    let mut worked = Vec::new();
    let queues: Vec<String> =
        store.list_queues().await.expect("queues").into_iter().map(|queue| queue.name.to_string()).collect();
    let mut client = connect(url).await;
    loop {
        let before = worked.len();
        for queue in &queues {
            let Some((lease, jobs)) = claim(store, worker, queue).await else { continue };
            for job in jobs {
                worked.push(job);
                let page = store.begin_page(job).await;
                if matches!(page, Ok(PageFound::Next { .. })) {
                    let user = client.transaction().await.expect("begin");
                    let last = AdvancePage { page: CompleteJob::new(worker, lease, job), rows: 3, next: None };
                    tx::advance_page(&user, &last).await.expect("advance");
                    user.commit().await.expect("commit");
                    continue;
                }
                let request = EndJobs { worker, lease, jobs: vec![EndJob::new(job, success())] };
                assert!(matches!(store.end_jobs(request).await.expect("end")[..], [Ended::Now(_)]));
            }
        }
        while store.fold_runs().await.expect("fold").more {}
        if worked.len() == before {
            return worked;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_goes_on_with_every_feature() {
    let busy = busy().await;
    let (younger, store) = restored(&busy, "select").await;
    let url = younger.url("restored");
    let client = connect(&url).await;
    // The holder of the permit is gone: its lease runs out, and the permit comes back.
    busy.scene.advance(2 * LEASE);
    let lost: Vec<JobId> = store.reclaim_jobs(None, 100).await.expect("reclaim").iter().map(|lost| lost.job).collect();
    assert_eq!(lost, [busy.gated]);
    // Keys hold, and keys that are repeated find their jobs.
    for job in [&busy.unique, &busy.idempotent] {
        let again = NewJob { id: busy.scene.new_id(), ..job.clone() };
        let stored = store.enqueue_jobs(vec![again]).await.expect("enqueue");
        assert!(
            matches!(stored[..], [found] if found != Enqueued::Created(found.job()) && found.job() == job.id),
            "{stored:?}"
        );
    }
    // The schedule fires.
    let due = store.due_schedules(9).await.expect("due").due;
    let fired = store.fire_schedule(due[0].decide(busy.scene.new_id())).await.expect("fire");
    assert!(matches!(fired, Fired::Stored(_)), "{fired:?}");

    let worked = work_off(&store, busy.worker, &url).await;
    for (what, job) in
        [("held", busy.gated), ("behind", busy.behind), ("consolidate", busy.consolidate), ("send", busy.delivery)]
    {
        assert!(worked.contains(&job), "{what}: {worked:?}");
    }
    let shown = store.show_run(&Sight::All, busy.run).await.expect("show").run;
    assert_eq!((shown.state, shown.done), (RunState::Succeeded, 2), "the run is counted and consolidated");

    // What was used before and after is summed, and so are the charts.
    while store.fold_usage().await.expect("fold") > 0 {}
    assert_eq!(number(&client, "select sum(amount) from tenure.usages").await, 2);
    while store.seal_journal().await.expect("seal").is_some() {}
    while store.fold_rollups().await.expect("fold") > 0 {}
    let summed = number(&client, "select sum(claimed) from tenure.rollup where step = 3 and tenant = 0").await;
    let claimed = number(&client, "select sum(cardinality(jobs)) from tenure.journal where event = 1").await;
    assert_eq!(summed, claimed, "every claim is in the charts, once");
    // The dispatcher of webhooks reads on: the seals of both eras, from its cursor.
    let cursor = store.find_cursor().await.expect("a cursor").seal;
    let (mut read, seals) = (0, store.list_seals(cursor - 1, 100).await.expect("seals"));
    for seal in &seals {
        let page = JournalPage { seal: Some(seal.no), after: 0, limit: 10_000 };
        read += store.read_journal(page).await.expect("read").len();
    }
    let all = number(&client, "select count(*) from tenure.journal").await;
    assert_eq!((read as i64, cursor), (all, 1), "all rows lie under a seal");
    let report = audit::verify(&store, None, |_| {}).await.expect("verify");
    assert!(report.findings.is_empty() && report.tail == 0, "{report:#?}");
    let violations = store.find_violations(10).await.expect("find violations");
    assert!(violations.is_empty(), "{violations:#?}");
}

/// The mutant: rehomed as before, a run is not counted any more and its consolidate waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_reset_of_the_fold_a_restored_run_hangs() {
    let busy = busy().await;
    let forget = "do $do$ declare source text := pg_get_functiondef('tenure.positions'::regproc); begin
        if strpos(source, 'update tenure.run_fold set folded_to') = 0 then raise exception 'no such reset'; end if;
        execute replace(source, 'update tenure.run_fold set folded_to = ''0''', 'select');
      end $do$";
    let (younger, store) = restored(&busy, forget).await;
    busy.scene.advance(2 * LEASE);
    let worked = work_off(&store, busy.worker, &younger.url("restored")).await;
    assert!(!worked.contains(&busy.consolidate), "the fold looks below a transaction of another cluster");
    let found = store.find_violations(10).await.expect("find violations");
    assert!(found.iter().any(|violation| violation.invariant == "R3"), "{found:#?}");
}
