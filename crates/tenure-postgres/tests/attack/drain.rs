//! The way to rest: what is open is ended, what is due is done, by the same workers with the same floors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended};
use tenure_store::{AdminStore, LeaseStore};
use tokio_postgres::Client;

use crate::field::Field;
use crate::rng::Rng;
use crate::user::end_prepared;
use crate::worker::{Worker, done};

/// Sweeps come every two seconds and find what was committed late; by then everything must be done.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends everything, or finds fault with what does not end.
pub(crate) async fn drain(field: &Field, workers: &[Arc<Worker>], client: &Client, rng: &mut Rng) {
    end_prepared(field, client, true, rng).await;
    let began = Instant::now();
    loop {
        // Waiting jobs are opened and delays cut short. What is due is left alone: it must be found where it lies.
        let hurry = "
            update tenure.queue set paused = false where paused;
            update tenure.lease set expires_at = clock_timestamp() - interval '1 ms' where expires_at > clock_timestamp();
            select tenure.open(job) from tenure.ready where state = 2;
            update tenure.ready set run_at = clock_timestamp() where run_at > clock_timestamp()";
        client.batch_execute(hurry).await.expect("hurry");
        for worker in workers {
            worker.store.reclaim_jobs(Some(worker.id), 100).await.expect("reclaim");
            claim_and_complete(field, worker).await;
        }
        let open: i64 = client
            .query_one("select (select count(*) from tenure.ready) + (select count(*) from tenure.lease)", &[])
            .await
            .expect("count")
            .get(0);
        if open == 0 {
            return;
        }
        if began.elapsed() > PATIENCE {
            return field.ledger.fault(format!("{open} jobs or leases are left after {PATIENCE:?}"));
        }
        field.pause(Duration::from_millis(20)).await;
    }
}

async fn claim_and_complete(field: &Field, worker: &Worker) {
    for queue in worker.store.list_queues().await.expect("list queues").into_iter().map(|queue| queue.name) {
        loop {
            let request = ClaimJobs::new(worker.id, queue.clone(), 100);
            let Some(claimed) = worker.store.claim_jobs(request).await.expect("claim") else { break };
            field.ledger.add("claimed", claimed.jobs.len() as u64);
            let found = {
                let pages = field.ledger.pages();
                claimed.jobs.iter().filter(|job| pages.late.contains(&job.id)).count()
            };
            field.ledger.add("late commits found", found as u64);
            if claimed.jobs.is_empty() {
                continue;
            }
            let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, done())).collect();
            let ends = EndJobs { worker: worker.id, lease: claimed.lease, jobs };
            for (job, answer) in claimed.jobs.iter().zip(worker.store.end_jobs(ends).await.expect("end")) {
                match answer {
                    Ended::Now(how) => field.ledger.accept(job.id, claimed.lease, how),
                    other => field.ledger.fault(format!("job {} in its holder's hands: {other:?}", job.id)),
                }
            }
        }
    }
}
