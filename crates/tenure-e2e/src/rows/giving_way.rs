//! F25: the server makes transactions give way, deadlock or serialization: they are tried again, and nobody sees it.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::name::WorkerName;
use tenure_core::{Backoff, QueueName};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ending};
use tenure_store::{Store, StoreError};
use tenure_worker::Client;

use crate::Act;
use crate::history::History;
use crate::pass_line::PassLine;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F25",
    fault: "transactions are told to give way",
    injected: "triggers that raise 40P01 or 40001 in 5 % of all statements that store jobs or write the journal; 8 writers on one queue with shared unique keys",
    run: |size| Box::pin(run(size)),
};

const WRITERS: usize = 8;
/// Keys that writers share: their batches overlap.
const KEYS: usize = 40;
/// A sequence counts what is rolled back, too.
const TRIGGERS: &str = "create sequence e2e_raised;
    create function e2e_raise() returns trigger language plpgsql as $$ begin
      if random() < 0.05 then
        perform nextval('e2e_raised');
        if random() < 0.5 then raise exception 'told to give way' using errcode = '40P01'; end if;
        raise exception 'told to give way' using errcode = '40001';
      end if;
      return null;
    end $$;
    create trigger e2e_job after insert on tenure.job for each statement execute function e2e_raise();
    create trigger e2e_journal after insert on tenure.journal for each statement execute function e2e_raise();";

async fn run(size: Size) -> Report {
    let rounds = size.pick(60, 400);
    let mut stage = Stage::postgres().await;
    stage.set_lease("default", Duration::from_secs(2)).await;
    stage.sql(TRIGGERS);
    let _worker = stage.worker("w", &["--queue", "default=8"]);
    let writers = (0..WRITERS).map(|n| {
        let writer = Writer { store: Arc::clone(&stage.store), history: stage.history.clone() };
        tokio::spawn(async move { writer.run(rounds, n).await })
    });
    let (mut calls, mut errors) = (0, Vec::new());
    for writer in writers.collect::<Vec<_>>() {
        let (called, failed) = writer.await.unwrap();
        calls += called;
        errors.extend(failed);
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let raised: usize =
        stage.sql("select case when is_called then last_value else 0 end from e2e_raised").parse().unwrap();
    let mut report = Report::default();
    report.number(format!(
        "{calls} calls of {WRITERS} writers beside a worker, {raised} statements told to give way; errors seen {}; attempts {:?}",
        errors.len(),
        record.tally()
    ));
    report.must(errors.is_empty(), format!("nobody sees an error: {:?}", errors.first()));
    report.line(line);
    report.bite(raised, size.pick(20, 100), "statements told to give way");
    report
}

struct Writer {
    store: Arc<dyn Store>,
    history: History,
}

impl Writer {
    /// Enqueues, claims and ends batches; answers how many calls that were, and what went wrong.
    async fn run(&self, rounds: usize, n: usize) -> (usize, Vec<String>) {
        let worker = self.store.register_worker(&WorkerName::new(format!("writer-{n}")).unwrap()).await.unwrap();
        let (mut calls, mut errors) = (0, Vec::new());
        let mut seen = |answer: Result<(), StoreError>| {
            calls += 1;
            errors.extend(answer.err().map(|error| error.to_string()));
        };
        for round in 0..rounds {
            seen(self.enqueue(round + n).await);
            let claimed = match self.store.claim_jobs(ClaimJobs::new(worker, QueueName::default(), 8)).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    seen(Err(error));
                    None
                }
            };
            let Some(claimed) = claimed.filter(|claimed| !claimed.jobs.is_empty()) else { continue };
            // Most succeed; some are tried again, which puts rows back.
            let ending = |i: usize| match i % 4 {
                0 => Ending::Released { delay: Duration::ZERO },
                _ => Ending::Succeeded { result: None, usage: None },
            };
            let jobs = claimed.jobs.iter().enumerate().map(|(i, job)| EndJob::new(job.id, ending(i))).collect();
            seen(self.store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.map(drop));
            seen(self.store.reclaim_jobs(Some(worker), 10).await.map(drop));
        }
        (calls, errors)
    }

    /// A batch whose keys overlap with those of others.
    async fn enqueue(&self, begin: usize) -> Result<(), StoreError> {
        let client = Client::new(&self.store);
        let jobs = client.enqueue_many((0..10).map(|_| Act::Wait { ms: 1 }));
        let stored =
            jobs.each(|i, one| one.unique(format!("key-{}", (begin + i) % KEYS)).backoff(Backoff::None)).await?;
        let new: Vec<_> =
            stored.into_iter().filter(|one| matches!(one, tenure_store::enqueue::Enqueued::Created(_))).collect();
        self.history.acknowledge(&new);
        Ok(())
    }
}
