//! The books: what was granted, what ran, what was acknowledged. Some rules are checked while they are written, the rest at
//! the end (`oracle`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use tenure_core::{How, JobId, LeaseNo, Timestamp};
use tenure_store::lease::Claimed;

use super::clock::StoreClock;
use super::finding::{Finding, Rule};
use super::node::Node;
use super::world::lock;

/// More findings than this say nothing new.
const FINDINGS_MAX: usize = 20;

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Default)]
pub(crate) struct Book {
    names: BTreeMap<JobId, String>,
    pub(crate) grants: BTreeMap<LeaseNo, Grant>,
    /// The newest grant of each job.
    newest: BTreeMap<JobId, LeaseNo>,
    pub(crate) runs: BTreeMap<(JobId, LeaseNo), Run>,
    /// What workers heard as accepted.
    pub(crate) accepted: BTreeSet<(JobId, LeaseNo, How)>,
    /// Jobs whose enqueue was answered.
    pub(crate) acknowledged: BTreeSet<JobId>,
    /// The ids that one request was sent with.
    pub(crate) requests: Vec<Vec<JobId>>,
    /// Jobs of the schedule's fires.
    pub(crate) fires: BTreeMap<Timestamp, JobId>,
    /// Grants that an operator ended by force.
    forced: BTreeSet<(JobId, LeaseNo)>,
    pub(crate) findings: Vec<Finding>,
}

/// A lease as the store gave it.
pub(crate) struct Grant {
    jobs: Vec<JobId>,
    /// By the store's clock.
    expires_at: Timestamp,
    /// How often that clock had been set when it was last read for this lease.
    jumps: u64,
    ttl: std::time::Duration,
    /// Its worker knows of it.
    is_heard: bool,
    /// It was applied when its worker no longer waited.
    is_late: bool,
}

impl Grant {
    /// It holds jobs, and its worker never heard of it.
    pub(crate) fn is_unheard(&self) -> bool {
        !self.is_heard && !self.jobs.is_empty()
    }
}

/// A handler's run.
pub(crate) struct Run {
    node: Node,
    is_over: bool,
}

/// What a sweeper gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swept {
    /// A claim that nobody heard of.
    Unheard,
    /// The same, and applied after it had been given up.
    Late,
    /// Something that its worker knew of, and was done with.
    Known,
    /// Something that its worker still runs.
    Running,
}

impl Ledger {
    /// Calls a job by a name that is the same on every run.
    pub(crate) fn name(&self, job: JobId, name: String) {
        self.book().names.insert(job, name);
    }

    pub(crate) fn name_of(&self, job: JobId) -> String {
        self.book().names.get(&job).cloned().unwrap_or_else(|| "J?".into())
    }

    pub(crate) fn names_of(&self, jobs: impl IntoIterator<Item = JobId>) -> String {
        let names: Vec<String> = jobs.into_iter().map(|job| self.name_of(job)).collect();
        names.join(" ")
    }

    /// The store gave a lease.
    pub(crate) fn granted(&self, claimed: &Claimed, clock: &StoreClock, is_late: bool) {
        let mut book = self.book();
        let jobs: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
        book.newest.extend(jobs.iter().map(|job| (*job, claimed.lease)));
        let (expires_at, jumps) = (clock.sync().plus(claimed.ttl), clock.jumps());
        let grant = Grant { jobs, expires_at, jumps, ttl: claimed.ttl, is_heard: false, is_late };
        book.grants.insert(claimed.lease, grant);
    }

    /// Its worker heard of it.
    pub(crate) fn heard(&self, lease: LeaseNo) {
        if let Some(grant) = self.book().grants.get_mut(&lease) {
            grant.is_heard = true;
        }
    }

    /// The store pushed the ends of these leases out.
    pub(crate) fn renewed(&self, leases: &[LeaseNo], clock: &StoreClock) {
        let (now, jumps) = (clock.sync(), clock.jumps());
        let mut book = self.book();
        for lease in leases {
            if let Some(grant) = book.grants.get_mut(lease) {
                (grant.expires_at, grant.jumps) = (now.plus(grant.ttl), jumps);
            }
        }
    }

    /// A sweeper gave this job back.
    pub(crate) fn swept(&self, job: JobId) -> Swept {
        let book = self.book();
        match book.newest.get(&job).and_then(|lease| book.grants.get(lease)) {
            Some(grant) if grant.is_heard => {
                let run = book.newest.get(&job).and_then(|lease| book.runs.get(&(job, *lease)));
                if run.is_some_and(|run| !run.is_over) { Swept::Running } else { Swept::Known }
            }
            Some(grant) if grant.is_late => Swept::Late,
            _ => Swept::Unheard,
        }
    }

    /// An operator ended a job by force, whoever held it.
    pub(crate) fn forced(&self, job: JobId) {
        let mut book = self.book();
        if let Some(lease) = book.newest.get(&job).copied() {
            book.forced.insert((job, lease));
        }
    }

    /// A worker heard that its report was accepted.
    pub(crate) fn accepted(&self, job: JobId, lease: LeaseNo, how: How) {
        self.book().accepted.insert((job, lease, how));
    }

    pub(crate) fn acknowledged(&self, job: JobId) {
        self.book().acknowledged.insert(job);
    }

    /// These ids were one request.
    pub(crate) fn requested(&self, ids: Vec<JobId>) {
        self.book().requests.push(ids);
    }

    /// The schedule asked for a job. A request that is applied twice is answered twice, with the same one.
    pub(crate) fn fired(&self, fire_at: Timestamp, job: JobId) {
        let mut book = self.book();
        let newest = book.fires.last_key_value().map(|(at, _)| *at);
        match book.fires.insert(fire_at, job) {
            Some(known) if known == job => {}
            Some(_) => book.find(Rule::Fires, format!("{fire_at} has two jobs")),
            None if newest.is_some_and(|newest| fire_at < newest) => {
                book.find(Rule::Fires, format!("{fire_at} has its job after a later one"));
            }
            None => {
                let name = format!("F{}", book.fires.len());
                book.names.insert(job, name);
            }
        }
    }

    /// A handler begins.
    pub(crate) fn started(&self, job: JobId, lease: LeaseNo, node: &Node, clock: &StoreClock) {
        let name = self.name_of(job);
        let mut book = self.book();
        // A lease whose clock was set, or that an operator ended by force, may have passed to somebody else meanwhile.
        let is_excused = |lease: LeaseNo| {
            book.forced.contains(&(job, lease)) || book.grants.get(&lease).is_none_or(|it| it.jumps != clock.jumps())
        };
        let others = book.runs.range((job, LeaseNo(i64::MIN))..=(job, LeaseNo(i64::MAX)));
        let mut beside = others.filter(|(_, run)| !run.is_over && run.node.is_up() && !run.node.thaws_now());
        let beside = beside.find(|((_, other), _)| !is_excused(lease) && !is_excused(*other));
        if let Some(((_, other), run)) = beside {
            let text = format!("{name} begins under {lease} on {} beside {other} on {}", node.name(), run.node.name());
            book.find(Rule::RanSideBySide, text);
        }
        let run = Run { node: node.clone(), is_over: false };
        if book.runs.insert((job, lease), run).is_some() {
            book.find(Rule::RanTwice, format!("{name} under lease {lease}, now on {}", node.name()));
        }
    }

    /// A handler makes a step, or is stopped: its lease must not be over.
    pub(crate) fn stepped(&self, job: JobId, lease: LeaseNo, node: &Node, clock: &StoreClock) {
        // In the moment of a thaw a handler may be polled before anybody has looked at the clock; the fence is for that.
        if !node.is_up() || node.thaws_now() {
            return;
        }
        let (now, jumps) = (clock.sync(), clock.jumps());
        let mut book = self.book();
        let over = book.grants.get(&lease).filter(|grant| grant.jumps == jumps && grant.expires_at < now);
        if let Some(grant) = over {
            let late = now.since(grant.expires_at);
            let name = book.names.get(&job).cloned().unwrap_or_default();
            let text = format!("{name} runs on {} {late:?} after the end of lease {lease}", node.name());
            book.find(Rule::RanPastDeadline, text);
        }
    }

    /// A handler is over.
    pub(crate) fn stopped(&self, job: JobId, lease: LeaseNo) {
        if let Some(run) = self.book().runs.get_mut(&(job, lease)) {
            run.is_over = true;
        }
    }

    /// Writes down what is wrong.
    pub(crate) fn find(&self, rule: Rule, text: String) {
        self.book().find(rule, text);
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.0)
    }
}

impl Book {
    pub(crate) fn find(&mut self, rule: Rule, text: String) {
        let finding = Finding { rule, text };
        if self.findings.len() < FINDINGS_MAX && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}
