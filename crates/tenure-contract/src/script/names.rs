//! Labels and what they stand for.

use std::collections::{BTreeMap, HashMap};

use tenure_core::{JobId, LeaseNo, RunId, WorkerId};
use tenure_store::lease::ClaimedJob;
use tenure_store::schedule::ScheduleRecord;

use crate::fixture::Fixture;

/// A number no store gives out in a test.
const UNKNOWN: LeaseNo = LeaseNo(i64::MAX - 1);

/// What the labels of a script stand for.
#[derive(Default)]
pub(super) struct Names {
    jobs: BTreeMap<String, JobId>,
    runs: BTreeMap<String, RunId>,
    workers: BTreeMap<String, WorkerId>,
    leases: BTreeMap<String, LeaseNo>,
    /// The largest fence seen.
    last_lease: i64,
    /// What each claim handed out.
    pub(super) grants: HashMap<(JobId, LeaseNo), ClaimedJob>,
    /// What each process last read of schedules.
    pub(super) looks: BTreeMap<String, Vec<ScheduleRecord>>,
}

impl Names {
    /// The id of a label; a new one on first use.
    pub(super) fn job(&mut self, t: &Fixture, label: &str) -> Result<JobId, String> {
        let digits = label.strip_prefix('J').filter(|digits| digits.parse::<u32>().is_ok());
        digits.ok_or_else(|| format!("{label} is no job: jobs are J1, J2, …"))?;
        Ok(*self.jobs.entry(label.into()).or_insert_with(|| t.new_id()))
    }

    /// The ids of labels.
    pub(super) fn jobs(&mut self, t: &Fixture, labels: &[String]) -> Result<Vec<JobId>, String> {
        labels.iter().map(|label| self.job(t, label)).collect()
    }

    /// The id of a run's label; a new one on first use.
    pub(super) fn run(&mut self, t: &Fixture, label: &str) -> Result<RunId, String> {
        let digits = label.strip_prefix('R').filter(|digits| digits.parse::<u32>().is_ok());
        digits.ok_or_else(|| format!("{label} is no run: runs are R1, R2, …"))?;
        let new = || RunId::from_uuid(*t.new_id().as_uuid());
        Ok(*self.runs.entry(label.into()).or_insert_with(new))
    }

    /// The label of a run, or its id.
    pub(super) fn run_label(&self, run: RunId) -> String {
        label_of(&self.runs, &run).unwrap_or_else(|| run.to_string())
    }

    /// The worker of a label; registered on first use.
    pub(super) async fn worker(&mut self, t: &Fixture, label: &str) -> Result<WorkerId, String> {
        if !label.starts_with('W') {
            return Err(format!("{label} is no worker: workers are W1, W2, …"));
        }
        if let Some(worker) = self.workers.get(label) {
            return Ok(*worker);
        }
        let worker = t.worker(label).await;
        self.workers.insert(label.into(), worker);
        Ok(worker)
    }

    /// The number behind a label; `unknown` is a number that was never given out.
    pub(super) fn lease(&self, label: &str) -> Result<LeaseNo, String> {
        if label == "unknown" {
            return Ok(UNKNOWN);
        }
        self.leases.get(label).copied().ok_or_else(|| format!("no claim has named lease {label}"))
    }

    /// The numbers behind labels with commas between them.
    pub(super) fn leases(&self, labels: &str) -> Result<Vec<LeaseNo>, String> {
        labels.split(',').map(|label| self.lease(label)).collect()
    }

    /// Binds a label to a new lease. Answers the largest number seen before where the new one is not larger.
    pub(super) fn bind(&mut self, label: Option<String>, lease: LeaseNo) -> Result<Option<i64>, String> {
        if let Some(label) = label
            && self.leases.insert(label.clone(), lease).is_some()
        {
            return Err(format!("lease {label} is already there"));
        }
        let repeated = (lease.0 <= self.last_lease).then_some(self.last_lease);
        self.last_lease = self.last_lease.max(lease.0);
        Ok(repeated)
    }

    /// The label of a job, or its id.
    pub(super) fn job_label(&self, job: JobId) -> String {
        label_of(&self.jobs, &job).unwrap_or_else(|| job.to_string())
    }

    /// The label of a lease, or `?`.
    pub(super) fn lease_label(&self, lease: LeaseNo) -> String {
        if lease == UNKNOWN {
            return "unknown".into();
        }
        label_of(&self.leases, &lease).unwrap_or_else(|| "?".into())
    }

    /// Labels of the jobs that a text names by id.
    pub(super) fn in_text(&self, text: &str) -> Vec<String> {
        let named = self.jobs.iter().filter(|(_, job)| text.contains(&job.to_string()));
        named.map(|(label, _)| label.clone()).collect()
    }
}

fn label_of<T: PartialEq>(labels: &BTreeMap<String, T>, value: &T) -> Option<String> {
    labels.iter().find(|(_, other)| *other == value).map(|(label, _)| label.clone())
}
