//! A run in a place's store, worked on while the binary looks at it.

use std::time::Duration;

use tenure_core::name::{KindName, PartitionName};
use tenure_core::{JobId, Json, NewJob, RunId};
use tenure_store::lease::{Claimed, Ending};
use tenure_store::run::{AdvancePage, Members, NewPartition, NewRun};
use tenure_store::user_tx::CompleteJob;

use crate::bench::{Bench, error};

/// A run whose jobs a test works on.
pub(crate) struct Run<'b> {
    bench: &'b Bench,
    pub(crate) id: String,
    pub(crate) consolidate: JobId,
}

impl<'b> Run<'b> {
    /// A run with these partitions, pages of ten rows, twenty expected in each, and a consolidate.
    pub(crate) fn new(bench: &'b Bench, n: u8, names: &[&str]) -> Self {
        Self::with(bench, n, names, |_| {})
    }

    /// The same, with something else about it.
    pub(crate) fn with(bench: &'b Bench, n: u8, names: &[&str], change: impl FnOnce(&mut NewRun)) -> Self {
        let partition = |(part, name): (usize, &&str)| NewPartition {
            name: PartitionName::new(*name).unwrap(),
            job: new_job(bench, n, part),
            offset: 0,
            limit: 10,
            expected: Some(20),
        };
        let id = RunId::from_parts(bench.wait(bench.store.now()).unwrap(), [n; 10]);
        let consolidate = new_job(bench, n, 99);
        let run = Self { bench, id: id.to_string(), consolidate: consolidate.id };
        let members = Members { partitions: names.iter().enumerate().map(partition).collect(), items: Vec::new() };
        let mut request = NewRun {
            owner: Some("ops".to_owned()),
            source: Some("catalogue".to_owned()),
            members,
            consolidate: Some(consolidate),
            ..NewRun::new(id)
        };
        change(&mut request);
        bench.wait(bench.store.create_run(request)).unwrap();
        run.fold();
        run
    }

    pub(crate) fn fold(&self) {
        while self.bench.wait(self.bench.store.fold_runs()).unwrap().more {}
    }

    /// A page begins and is stored; the last one where no other follows.
    pub(crate) fn page(&self, claimed: &Claimed, job: JobId, rows: u64, next: Option<JobId>) {
        let (worker, lease) = (self.bench.worker, claimed.lease);
        let request = AdvancePage { page: CompleteJob::new(worker, lease, job), rows, next };
        self.bench.wait(self.bench.store.begin_page(job)).unwrap();
        self.bench.wait(self.bench.store.advance_page(request)).unwrap();
        self.fold();
    }

    /// A page dies.
    pub(crate) fn die(&self, claimed: &Claimed, job: JobId, why: &str) {
        self.bench.end(claimed, job, Ending::Dead { error: error(why) });
        self.fold();
    }

    /// What waits for all the others is done.
    pub(crate) fn consolidate(&self) {
        let claimed = self.bench.claim();
        self.bench.end(&claimed, self.consolidate, Ending::Succeeded { result: None, usage: None });
        self.fold();
    }
}

/// A job of run `n`.
pub(crate) fn new_job(bench: &Bench, n: u8, part: usize) -> NewJob {
    NewJob::new(job_id(bench, n, part), KindName::new("fetch").unwrap(), Json::null())
}

/// The first page of a partition of run `n`, by position; other numbers are other jobs.
pub(crate) fn job_id(bench: &Bench, n: u8, part: usize) -> JobId {
    let part = u8::try_from(part).unwrap();
    JobId::from_parts(bench.wait(bench.store.now()).unwrap(), [n, 0, 0, 0, 0, 0, 0, 0, 0, part])
}

/// By the clock of a command, that of the bench is ten minutes behind.
pub(crate) fn catch_up(bench: &Bench) {
    bench.advance(Duration::from_secs(660));
}
