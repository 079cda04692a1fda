//! What each actor was told, kept outside of the database it is held against.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::{How, JobId, LeaseNo, NewJob};
use tenure_store::enqueue::Enqueued;

/// Everything said so far.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Pages>);

#[derive(Default)]
pub(crate) struct Pages {
    /// Ids that somebody asked to store, whatever came of it.
    pub(crate) asked: HashSet<JobId>,
    /// How often a committed enqueue answered `Created` for this id. More than once only after a prune.
    pub(crate) created: HashMap<JobId, u32>,
    /// The jobs that `forever` keys created.
    pub(crate) forever: HashMap<String, HashSet<JobId>>,
    /// Earlier jobs that an enqueue was answered with.
    pub(crate) found: HashSet<JobId>,
    /// Which jobs an idempotency key was answered with.
    pub(crate) named: HashMap<String, HashSet<JobId>>,
    /// Endings that a holder was told are written, by grant.
    pub(crate) accepted: HashMap<(JobId, LeaseNo), Vec<How>>,
    /// Jobs committed long after they were stamped: only a sweep finds them.
    pub(crate) late: HashSet<JobId>,
    /// How often things happened.
    tally: BTreeMap<&'static str, u64>,
    /// What must not happen, as it was seen.
    pub(crate) faults: Vec<String>,
}

impl Ledger {
    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened.
    pub(crate) fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    /// Something happened so many times.
    pub(crate) fn add(&self, what: &'static str, times: u64) {
        *self.pages().tally.entry(what).or_default() += times;
    }

    /// How often it happened.
    pub(crate) fn tally(&self, what: &str) -> u64 {
        self.pages().tally.get(what).copied().unwrap_or_default()
    }

    /// Something happened that must not.
    pub(crate) fn fault(&self, what: impl Into<String>) {
        let mut pages = self.pages();
        if pages.faults.len() < 50 {
            let what = what.into();
            eprintln!("FAULT {what}");
            pages.faults.push(what);
        }
    }

    /// These are about to be sent.
    pub(crate) fn ask(&self, jobs: &[NewJob]) {
        self.pages().asked.extend(jobs.iter().map(|job| job.id));
    }

    /// These were answered, and the transaction has committed.
    pub(crate) fn answer(&self, jobs: &[NewJob], answers: &[Enqueued]) {
        let mut pages = self.pages();
        for (job, answer) in jobs.iter().zip(answers) {
            if let Some(key) = &job.idempotency_key {
                pages.named.entry(key.clone()).or_default().insert(answer.job());
            }
            let Enqueued::Created(id) = answer else {
                pages.found.insert(answer.job());
                *pages.tally.entry("found").or_default() += 1;
                continue;
            };
            *pages.tally.entry("created").or_default() += 1;
            *pages.created.entry(*id).or_default() += 1;
            if let Some(unique) = job.unique.as_ref().filter(|u| u.policy == tenure_core::unique::Policy::Forever) {
                pages.forever.entry(format!("{} {}", job.tenant, unique.key)).or_default().insert(*id);
            }
        }
    }

    /// A holder was told that its ending is written now.
    pub(crate) fn accept(&self, job: JobId, lease: LeaseNo, how: How) {
        self.pages().accepted.entry((job, lease)).or_default().push(how);
        self.count("attempts");
    }
}

impl std::fmt::Display for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tally.iter().try_for_each(|(what, times)| writeln!(f, "{times:>8}  {what}"))
    }
}
