//! `kill -9` of workers in the middle of their jobs: each job succeeds once, and what was in flight runs again.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use tenure_core::How;
use tenure_e2e::{Act, Entry, Reader};
use tenure_store::Store;

use crate::process::Process;
use crate::record::{Grant, Record};
use crate::stage::Stage;
use crate::watch::watch;

const JOBS: usize = 20_000;
const KILLS: usize = 5;
/// Short, so that what was lost runs again soon; long enough for a keeper on a busy machine.
const LEASE: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_and_five_kills_on_postgres() {
    two_workers_and_five_kills(&Stage::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_and_five_kills_on_sqlite() {
    two_workers_and_five_kills(&Stage::sqlite().await).await;
}

async fn two_workers_and_five_kills(stage: &Stage) {
    stage.set_lease("default", LEASE).await;
    // Most are over in no time; some take longer, so that a kill always meets one.
    let acts = (0..JOBS).map(|n| Act::Wait { ms: if n % 20 == 0 { 100 } else { 1 } });
    stage.enqueue(acts.collect()).await;
    let start = |name: &str| stage.worker(name, &["--queue", "default=32"]);
    Attack { store: &*stage.store, jobs: JOBS, start: &start, witness: &mut stage.reader() }.run().await;
}

/// Who saw handlers start and end: the ledger, or a server that handlers call.
pub(crate) trait Witness {
    /// Everything seen until now: `start` and `end`, with the job, its fence and the process.
    fn seen(&mut self) -> &[Entry];
}

impl Witness for Reader {
    fn seen(&mut self) -> &[Entry] {
        self.entries()
    }
}

/// The attack on any worker program, whose starts anybody has seen.
pub(crate) struct Attack<'a> {
    pub(crate) store: &'a dyn Store,
    /// So many are enqueued, and each will succeed.
    pub(crate) jobs: usize,
    /// Starts a worker of this name.
    pub(crate) start: &'a dyn Fn(&str) -> Process,
    pub(crate) witness: &'a mut dyn Witness,
}

impl Attack<'_> {
    pub(crate) async fn run(mut self) {
        let since = Instant::now();
        let mut workers = [(self.start)("w0"), (self.start)("w1")];
        let mut hit = Vec::new();
        for kill in 0.. {
            if hit.len() == KILLS {
                break;
            }
            let victim = &mut workers[kill % 2];
            // The kills are spread over the first half, so that a dozen may miss.
            let ripe = self.jobs * (kill + 1) / (4 * KILLS);
            watch("enough is done, and the victim is in the middle of something", async || {
                let seen = self.witness.seen();
                let done = seen.iter().filter(|entry| entry.what == "end").count();
                (done >= ripe && !open(seen, &victim.name).is_empty()).then_some(())
            })
            .await;
            victim.kill();
            let cut = open(self.witness.seen(), &victim.name).len();
            hit.extend((cut > 0).then_some(cut));
            *victim = (self.start)(&format!("w{}", kill + 2));
        }
        self.wait_until_empty().await;
        for worker in &mut workers {
            worker.terminate();
            let (status, _) = worker.wait().await;
            assert!(status.success(), "{}: {status}\n{}", worker.name, worker.log());
        }
        let took = since.elapsed();
        self.check(&hit, took).await;
    }

    async fn wait_until_empty(&self) {
        watch("every queue is empty", async || {
            let queues = self.store.list_queues().await.unwrap();
            queues.iter().all(|queue| queue.due + queue.scheduled + queue.running == 0).then_some(())
        })
        .await;
    }

    async fn check(&mut self, hit: &[usize], took: Duration) {
        let record = Record::prove(self.store).await;
        let seen = self.witness.seen();
        let starts: Vec<Grant> = grants(seen, "start").collect();
        let once: HashSet<Grant> = starts.iter().copied().collect();
        let mut became: BTreeMap<&str, usize> = BTreeMap::new();
        for start in &starts {
            let how = record.ended.get(start).map_or("never ended", |how| how.as_str());
            *became.entry(how).or_default() += 1;
        }
        println!(
            "{} jobs in {took:.1?}; {} kills cut off {hit:?} handlers; attempts {:?}; {} starts, which became {became:?}; {} refused",
            self.jobs,
            hit.len(),
            record.tally(),
            starts.len(),
            record.refused.len()
        );
        assert_eq!(once.len(), starts.len(), "no handler starts twice under one fence");
        let succeeded = record.succeeded();
        assert_eq!(succeeded.len(), self.jobs, "each job succeeds, once");
        assert!(succeeded.into_iter().all(|grant| once.contains(&grant)), "what succeeded was started");
        let lost = became.get(How::Lost.as_str()).copied().unwrap_or(0);
        assert_eq!(starts.len(), self.jobs + lost, "only what was in flight at a kill starts again");
        assert!(lost >= hit.iter().sum(), "what was cut off is lost, and runs again");
    }
}

/// Handlers of this process that have started and not ended.
fn open(seen: &[Entry], worker: &str) -> HashSet<Grant> {
    let mine = || seen.iter().filter(|entry| entry.worker == worker);
    let mut open: HashSet<Grant> = mine().filter(|e| e.what == "start").map(|e| (e.job, e.fence)).collect();
    mine().filter(|e| e.what == "end").for_each(|e| {
        open.remove(&(e.job, e.fence));
    });
    open
}

fn grants<'e>(seen: &'e [Entry], what: &'e str) -> impl Iterator<Item = Grant> + 'e {
    seen.iter().filter(move |entry| entry.what == what).map(|entry| (entry.job, entry.fence))
}
