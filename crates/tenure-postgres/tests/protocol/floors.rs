//! Floors: a claim walks what is there, not what was, and nothing is hidden below a floor for long.

use std::time::Duration;

use tenure_contract::fixture::START;
use tenure_core::new_job::Due;
use tenure_core::{JobId, NewJob, Timestamp};
use tenure_store::JobStore;
use tenure_store::operate::{HastenJob, OpenJob, Word};
use tenure_store::record::Sight;
use tokio_postgres::Client;

use crate::scene::{Scene, number, run, until};

const BULK: u32 = 2_000;
const CLAIM: u32 = 50;

/// Drains one bulk enqueue while a snapshot is pinned; answers how many index entries the claims walked.
async fn entries_walked(scene: Scene) -> i64 {
    let worker = scene.worker("w").await;
    let jobs = (0..BULK).map(|_| scene.new_job()).collect();
    scene.store.enqueue_jobs(jobs).await.expect("enqueue");
    scene.advance(Duration::from_secs(1));
    let pinned = scene.client().await;
    run(&pinned, "begin isolation level repeatable read; select from tenure.ready limit 1").await;
    for _ in 0..BULK / CLAIM {
        assert_eq!(scene.claim(worker, CLAIM).await.expect("jobs are due").jobs.len(), CLAIM as usize);
    }
    // A backend tells its counts at the latest when it goes.
    let Scene { store, fixture, database } = scene;
    drop((store, fixture));
    run(&pinned, "commit").await;
    let ours = "select not exists (select from pg_stat_activity where datname = current_database() and application_name = 'tenure')";
    until(&pinned, "our backends are gone", ours).await;
    let walked =
        number(&pinned, "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'ready_claim'").await;
    drop(database);
    walked
}

/// S11: the floor is the pair (run_at, job), so it works inside one bulk enqueue, too: each claim walks what it takes and
/// what the one before took.
#[tokio::test]
async fn claims_under_a_pinned_snapshot_walk_over_each_dead_row_once() {
    let walked = entries_walked(Scene::new().await).await;
    assert!(walked >= i64::from(BULK), "{walked} entries: the count misses the claims");
    assert!(walked <= i64::from(3 * BULK), "{walked} entries were walked for {BULK} jobs");
}

/// S11, the mutant: a floor by `run_at` alone is none inside a bulk. Every claim walks over all that are dead.
#[tokio::test]
async fn a_floor_by_time_alone_walks_over_dead_rows_again_and_again() {
    const PAIR: &str = "end, ($5::uuid[])[p.priority + 1])";
    const TIME: &str = "end, '00000000-0000-0000-0000-000000000000'::uuid)";
    let walked = entries_walked(Scene::mutated("claim_jobs", PAIR, TIME).await).await;
    assert!(walked > i64::from(10 * BULK), "{walked} entries were walked for {BULK} jobs");
}

/// A job is enqueued after the clock went back behind the floor, and nobody sweeps.
async fn claim_after_the_clock_went_back(scene: &Scene) -> bool {
    let client = scene.client().await;
    let worker = scene.worker("w").await;
    scene.clock.set(START);
    scene.claim_batch(worker, 1).await;
    scene.clock.set(START.minus(Duration::from_secs(1_800)));
    let job = scene.enqueue().await;
    sweep_was_at(&client, scene.clock.now()).await;
    scene.claim(worker, 1).await.is_some_and(|claimed| claimed.jobs[0].id == job)
}

/// S12: a floor above the clock counts as unset.
#[tokio::test]
async fn a_floor_above_the_clock_hides_nothing() {
    let scene = Scene::new().await;
    assert!(claim_after_the_clock_went_back(&scene).await);
    scene.assert_sound().await;
}

/// S12, the mutant: a floor that counts whatever the clock says.
#[tokio::test]
async fn a_floor_that_always_counts_hides_what_comes_after_the_clock_went_back() {
    const BELOW: &str = "case when ($4::timestamptz[])[p.priority + 1] <= q.due then";
    const ALWAYS: &str = "case when ($4::timestamptz[])[p.priority + 1] is not null then";
    assert!(!claim_after_the_clock_went_back(&Scene::mutated("claim_jobs", BELOW, ALWAYS).await).await);
}

/// A row lies below the floor, and the clock says that the last sweep is tomorrow.
async fn sweep_after_the_clock_went_back(scene: &Scene) -> Option<JobId> {
    let client = scene.client().await;
    let worker = scene.worker("w").await;
    scene.clock.set(START);
    scene.claim_batch(worker, 1).await;
    let late = scene.new_id();
    run(&client, &enqueue_at(late, START.minus(Duration::from_secs(60)))).await;
    sweep_was_at(&client, START).await;
    assert_eq!(scene.claim(worker, 1).await, None, "the floor hides it until somebody sweeps");
    sweep_was_at(&client, START.plus(Duration::from_secs(86_400))).await;
    scene.claim(worker, 1).await.map(|claimed| claimed.jobs[0].id).inspect(|id| assert_eq!(*id, late))
}

/// S12: a sweep in the future elects.
#[tokio::test]
async fn a_sweep_in_the_future_does_not_keep_anybody_from_sweeping() {
    let scene = Scene::new().await;
    assert!(sweep_after_the_clock_went_back(&scene).await.is_some());
    scene.assert_sound().await;
}

/// S12, the mutant: `swept_at < now - gap` elects nobody until tomorrow.
#[tokio::test]
async fn an_election_that_only_looks_back_elects_nobody() {
    const WITHIN: &str = "swept_at not between coalesce($3::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms' and coalesce($3::timestamptz, clock_timestamp())";
    const BEFORE: &str = "swept_at < coalesce($3::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms'";
    let scene = Scene::mutated("elect_sweep", WITHIN, BEFORE).await;
    assert_eq!(sweep_after_the_clock_went_back(&scene).await, None);
}

/// S20: a transaction that was open while the floor rose past it. Red without sweeps: its job is never claimed.
#[tokio::test]
async fn a_job_committed_late_below_the_floor_is_found_by_the_sweep() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (producer, late) = (scene.client().await, scene.new_id());
    run(&producer, &format!("begin; {}", enqueue_at(late, scene.clock.now()))).await;
    scene.advance(Duration::from_secs(10));
    let (_, next) = (scene.claim_batch(worker, 1).await, scene.enqueue().await);
    run(&producer, "commit").await;
    assert_eq!(scene.claim_one(worker).await.1, next, "the floor is above the late one");
    assert_eq!(scene.claim(worker, 1).await, None);
    scene.advance(Duration::from_millis(2_001));
    assert_eq!(scene.claim_one(worker).await.1, late);
    scene.assert_sound().await;
}

/// S20: an opened job is due at its opening. Red when it keeps the time of its enqueue, which lies below the floor.
#[tokio::test]
async fn an_opened_job_is_above_the_floor() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let waiting = NewJob { due: Due::WhenOpened, ..scene.new_job() };
    let job = scene.store.enqueue_jobs(vec![waiting]).await.expect("enqueue")[0].job();
    scene.advance(Duration::from_secs(60));
    scene.claim_batch(worker, 1).await;
    let request = OpenJob { sight: Sight::All, job, word: Word::default() };
    scene.store.open_job(request).await.expect("open");
    assert_eq!(scene.show(job).await.summary.run_at, scene.clock.now());
    assert_eq!(scene.claim_one(worker).await.1, job);
    scene.assert_sound().await;
}

/// S20: a hastened job is due when it was asked for. Red when it gets a time below the floor.
#[tokio::test]
async fn a_hastened_job_is_above_the_floor() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let delayed = NewJob { due: Due::After(Duration::from_secs(3_600)), ..scene.new_job() };
    let job = scene.store.enqueue_jobs(vec![delayed]).await.expect("enqueue")[0].job();
    scene.advance(Duration::from_secs(60));
    scene.claim_batch(worker, 1).await;
    let request = HastenJob { sight: Sight::All, job, word: Word::default() };
    assert!(scene.store.hasten_job(request).await.expect("hasten"));
    assert_eq!(scene.claim_one(worker).await.1, job);
    scene.assert_sound().await;
}

/// Stores a job as a transaction would that began at `now`.
fn enqueue_at(id: JobId, now: Timestamp) -> String {
    format!(
        "select * from tenure.enqueue_rows(array['{id}']::uuid[], array['default'], array['default'], array['noop'], array['null']::jsonb[],
           array[2]::smallint[], array[null]::timestamptz[], array[null]::bigint[], array[false], array[5]::smallint[], array[8]::smallint[],
           array[null]::text[], array[null]::text[], array[null]::smallint[], array[null]::bigint[], array[null]::text[], array[null]::text[],
           array[null]::text[], '{now}')"
    )
}

async fn sweep_was_at(client: &Client, at: Timestamp) {
    run(client, &format!("update tenure.queue set swept_at = '{at}'")).await;
}
