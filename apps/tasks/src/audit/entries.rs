//! Whether everything that happened to a task is in the record.
//!
//! Each task knows its attempts apart from the record; for every time that it began to run, was done or failed there has to
//! be an entry, and the entries alone, replayed through the lifecycle, have to lead where the task stands.
//!
//! Entries are read by the leases that held the task. One that somebody made up under another lease is not seen here, but
//! by the library: its replay finds what cannot have happened, and its seals what was added later.

use std::fmt;

use tenure::core::EventKind;
use tenure::core::journal::{JournalEvent, JournalRow};
use tenure::core::lifecycle::next;
use tenure::{JobId, JobRecord, JobState};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The sealed record was changed, or says what cannot happen.
    Record(String),
    /// A task changed, and nothing says so.
    Missing {
        /// Which.
        task: JobId,
        /// To what: `claimed`, `succeeded`, `failed`, …
        event: &'static str,
        /// Under which lease.
        fence: i64,
    },
    /// Something is said of a task, under a lease that held it, that did not happen.
    Made {
        /// Which.
        task: JobId,
        /// What is said.
        event: &'static str,
        /// The row.
        row: i64,
    },
    /// The entries do not lead where the task stands.
    Elsewhere {
        /// Which.
        task: JobId,
        /// Where they lead; `None`: nowhere, one of them cannot follow the others.
        replayed: Option<JobState>,
        /// Where it stands.
        stands: JobState,
    },
}

/// Checks a task against its entries. Answers how many of its changes have theirs, and what is wrong. Of entries that are
/// cut, the oldest are missing: they are judged from the first claim on that is there.
pub(super) fn check(record: &JobRecord, rows: &[JournalRow], is_cut: bool) -> (u64, Vec<Finding>) {
    let task = record.summary.id;
    let (mut rows, mut wanted) = (rows, wanted(record));
    if is_cut {
        let claim = rows.iter().position(|row| row.event == JournalEvent::Claimed);
        let Some((first, since)) = claim.and_then(|first| Some((first, rows[first].lease?.0))) else {
            return (0, Vec::new());
        };
        rows = &rows[first..];
        wanted.retain(|(_, fence)| *fence >= since);
    }
    let (mut entries, mut findings) = (0, Vec::new());
    for (event, fence) in &wanted {
        match rows.iter().any(|row| row.event == *event && row.lease.map(|lease| lease.0) == Some(*fence)) {
            true => entries += 1,
            false => findings.push(Finding::Missing { task, event: event.as_str(), fence: *fence }),
        }
    }
    for row in rows.iter().filter(|row| row.event.step().is_some()) {
        let fence = row.lease.map(|lease| lease.0);
        let is_wanted = wanted.iter().any(|(event, no)| *event == row.event && Some(*no) == fence);
        let is_act = matches!(row.event, JournalEvent::Requeued | JournalEvent::Opened);
        if !is_wanted && !is_act {
            findings.push(Finding::Made { task, event: row.event.as_str(), row: row.id });
        }
    }
    let (replayed, stands) = (replay(rows), record.summary.state);
    if replayed != Some(as_replayed(stands)) {
        findings.push(Finding::Elsewhere { task, replayed, stands });
    }
    (entries, findings)
}

/// What the record has to say of a task: each time it began to run and each time that ended, by its fence.
fn wanted(record: &JobRecord) -> Vec<(JournalEvent, i64)> {
    let mut wanted = Vec::new();
    for attempt in &record.attempts {
        // Who was canceled while nobody held it never ran.
        if attempt.started_at.is_some() {
            wanted.push((JournalEvent::Claimed, attempt.lease.0));
        }
        wanted.push((JournalEvent::Ended(attempt.how), attempt.lease.0));
    }
    wanted.extend(record.lease.map(|lease| (JournalEvent::Claimed, lease.0)));
    wanted
}

/// Where the entries alone lead, from a task that was just added.
fn replay(rows: &[JournalRow]) -> Option<JobState> {
    rows.iter().filter_map(|row| row.event.step()).try_fold(JobState::Queued, |state, event| match (state, event) {
        // Who waits to be opened is not queued before.
        (JobState::Queued, EventKind::Open) => Some(JobState::Queued),
        (state, event) => next(state, event),
    })
}

/// A task that was never opened has no entry either: it is where it was added.
const fn as_replayed(state: JobState) -> JobState {
    match state {
        JobState::Waiting => JobState::Queued,
        state => state,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(what) => f.write_str(what),
            Self::Missing { task, event, fence } => {
                write!(f, "task {task} has no entry `{event}` under fence {fence}, and it happened")
            }
            Self::Made { task, event, row } => {
                write!(f, "task {task} has an entry `{event}`, row {row}, and it did not happen")
            }
            Self::Elsewhere { task, replayed, stands } => {
                let replayed = replayed.map_or("nowhere", JobState::as_str);
                write!(f, "task {task} is {}, and its entries lead {replayed}", stands.as_str())
            }
        }
    }
}

/// A task and its entries, for tests.
#[cfg(test)]
pub(super) mod sample {
    use tenure::core::apply::Rules;
    use tenure::core::{How, Json, LeaseNo, Priority};
    use tenure::{AttemptRecord, JobSummary, KindName, QueueName, TenantName, Timestamp};

    use super::*;

    const NOW: Timestamp = Timestamp::EPOCH;

    /// A task that was lost once and is done.
    pub(in crate::audit) fn record() -> JobRecord {
        let attempt = |lease, how| AttemptRecord {
            lease: LeaseNo(lease),
            attempt: 1,
            how,
            worker: None,
            started_at: Some(NOW),
            ended_at: NOW,
            error: None,
            result: None,
            usage: None,
        };
        let summary = JobSummary {
            id: JobId::from_parts(NOW, [7; 10]),
            tenant: TenantName::default(),
            queue: QueueName::default(),
            kind: KindName::new("task.fetch").unwrap(),
            priority: Priority::NORMAL,
            gate: None,
            state: JobState::Succeeded,
            attempt: 1,
            max_attempts: 3,
            run_at: NOW,
            created_at: NOW,
            finished_at: Some(NOW),
            locked_by: None,
            error: None,
        };
        JobRecord {
            summary,
            payload: Json::null(),
            rules: Rules::default(),
            losses: 1,
            trace: None,
            callback_url: None,
            part: None,
            lease: None,
            lease_expires_at: None,
            heartbeat_at: None,
            cancel_requested: false,
            attempts: vec![attempt(1, How::Lost), attempt(2, How::Succeeded)],
        }
    }

    pub(in crate::audit) fn rows() -> Vec<JournalRow> {
        let row = |id, event, lease| JournalRow {
            id,
            at: NOW,
            worker: None,
            actor: None,
            event,
            lease: Some(LeaseNo(lease)),
            jobs: vec![record().summary.id],
            reason: None,
            details: None,
        };
        vec![
            row(1, JournalEvent::Claimed, 1),
            row(2, JournalEvent::Ended(How::Lost), 1),
            row(3, JournalEvent::Claimed, 2),
            row(4, JournalEvent::Ended(How::Succeeded), 2),
        ]
    }
}

#[cfg(test)]
mod tests {
    use tenure::core::How;

    use super::sample::{record, rows};
    use super::*;

    fn findings(record: &JobRecord, rows: &[JournalRow]) -> Vec<String> {
        let (_, findings) = check(record, rows, false);
        findings.iter().map(|f| f.to_string().replace(&record.summary.id.to_string(), "T")).collect()
    }

    #[test]
    fn a_record_that_is_whole_has_no_findings() {
        assert_eq!(check(&record(), &rows(), false), (4, Vec::new()));
    }

    /// Shows: S3.50 S3.51
    #[test]
    fn whatever_entry_is_missing_is_named() {
        for (missing, said) in
            [(0, "`claimed` under fence 1"), (1, "`lost` under fence 1"), (3, "`succeeded` under fence 2")]
        {
            let mut rows = rows();
            rows.remove(missing);
            let found = findings(&record(), &rows);
            assert_eq!(found[0], format!("task T has no entry {said}, and it happened"));
            let nowhere = if missing == 3 { "running" } else { "nowhere" };
            assert_eq!(found[1..], [format!("task T is succeeded, and its entries lead {nowhere}")]);
        }
    }

    #[test]
    fn what_did_not_happen_is_named_and_a_wrong_order_leads_nowhere() {
        let (mut made, mut moved) = (rows(), rows());
        made.push(JournalRow { id: 5, event: JournalEvent::Ended(How::Failed), ..made[3].clone() });
        assert_eq!(
            findings(&record(), &made),
            [
                "task T has an entry `failed`, row 5, and it did not happen",
                "task T is succeeded, and its entries lead nowhere"
            ]
        );
        moved.swap(0, 1);
        assert_eq!(findings(&record(), &moved), ["task T is succeeded, and its entries lead nowhere"]);
    }

    #[test]
    fn of_entries_that_are_cut_the_oldest_are_not_asked_for() {
        for missing in 1..=2 {
            let rows = &rows()[missing..];
            assert_eq!(check(&record(), rows, true), (2, Vec::new()), "the second attempt is there, and is all");
            assert!(!check(&record(), rows, false).1.is_empty());
        }
        let mut rows = rows().split_off(1);
        rows.remove(2);
        assert_eq!(check(&record(), &rows, true).1.len(), 2, "a hole among the newest is found");
    }
}
