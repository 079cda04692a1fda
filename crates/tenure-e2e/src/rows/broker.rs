//! F49: the broker that wakes workers goes away under load, and comes back.
//!
//! Two workers poll, and have most of the load. A third one neither polls nor is told by the database: whatever it does, it
//! was woken by the broker.

use std::sync::Arc;
use std::time::Duration;

use tenure_cluster::rabbitmq_server::RabbitServer;
use tenure_core::JobId;
use tenure_rabbitmq::{Broker, Options};

use crate::Act;
use crate::history::Load;
use crate::ledger::wall_clock;
use crate::pass_line::PassLine;
use crate::process::Process;
use crate::report::{Report, Row, Size};
use crate::stage::Stage;
use crate::watch::watch;

/// The row.
pub(super) const ROW: Row = Row {
    id: "F49",
    fault: "the broker that wakes workers stops under load, and comes back",
    injected: "a private RabbitMQ is killed and stopped in order, in turn, and started again; one worker is deaf to the database and polls once in a day",
    run: |size| Box::pin(run(size)),
};

/// The queue of the worker that only the broker can wake.
const DEAF: &str = "deaf";
/// The database tells nobody of that queue: nobody is ever idle there.
const TELL_NOBODY: &str = "
    create function public.nobody_is_idle() returns trigger language plpgsql as
      $$ begin new.idle_until := old.idle_until; return new; end $$;
    create trigger nobody_is_idle before update on tenure.queue for each row when (new.name = 'deaf')
      execute function public.nobody_is_idle()";
/// Words that have to be lost while the broker is away, and jobs that have to be done meanwhile.
const PROGRESS: usize = 50;
/// Jobs that the broker has to wake for, one after the other, between two outages.
const PROBES: usize = 10;

async fn run(size: Size) -> Report {
    let outages = size.pick(1, 6);
    let mut rabbit = RabbitServer::start().unwrap();
    let broker = Broker::start(Options { publish: true, ..Options::new(rabbit.url()) }).unwrap();
    let mut stage = Stage::postgres().await;
    for queue in ["default", DEAF] {
        stage.set_lease(queue, Duration::from_secs(5)).await;
    }
    stage.sql(TELL_NOBODY);
    stage.client = stage.client.with_waker(Arc::new(broker.clone()));
    let url = rabbit.url();
    let mut workers: Vec<Process> =
        (0..2).map(|n| stage.worker(&format!("w{n}"), &["--queue", "default=16", "--broker", &url])).collect();
    workers.push(stage.worker(DEAF, &["--queue", "deaf=1", "--poll-ms", "86400000", "--broker", &url]));
    all_hear(&broker, &workers, 1).await;
    woken(&mut stage).await;
    let (mut dropped, mut late) = (0, 0);
    for outage in 1..=outages {
        let before = broker.counts().dropped;
        let load = Load::start(&stage.history, &stage.client, 1, &Act::Wait { ms: 20 });
        progress(&mut stage).await;
        match outage % 2 {
            1 => rabbit.kill().unwrap(),
            _ => rabbit.stop().unwrap(),
        }
        watch("everybody knows", async || (!broker.is_up() && told(&workers, AWAY) == [outage; 3]).then_some(())).await;
        let unheard = enqueue_deaf(&stage).await;
        let lost = broker.counts().dropped + PROGRESS as u64;
        progress(&mut stage).await;
        watch("words are lost", async || (broker.counts().dropped >= lost).then_some(())).await;
        // A start takes seconds, and the machine is wanted elsewhere.
        load.stop().await;
        let begun = wall_clock();
        rabbit.start_again().unwrap();
        all_hear(&broker, &workers, outage + 1).await;
        // Coming back is a wake-up: what was said meanwhile is lost.
        late += usize::from(started(&mut stage, unheard).await > begun);
        woken(&mut stage).await;
        dropped += usize::try_from(broker.counts().dropped - before).unwrap();
    }
    let (line, record) = PassLine::measure(&mut stage).await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let (away, there) = (told(&workers, AWAY), told(&workers, THERE));
    let mut report = Report::default();
    report.number(format!(
        "{outages} outages: {} jobs, {} words heard by the producers, {dropped} lost; {} jobs waited for the broker and were \
         woken for by its return; {} were woken for by a word of their own; lines about it {away:?} of its absence and {there:?} \
         of its presence in 3 processes; attempts {:?}, {} refused",
        stage.history.count(),
        broker.counts().received,
        late,
        (outages + 1) * PROBES,
        record.tally(),
        record.refused.len()
    ));
    report.must(alive == workers.len(), "no process ends");
    report.must(record.succeeded().len() == stage.history.count(), "every job succeeds");
    report.must(late == outages, "nothing but the broker wakes the deaf one");
    report.must(away == [outages; 3] && there == [outages + 1; 3], "each outage is told once, and its end once");
    report.line(line);
    report.bite(dropped, outages * PROGRESS, "words lost while it was away");
    broker.close().await;
    report
}

const AWAY: &str = "the broker is away";
const THERE: &str = "the broker is there";

/// How often each process has said so.
fn told(workers: &[Process], what: &str) -> Vec<usize> {
    let count = |worker: &Process| worker.log_lines().iter().filter(|line| line.text.contains(what)).count();
    workers.iter().map(count).collect()
}

/// Waits until more jobs are done than now.
async fn progress(stage: &mut Stage) {
    let done = stage.count("end");
    watch("workers go on", async || (stage.count("end") >= done + PROGRESS).then_some(())).await;
}

/// Waits until everybody is connected, for the so-many-th time.
async fn all_hear(broker: &Broker, workers: &[Process], times: usize) {
    watch("everybody is connected", async || (broker.is_up() && told(workers, THERE) == [times; 3]).then_some(()))
        .await;
}

/// One job after the other for the worker that only the broker wakes; each has to come to its end.
async fn woken(stage: &mut Stage) {
    for _ in 0..PROBES {
        let job = enqueue_deaf(stage).await;
        started(stage, job).await;
    }
}

async fn enqueue_deaf(stage: &Stage) -> JobId {
    let stored = stage.client.enqueue(Act::Wait { ms: 0 }).queue(DEAF).await.unwrap();
    stage.history.acknowledge(&[stored]);
    stored.job()
}

/// Waits until a job has started, and answers when that was.
async fn started(stage: &mut Stage, job: JobId) -> i64 {
    watch("the deaf one is woken", async || {
        stage.entries().iter().find(|entry| entry.job == job && entry.what == "start").map(|entry| entry.at)
    })
    .await
}
