//! Claims, locks and lost workers, by the seed's ten minutes and with a clock that the test moves.

use std::time::Duration;

use kit::testing::Place;
use tenure::core::QueueName;
use tenure::core::WorkerId;
use tenure::core::name::WorkerName;
use tenure::store::lease::{ClaimJobs, Claimed, ClaimedJob, EndJob, EndJobs, Ending, GateWord};
use tenure::{How, JobId, JobState, StoreError, Tx, row};

use crate::bed::Bed;

kit::on_each_store! { links::TABLES;
    a_claim_sets_everything_at_once_and_only_what_it_took_is_gone,
    a_claim_takes_at_most_ten_and_never_what_another_has,
    a_lock_is_over_after_ten_minutes_and_not_before,
    what_a_claim_has_not_committed_is_not_processed,
    a_worker_that_lost_its_lock_writes_nothing,
    a_worker_that_lost_its_lock_writes_nothing_of_a_failure,
    a_link_whose_workers_all_die_is_dead_and_its_import_ends,
}

async fn worker(bed: &Bed, name: &str) -> WorkerId {
    bed.client.store().register_worker(&WorkerName::new(name).unwrap()).await.unwrap()
}

/// Takes up to so many links, as a process that then says nothing.
async fn claim(bed: &Bed, worker: WorkerId, limit: u32) -> Option<Claimed> {
    let request = ClaimJobs::new(worker, QueueName::new(links::worker::QUEUE).unwrap(), limit);
    bed.client.store().claim_jobs(request).await.unwrap()
}

fn many(count: u32) -> Vec<String> {
    (0..count).map(|n| format!("http://site-{n}.example/")).collect()
}

async fn import_many(bed: &Bed, urls: &[String]) -> String {
    bed.import("ada", &urls.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Shows: S1.12 S1.18 S1.24 S1.34
async fn a_claim_sets_everything_at_once_and_only_what_it_took_is_gone(place: Place) {
    let bed = Bed::open(place).await;
    let urls = many(3);
    import_many(&bed, &urls).await;
    let first = worker(&bed, "worker-1").await;
    let claimed = claim(&bed, first, 2).await.unwrap();
    let now = bed.place.clock.now();
    assert_eq!(claimed.jobs.len(), 2);
    for job in &claimed.jobs {
        let record = bed.client.show(job.id).await.unwrap();
        assert_eq!((record.summary.state, record.summary.attempt), (JobState::Running, 1));
        assert_eq!(record.summary.locked_by.as_deref(), Some("worker-1"));
        assert_eq!((record.heartbeat_at, record.lease), (Some(now), Some(claimed.lease)));
        assert_eq!(record.lease_expires_at, Some(now.plus(Duration::from_secs(600))));
        assert_eq!(record.summary.id.as_uuid().get_version_num(), 7);
        assert!(record.summary.created_at <= now);
    }
    let mut queued = 0;
    for url in &urls {
        queued += usize::from(bed.show(url).await.summary.state == JobState::Queued);
    }
    assert_eq!(queued, 1);
}

/// Shows: S1.35
async fn what_a_claim_has_not_committed_is_not_processed(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    bed.import("ada", &[url]).await;
    // On Postgres it is refused as it commits, when all is written.
    let (refuse, allow): (&[&'static str], _) = match bed.database().is_postgres() {
        true => (
            &[
                "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$",
                "create constraint trigger refuse after insert on tenure.lease deferrable initially deferred \
                 for each row execute function refuse()",
            ],
            "drop trigger refuse on tenure.lease",
        ),
        false => (
            &["create trigger refuse after insert on lease begin select raise(rollback, 'no'); end"],
            "drop trigger refuse",
        ),
    };
    for statement in refuse {
        bed.database().execute(statement, Vec::new()).await.unwrap();
    }
    bed.worker.run_until_idle().await.unwrap_err();
    let job = bed.show(url).await.summary;
    assert_eq!((job.state, job.attempt, job.locked_by), (JobState::Queued, 0, None));
    assert_eq!(bed.world.domains().calls(), 0);
    bed.database().execute(allow, Vec::new()).await.unwrap();
    bed.run().await;
    assert_eq!((bed.calls(url), bed.show(url).await.summary.attempt), (1, 1));
}

/// Shows: S1.30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_passes_by_the_rows_that_others_have_locked() {
    let bed = Bed::open(Place::postgres(links::TABLES).await).await;
    let urls = many(3);
    import_many(&bed, &urls).await;
    let job = bed.job(&urls[0]).await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let database = bed.database().clone();
    let holder = tokio::spawn(async move {
        let hold = move |tx: &Tx<'_>| {
            let select = "select 1 as one from tenure.ready where job = cast($1 as uuid) for update";
            let rows = tx.query(select, row![job])?.len();
            tell.send(rows).unwrap();
            // Until the other end is gone.
            let _released = released.recv();
            Ok::<_, StoreError>(())
        };
        database.transaction(hold).await
    });
    assert_eq!(told.await.unwrap(), 1);
    let first = worker(&bed, "worker-1").await;
    let claimed = claim(&bed, first, 10).await.unwrap();
    assert_eq!(claimed.jobs.len(), 2, "it does not wait");
    assert!(claimed.jobs.iter().all(|claimed| claimed.id != job));
    drop(release);
    holder.await.unwrap().unwrap();
    assert_eq!(claim(&bed, first, 10).await.unwrap().jobs[0].id, job);
}

/// Shows: S1.31 S1.36 S1.38 S1.40
async fn a_claim_takes_at_most_ten_and_never_what_another_has(place: Place) {
    let bed = Bed::open(place).await;
    import_many(&bed, &many(25)).await;
    let (one, two) = (worker(&bed, "worker-1").await, worker(&bed, "worker-2").await);
    let limit = bed.settings.concurrency;
    // At the same moment: rows that the other has locked are passed by.
    let (first, second) = tokio::join!(claim(&bed, one, limit), claim(&bed, two, limit));
    let mut taken: Vec<_> =
        [first, second].into_iter().flatten().flat_map(|claimed| claimed.jobs).map(|job| job.id).collect();
    for worker in [one, two, one] {
        let more = claim(&bed, worker, limit).await;
        assert!(more.as_ref().is_none_or(|claimed| claimed.jobs.len() <= 10));
        taken.extend(more.into_iter().flat_map(|claimed| claimed.jobs).map(|job| job.id));
    }
    assert_eq!(taken.len(), 25);
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 25, "no job was given to two");
    assert!(claim(&bed, one, limit).await.is_none(), "what runs is not eligible");
}

/// Shows: S1.29 S1.31 S1.33
async fn a_lock_is_over_after_ten_minutes_and_not_before(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    bed.import("ada", &[url]).await;
    let lost = worker(&bed, "worker-1").await;
    claim(&bed, lost, 10).await.unwrap();

    bed.advance(600);
    assert!(bed.client.store().reclaim_jobs(None, 100).await.unwrap().is_empty());
    assert_eq!(bed.show(url).await.summary.state, JobState::Running);
    bed.advance(1);
    let reclaimed = bed.client.store().reclaim_jobs(None, 100).await.unwrap();
    assert_eq!(reclaimed.len(), 1);
    let job = bed.show(url).await.summary;
    assert_eq!((job.state, job.run_at), (JobState::Queued, bed.place.clock.now()), "due at once");

    bed.run_and_settle().await;
    let record = bed.show(url).await;
    assert_eq!(record.attempts.iter().map(|it| it.how).collect::<Vec<_>>(), [How::Lost, How::Succeeded]);
    assert_eq!(bed.calls(url), 1);
}

/// Shows: S1.36
async fn a_worker_that_lost_its_lock_writes_nothing(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://a.example/";
    lose_the_lock(&bed, url).await;
    assert_eq!(bed.state(url).await, "open", "what it read is not written");
}

/// Shows: S1.36
async fn a_worker_that_lost_its_lock_writes_nothing_of_a_failure(place: Place) {
    let bed = Bed::open(place).await;
    let url = "http://captcha.example/";
    lose_the_lock(&bed, url).await;
    let row = bed.row(url).await;
    assert_eq!((bed.state(url).await.as_str(), row.get::<Option<String>>("last_error").unwrap()), ("open", None));
    let report = bed.report().await;
    assert_eq!((report.failing.len(), report.block_candidates.len()), (0, 0));
}

/// A worker calls the link and is not heard of; when it is answered, another one has the job.
async fn lose_the_lock(bed: &Bed, url: &str) {
    bed.import("ada", &[url]).await;
    bed.world.valve().close();
    let meanwhile = async {
        bed.world.pages().wait_for(url, |calls| calls.now == 1).await;
        // It is not heard of for more than ten minutes, while it waits for its answer.
        bed.advance(601);
        assert_eq!(bed.client.store().reclaim_jobs(None, 100).await.unwrap().len(), 1);
        let other = worker(bed, "worker-2").await;
        assert_eq!(claim(bed, other, 10).await.unwrap().jobs.len(), 1);
        bed.world.valve().open();
    };
    tokio::join!(bed.run(), meanwhile);
    assert_eq!(bed.show(url).await.summary.locked_by.as_deref(), Some("worker-2"));
}

/// Shows: S1.04 S1.11 S1.29
async fn a_link_whose_workers_all_die_is_dead_and_its_import_ends(place: Place) {
    let bed = Bed::open(place).await;
    let urls = ["http://a.example/", "http://poison.example/", "http://robots.example/"];
    let id = bed.import("ada", &urls).await;
    // No handler is there to write anything down: only the jobs themselves tell.
    let poison = bed.job(urls[1]).await;
    let first = worker(&bed, "worker-0").await;
    let claimed = claim(&bed, first, 10).await.unwrap();
    release(&bed, first, &claimed, poison).await;
    bed.run().await;
    for n in 1..20 {
        bed.advance(601);
        bed.client.store().reclaim_jobs(None, 100).await.unwrap();
        // Whose worker was lost a second time waits for a while.
        bed.advance(3_600);
        let next = worker(&bed, &format!("worker-{n}")).await;
        if claim(&bed, next, 10).await.is_none() {
            break;
        }
    }
    assert_eq!(bed.client.show(poison).await.unwrap().summary.state, JobState::Dead);
    for _ in 0..3 {
        bed.run_and_settle().await;
    }
    assert_eq!(bed.counts("ada", &id).await, ("succeeded", 3, 3, 2));
    let last_error = bed.find("ada", &id).await.last_error.unwrap();
    assert!(last_error.contains("lease") && !last_error.contains('{'), "the last one, in words: {last_error}");
}

/// Gives back what a process holds, but for one job.
async fn release(bed: &Bed, worker: WorkerId, claimed: &Claimed, but: JobId) {
    let ending = |job: &ClaimedJob| EndJob {
        job: job.id,
        ending: Ending::Released { delay: Duration::ZERO },
        gate: GateWord::default(),
    };
    let jobs = claimed.jobs.iter().filter(|job| job.id != but).map(ending).collect();
    bed.client.store().end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.unwrap();
}
