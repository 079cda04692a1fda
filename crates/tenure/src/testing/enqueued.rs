//! What was enqueued: assertions that fail at the test's own line and list what is there instead.

use std::any::type_name;
use std::fmt::Write as _;

use serde_json::Value;
use tenure_core::{KindName, duration};
use tenure_store::JobStore;
use tenure_store::record::{JobFilter, JobRecord, JobSummary};
use tenure_worker::Job;

use super::{TestBed, at_once, must};

/// Jobs fetched at a time.
const PAGE: u32 = 1_000;
/// Most jobs that a failed assertion lists.
const LISTED_MAX: usize = 20;

impl TestBed {
    /// Fails unless a job like this was enqueued: of this type, with the same JSON, in whatever state it is now. Answers
    /// the oldest one.
    #[track_caller]
    pub fn assert_enqueued<J: Job>(&self, job: &J) -> JobRecord {
        let wanted = written(job);
        match self.find::<J>(|record| stored(record) == wanted) {
            Some(record) => record,
            None => panic!("no {} {wanted} was enqueued\n{}", name::<J>(), self.listed::<J>()),
        }
    }

    /// Fails unless a job of this type was enqueued for which `is_wanted` is true:
    /// `bed.assert_enqueued_where(|job: &SendInvoice| job.order == 42)`. Answers the oldest one.
    #[track_caller]
    pub fn assert_enqueued_where<J: Job>(&self, is_wanted: impl Fn(&J) -> bool) -> JobRecord {
        match self.find::<J>(|record| is_wanted(&read(record))) {
            Some(record) => record,
            None => panic!("no {} as wanted was enqueued\n{}", name::<J>(), self.listed::<J>()),
        }
    }

    /// Fails when a job like this was enqueued.
    #[track_caller]
    pub fn assert_not_enqueued<J: Job>(&self, job: &J) {
        let unwanted = written(job);
        if self.find::<J>(|record| stored(record) == unwanted).is_some() {
            panic!("a {} {unwanted} was enqueued\n{}", name::<J>(), self.listed::<J>());
        }
    }

    /// Fails when a job of this type was enqueued for which `is_unwanted` is true; `|_: &SendInvoice| true` is any.
    #[track_caller]
    pub fn assert_not_enqueued_where<J: Job>(&self, is_unwanted: impl Fn(&J) -> bool) {
        if let Some(record) = self.find::<J>(|record| is_unwanted(&read(record))) {
            panic!("a {} {} was enqueued\n{}", name::<J>(), record.payload, self.listed::<J>());
        }
    }

    /// Every job of this type, oldest first, in whatever state it is now.
    #[track_caller]
    pub fn enqueued<J: Job>(&self) -> Vec<J> {
        self.summaries(Some(J::KIND)).iter().map(|summary| read(&self.show(summary.id))).collect()
    }

    #[track_caller]
    fn find<J: Job>(&self, is_wanted: impl Fn(&JobRecord) -> bool) -> Option<JobRecord> {
        let all = self.summaries(Some(J::KIND));
        all.iter().map(|summary| self.show(summary.id)).find(|record| is_wanted(record))
    }

    /// Jobs of a kind, or all, oldest first.
    #[track_caller]
    pub(super) fn summaries(&self, kind: Option<&str>) -> Vec<JobSummary> {
        let kind = kind.map(|kind| must("look for jobs", KindName::new(kind)));
        let mut filter = JobFilter { kind, limit: PAGE, ..JobFilter::default() };
        let mut all = Vec::new();
        loop {
            let page = at_once("list jobs", self.store.list_jobs(&filter));
            let Some(last) = page.last() else { break };
            filter.before = Some(last.id);
            all.extend(page);
        }
        all.reverse();
        all
    }

    /// What is there, for a failed assertion: each job of the kind, and how many others.
    #[track_caller]
    fn listed<J: Job>(&self) -> String {
        let (of_kind, others): (Vec<_>, Vec<_>) =
            self.summaries(None).into_iter().partition(|job| job.kind.as_str() == J::KIND);
        let mut text = match of_kind.len() {
            0 => format!("there is no job of kind {}", J::KIND),
            count => format!("jobs of kind {}: {count}", J::KIND),
        };
        for job in of_kind.iter().take(LISTED_MAX) {
            // Writing into a string cannot fail.
            let _ = write!(text, "\n  {} {}", self.show(job.id).payload, self.described(job));
        }
        if of_kind.len() > LISTED_MAX {
            text += "\n  …";
        }
        let mut kinds: Vec<&str> = others.iter().map(|job| job.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if !kinds.is_empty() {
            let _ = write!(text, "\njobs of other kinds: {} ({})", others.len(), kinds.join(", "));
        }
        text
    }

    fn described(&self, job: &JobSummary) -> String {
        let now = self.clock.now();
        let due = match job.finished_at {
            None if job.run_at > now => format!(", due in {}", duration::format(job.run_at.since(now))),
            _ => String::new(),
        };
        format!("{} in queue {}{due}", job.state.as_str(), job.queue)
    }
}

/// A job as the store would keep it.
#[track_caller]
fn written<J: Job>(job: &J) -> Value {
    // By way of text, as stored ones: numbers read from text may differ from those in memory.
    let text = must("write the job as JSON", serde_json::to_string(job));
    must("read the job again", serde_json::from_str(&text))
}

#[track_caller]
fn stored(record: &JobRecord) -> Value {
    must("read a stored job", serde_json::from_str(record.payload.as_str()))
}

#[track_caller]
fn read<J: Job>(record: &JobRecord) -> J {
    must(&format!("read a stored job as {}", name::<J>()), serde_json::from_str(record.payload.as_str()))
}

/// The type's name without its path.
fn name<J>() -> &'static str {
    let path = type_name::<J>();
    path.rsplit("::").next().unwrap_or(path)
}
