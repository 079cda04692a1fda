//! Fences across a failover, a recovery and a copy: no lease number, journal id or worker number is given out twice.
//!
//! Streaming is asynchronous, and a sequence writes its log 32 numbers ahead: a standby that misses more than that hands
//! the same numbers out again when it is promoted. Each test runs real clusters.

use std::collections::HashSet;

use tenure_contract::fixture::success;
use tenure_contract::postgres_backup::Backup;
use tenure_contract::postgres_server::{Options, Postgres, psql};
use tenure_core::seal::Anchor;
use tenure_core::{JobId, Json, KindName, LeaseNo, NewJob, QueueName, WorkerId};
use tenure_postgres::{Mode, PgOptions, PgStore};
use tenure_store::audit::{self, Finding};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended};
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};

use crate::scene::{Scene, connect, number, real_now, run, text};

/// More than a sequence logs ahead.
const LAG: usize = 100;
/// Claims that a copy or standby has seen.
const SEEN: usize = 40;
/// What a timeline adds to lease numbers.
const STEP: i64 = 1 << 32;

async fn open(server: &Postgres) -> PgStore {
    PgStore::connect(&server.admin_url(), PgOptions::default()).await.expect("connect")
}

async fn enqueue(store: &PgStore, jobs: usize) {
    let job = |n: usize| {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&(n as u64).to_be_bytes());
        NewJob::new(JobId::from_parts(real_now(), random), KindName::new("noop").expect("a name"), Json::null())
    };
    store.enqueue_jobs((0..jobs).map(job).collect()).await.expect("enqueue");
}

async fn register(store: &PgStore, name: &str) -> WorkerId {
    store.register_worker(&name.parse().expect("a name")).await.expect("register")
}

async fn claim(store: &PgStore, worker: WorkerId) -> Result<(LeaseNo, JobId), StoreError> {
    let claimed = store.claim_jobs(ClaimJobs::new(worker, QueueName::default(), 1)).await?.expect("a job is due");
    Ok((claimed.lease, claimed.jobs[0].id))
}

async fn claim_each(store: &PgStore, worker: WorkerId, claims: usize) -> Vec<(LeaseNo, JobId)> {
    let mut claimed = Vec::new();
    for _ in 0..claims {
        claimed.push(claim(store, worker).await.expect("claim"));
    }
    claimed
}

async fn end(store: &PgStore, worker: WorkerId, (lease, job): (LeaseNo, JobId)) -> Ended {
    let request = EndJobs { worker, lease, jobs: vec![EndJob::new(job, success())] };
    store.end_jobs(request).await.expect("end")[0]
}

fn count(server: &Postgres, sql: &str) -> i64 {
    psql(&server.admin_url(), sql).expect("ask").parse().expect("a number")
}

/// What processes of before still know.
struct Known {
    worker: WorkerId,
    newest_worker: WorkerId,
    claims: Vec<(LeaseNo, JobId)>,
    journal: i64,
    anchor: Anchor,
}

/// Work that is done on the original only, once a copy has been cut off from it.
async fn work_on(original: &Postgres, worker: WorkerId) -> Known {
    let store = open(original).await;
    let claims = claim_each(&store, worker, LAG).await;
    let newest_worker = register(&store, "lost").await;
    while store.seal_journal().await.expect("seal").is_some() {}
    let anchor = audit::verify(&store, None, |_| {}).await.expect("verify").head.expect("it is sealed");
    let journal = count(original, "select max(id) from tenure.journal");
    Known { worker, newest_worker, claims, journal, anchor }
}

/// A cluster with a schema, jobs, and claims.
async fn original(options: &Options) -> (Postgres, WorkerId) {
    let server = Postgres::start(options).expect("start");
    let store = open(&server).await;
    store.migrate().await.expect("migrate");
    enqueue(&store, SEEN + LAG + 100).await;
    (server, register(&store, "w").await)
}

/// The number of the newest lease that `known` has.
fn newest(known: &Known) -> LeaseNo {
    known.claims.iter().map(|(lease, _)| *lease).max().expect("there were claims")
}

/// Several processes start at once, claim, and draw nothing that was drawn before; each leaps once for all.
async fn assert_leapt(server: &Postgres, known: &Known, leaps: i64) {
    let processes = (0..8).map(|_| {
        let (url, worker) = (server.admin_url(), known.worker);
        tokio::spawn(async move {
            let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
            claim_each(&store, worker, 4).await
        })
    });
    let mut drawn = HashSet::new();
    for process in processes.collect::<Vec<_>>() {
        for (lease, _) in process.await.expect("a process") {
            assert!(lease > newest(known), "{lease} was given out before, up to {}", newest(known));
            assert!(drawn.insert(lease), "{lease} was given out twice");
        }
    }
    let store = open(server).await;
    assert_eq!(count(server, "select count(*) from tenure.journal where event = 9"), leaps);
    assert!(register(&store, "new").await > known.newest_worker);
    let reused = format!("select count(*) from tenure.journal where event = 9 and id <= {}", known.journal);
    assert_eq!(count(server, &reused), 0, "receivers of webhooks know the journal's ids");
    for report in &known.claims {
        let answer = end(&store, known.worker, *report).await;
        assert!(matches!(answer, Ended::LeaseLost { .. }), "an old report of {report:?}: {answer:?}");
    }
    while store.seal_journal().await.expect("seal").is_some() {}
    let findings = audit::verify(&store, Some(&known.anchor), |_| {}).await.expect("verify").findings;
    assert!(matches!(findings[..], [Finding::AnchorMissed { .. }]), "an old anchor is refused: {findings:?}");
    let violations = store.find_violations(10).await.expect("find violations");
    assert!(violations.is_empty(), "{violations:#?}");
}

/// A primary is lost, and its standby that lagged is promoted. `break_it` is run before.
async fn fail_over(break_it: &str) -> (Postgres, Known, PgStore) {
    let (mut primary, worker) = original(&Options::default()).await;
    psql(&primary.admin_url(), break_it).expect("prepare");
    let standby = primary.back_up().and_then(Backup::start_standby).expect("start a standby");
    claim_each(&open(&primary).await, worker, SEEN).await;
    standby.wait_for(&primary).expect("follow");
    standby.cut_off().expect("cut off");
    // A process that is connected to the standby: its sessions live on when that becomes a primary.
    let early = open(&standby).await;
    early.now().await.expect("a session");
    let known = work_on(&primary, worker).await;
    primary.stop().expect("stop");
    standby.promote().expect("promote");
    (standby, known, early)
}

/// Red without the leap: see the test below.
#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_that_lagged_draws_no_number_again() {
    let (standby, known, _early) = fail_over("select").await;
    assert_leapt(&standby, &known, 1).await;
    let drawn = count(&standby, "select last_value from tenure.lease_no_seq");
    assert!((STEP..2 * STEP).contains(&drawn), "one leap: {drawn}");
    assert_eq!(count(&standby, "select timeline from tenure.home"), 2);
}

/// A session that was opened on the standby has not been checked: the database checks its first claim.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_outlives_a_promotion_leaps_before_its_first_claim() {
    let (standby, known, early) = fail_over("select").await;
    assert_eq!(count(&standby, "select timeline from tenure.home"), 1, "no new session has come");
    let (lease, _) = claim(&early, known.worker).await.expect("claim");
    assert!(lease > newest(&known) && lease.0 > STEP, "{lease} after {}", newest(&known));
}

/// The mutant: the same without a leap gives numbers out twice, and takes a report of before.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_leap_a_promoted_standby_draws_numbers_again() {
    let blind = "create or replace function tenure.leap_to_timeline() returns void language sql as ''";
    let (standby, known, _early) = fail_over(blind).await;
    let store = open(&standby).await;
    // A whole batch under the first number: the job that had this number before is among them.
    let batch = ClaimJobs::new(known.worker, QueueName::default(), 50);
    store.claim_jobs(batch).await.expect("claim").expect("jobs are due");
    let again = claim_each(&store, known.worker, LAG).await;
    let before: HashSet<LeaseNo> = known.claims.iter().map(|(lease, _)| *lease).collect();
    let twice = again.iter().filter(|(lease, _)| before.contains(lease)).count();
    assert!(twice > 32, "{twice} numbers were given out twice");
    let mut accepted = 0;
    for report in &known.claims {
        accepted += usize::from(matches!(end(&store, known.worker, *report).await, Ended::Now(_)));
    }
    assert!(accepted > 0, "no report of before is taken");
}

/// Recovery to a point in time begins a timeline, as a promotion does.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_to_a_point_in_time_leaps_by_itself() {
    let (primary, worker) = original(&Options { archive: true, ..Options::default() }).await;
    let backup = primary.back_up().expect("back up");
    claim_each(&open(&primary).await, worker, SEEN).await;
    psql(&primary.admin_url(), "select pg_create_restore_point('here')").expect("a restore point");
    let known = work_on(&primary, worker).await;
    let client = connect(&primary.admin_url()).await;
    let file = text(&client, "pg_walfile_name(pg_switch_wal())").await;
    let archived = format!("(select last_archived_wal >= '{file}' from pg_stat_archiver)");
    crate::scene::until(&client, "the log is archived", &archived).await;
    let recovered = backup.start_recovered(&primary, "here").expect("recover");
    assert_leapt(&recovered, &known, 1).await;
}

/// A clone has the identity and the timeline of its original: nothing but the operator can tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_clone_that_is_told_to_leap_draws_none_of_its_originals_numbers() {
    let (primary, worker) = original(&Options::default()).await;
    claim_each(&open(&primary).await, worker, SEEN).await;
    let clone = primary.back_up().and_then(Backup::start_clone).expect("start a clone");
    let known = work_on(&primary, worker).await;
    let refused = PgStore::rehome(&clone.admin_url(), false).await;
    assert!(matches!(refused, Err(StoreError::Conflict(ref why)) if why.contains("--leap")), "{refused:?}");
    PgStore::rehome(&clone.admin_url(), true).await.expect("rehome");
    assert_leapt(&clone, &known, 1).await;
    // The original fails over next: it must stay below its copy.
    let client = connect(&primary.admin_url()).await;
    run(&client, "update tenure.home set timeline = timeline - 3").await;
    let (lease, _) = claim(&open(&primary).await, worker).await.expect("claim");
    assert!(
        lease.0 > 3 * STEP && lease.0 < count(&clone, "select min(no) from tenure.lease where no > 1000"),
        "{lease}"
    );
}

/// Whatever lies between, and however few rights a session has: the check is at the number itself.
#[tokio::test]
async fn every_kind_of_session_leaps_first_and_once() {
    for mode in [Mode::Direct, Mode::PollOnly, Mode::Pooled] {
        let scene = Scene::with(PgOptions { mode, ..PgOptions::default() }).await;
        let client = scene.client().await;
        let worker = scene.worker("w").await;
        let (first, _) = scene.claim_batch(worker, 1).await;
        run(&client, "update tenure.home set timeline = timeline - 1").await;
        let (second, _) = scene.claim_batch(worker, 1).await;
        let (third, _) = scene.claim_batch(worker, 1).await;
        assert!(second.0 > first.0 + STEP && third.0 - second.0 < 10, "{mode:?}: {first} {second} {third}");
        assert_eq!(number(&client, "select count(*) from tenure.journal where event = 9").await, 1, "{mode:?}");
        scene.assert_sound().await;
    }
}

/// A cancel of a waiting job draws a lease number without a lease.
#[tokio::test]
async fn a_number_that_is_drawn_without_a_claim_leaps_too() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let job = scene.enqueue().await;
    run(&client, "update tenure.home set timeline = timeline - 1").await;
    run(&client, &format!("select tenure.cancel('{job}')")).await;
    let lease = number(&client, "select lease from tenure.attempt").await;
    assert!(lease > STEP, "{lease}");
    let own =
        number(&client, "select count(*) from pg_proc where prosrc like '%nextval(''tenure.lease_no_seq'')%'").await;
    assert_eq!(own, 1, "draw_lease_no alone draws from the sequence by itself");
}

/// A dump of a cluster with a later timeline, restored under a store that stays open.
#[tokio::test]
async fn a_store_that_stays_open_sees_that_the_database_was_replaced() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    scene.enqueue().await;
    let worker = scene.worker("w").await;
    run(&client, "update tenure.home set timeline = timeline + 1").await;
    let refused = claim(&scene.store, worker).await.expect_err("the timeline went back");
    assert!(matches!(refused, StoreError::Schema(_)) && refused.to_string().contains("rehome"), "{refused:?}");
    run(&client, "update tenure.home set timeline = timeline - 1, system_identifier = 42").await;
    let leave = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    run(&client, leave).await;
    let mut said = scene.store.newest_lease().await;
    while !matches!(said, Err(StoreError::Schema(_))) {
        assert!(matches!(said, Err(StoreError::Unavailable(..))), "a new session works in another cluster: {said:?}");
        said = scene.store.newest_lease().await;
    }
}
