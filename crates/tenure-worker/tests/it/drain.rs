//! The end of a worker: what runs may finish, the rest is given back, and nothing is charged.

use std::time::Duration;

use tenure_core::worker_loop;
use tenure_core::{How, State as JobState};
use tenure_store::AdminStore;
use tenure_worker::{Ctx, Fail, State, Stop, Worker};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::bench::{Bench, Task};

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_finish_within_the_grace_period() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let (told, mut started) = unbounded_channel();
    let (go, gone) = tokio::sync::watch::channel(false);
    type Ends = (UnboundedSender<()>, tokio::sync::watch::Receiver<bool>);
    async fn handler(_: Task, State((told, mut gone)): State<Ends>) {
        told.send(()).unwrap();
        gone.wait_for(|gone| *gone).await.unwrap();
    }
    let worker = Worker::builder(&bench.store).state((told, gone)).handle(handler).build().unwrap();
    let stop = async {
        started.recv().await;
        // Told to stop while the handler runs; only then may the handler go on.
        tokio::spawn(async move { go.send(true) });
    };
    let summary = worker.run_until(stop).await.unwrap();
    assert_eq!((summary.succeeded, summary.released), (1, 0));
    assert_eq!(bench.show(job).await.summary.state, JobState::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_finish_is_given_back_uncharged_and_claimable_at_once() {
    let bench = Bench::new().await;
    let jobs = [bench.enqueue(1).await, bench.enqueue(2).await];
    let (told, mut started) = unbounded_channel();
    async fn handler(job: Task, State(told): State<UnboundedSender<()>>, ctx: Ctx) -> Result<(), Fail> {
        told.send(()).unwrap();
        match job.n {
            1 => std::future::pending().await,
            _ => {
                assert_eq!(ctx.stopped().await, Stop::Shutdown);
                ctx.check()
            }
        }
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).grace(Duration::ZERO).build().unwrap();
    let stop = async {
        started.recv().await;
        started.recv().await;
    };
    worker.run_until(stop).await.unwrap();
    for job in jobs {
        let record = bench.show(job).await;
        assert_eq!((record.summary.state, record.summary.attempt), (JobState::Queued, 0));
        assert!(matches!(record.attempts[0].how, How::Released | How::Snoozed), "{record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_in_the_registry_until_it_says_goodbye() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let worker =
        Worker::builder(&bench.store).name("shop-1").queue("default", 3).handle(|_: Task| async {}).build().unwrap();
    let mut seen = None;
    let stop = async {
        bench.until(job, JobState::Succeeded).await;
        crate::bench::watch("it has beaten", async || bench.inner.list_workers(10).await.unwrap()[0].beat.is_some())
            .await;
        seen = bench.inner.list_workers(10).await.unwrap().pop();
    };
    worker.run_until(stop).await.unwrap();
    let beat = seen.unwrap().beat.unwrap();
    assert_eq!((beat.about.queues[0].1, beat.about.pid), (3, std::process::id()));
    let last = bench.inner.list_workers(10).await.unwrap().pop().unwrap();
    assert_eq!(last.name.as_str(), "shop-1");
    assert_eq!(last.beat.unwrap().state, worker_loop::State::Stopped);
}

#[test]
fn a_worker_can_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    let _ = |worker: Worker| is_send(worker.run_until(async {}));
    let _ = |worker: Worker| is_send(worker.run());
}
