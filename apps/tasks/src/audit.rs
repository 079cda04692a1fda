//! The audit: whether the record is whole, checked by replaying it.
//!
//! Two questions. Is the record the one that was written? The library recomputes its seals and replays every row
//! ([`tenure::store::audit`]). And is everything in it? Each task knows its attempts apart from the record: see
//! [`entries`].
//!
//! A task that changes each time it is read is skipped, and counted: nothing is known of it. One with more entries than the
//! library tells of a task is judged by the newest of them, and counted as well.

pub mod entries;

use std::fmt;
use std::future::Future;

use tenure::core::journal::JournalRow;
use tenure::store::audit::verify;
use tenure::store::journal::JOB_ROWS_MAX;
use tenure::{JobFilter, JobId, JobRecord, QueueName, Sight, Store, StoreError};

use crate::task::QUEUE;

pub use entries::Finding;

/// Tasks read at once.
const PAGE: u32 = 500;
/// Looks at a task that changes meanwhile.
const LOOKS_MAX: usize = 10;
/// Findings after which nobody looks further.
const FINDINGS_MAX: usize = 100;

/// What an audit saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Tasks that were looked at.
    pub tasks: u64,
    /// Their changes to running, done or error, each with its entry.
    pub entries: u64,
    /// Rows of the whole record, sealed or not.
    pub rows: i64,
    /// Those that a seal covers.
    pub sealed: i64,
    /// Tasks of which only the newest entries were looked at: they have more than the library tells of one.
    pub cut: u64,
    /// Tasks that changed each time they were read.
    pub skipped: u64,
    /// What is wrong; empty is the only good answer.
    pub findings: Vec<Finding>,
}

/// Looks at the whole record and at every task.
pub async fn audit(store: &dyn Store) -> Result<Audit, StoreError> {
    let report = verify(store, None, |_| ()).await?;
    let findings = report.findings.iter().map(|finding| Finding::Record(finding.to_string())).collect();
    let mut audit = Audit { rows: report.rows + report.tail, sealed: report.rows, findings, ..Audit::default() };
    let queue = Some(QueueName::new(QUEUE)?);
    let mut filter = JobFilter { queue, limit: PAGE, ..JobFilter::default() };
    loop {
        let page = store.list_jobs(&filter).await?;
        for task in &page {
            audit.take(&read(|| look(store, task.id)).await?);
            if audit.findings.len() >= FINDINGS_MAX {
                return Ok(audit);
            }
        }
        filter.before = page.last().map(|task| task.id);
        if page.len() < PAGE as usize {
            return Ok(audit);
        }
    }
}

/// What came of reading a task.
enum Seen {
    /// The task and its entries as they were at one moment.
    Task(Box<JobRecord>, Vec<JournalRow>),
    /// It was pruned meanwhile.
    Gone,
    /// It changed each time.
    Restless,
}

/// Reads until two looks in a row see the same task: the entries that lie between belong to it.
async fn read<F>(mut look: impl FnMut() -> F) -> Result<Seen, StoreError>
where
    F: Future<Output = Result<Option<(Vec<JournalRow>, JobRecord)>, StoreError>>,
{
    let mut before = None;
    for _ in 0..LOOKS_MAX {
        let Some((rows, record)) = look().await? else { return Ok(Seen::Gone) };
        if before.as_ref().is_some_and(|before| is_same(before, &record)) {
            return Ok(Seen::Task(Box::new(record), rows));
        }
        before = Some(record);
    }
    Ok(Seen::Restless)
}

/// The entries of a task, then the task; `None` for one that is gone.
async fn look(store: &dyn Store, task: JobId) -> Result<Option<(Vec<JournalRow>, JobRecord)>, StoreError> {
    let rows = store.list_job_rows(&Sight::All, task).await;
    let record = store.show_job(&Sight::All, task).await;
    match (rows, record) {
        (Err(StoreError::NotFound(_)), _) | (_, Err(StoreError::NotFound(_))) => Ok(None),
        (rows, record) => Ok(Some((rows?, record?))),
    }
}

/// Whether nothing was written down between two looks: a renewal is no change.
fn is_same(one: &JobRecord, other: &JobRecord) -> bool {
    (one.summary.state, one.lease, one.attempts.len()) == (other.summary.state, other.lease, other.attempts.len())
}

impl Audit {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }

    fn take(&mut self, seen: &Seen) {
        let (record, rows) = match seen {
            Seen::Task(record, rows) => (record, rows),
            Seen::Gone => return,
            Seen::Restless => {
                self.skipped += 1;
                return;
            }
        };
        self.tasks += 1;
        let is_cut = rows.len() >= JOB_ROWS_MAX as usize;
        self.cut += u64::from(is_cut);
        let (entries, findings) = entries::check(record, rows, is_cut);
        self.entries += entries;
        self.findings.extend(findings);
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, entries, rows, sealed, cut, skipped, .. } = self;
        write!(f, "{tasks} tasks, {entries} changes with their entries, {rows} rows, {sealed} of them sealed")?;
        if *cut > 0 {
            write!(f, "; {cut} with more entries than are told of one: only their newest were checked")?;
        }
        match skipped {
            0 => Ok(()),
            skipped => write!(f, "; {skipped} skipped: they changed each time they were read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use tenure::core::LeaseNo;

    use super::entries::sample;
    use super::*;

    fn said(seen: &Seen) -> String {
        let mut audit = Audit::default();
        audit.take(seen);
        assert!(audit.is_whole(), "{audit:?}");
        audit.to_string()
    }

    #[tokio::test]
    async fn a_task_that_changes_each_time_it_is_read_is_skipped_and_counted() {
        let looks = Cell::new(0);
        let changes_until = |last: i64| {
            looks.set(0);
            let looks = &looks;
            read(move || {
                looks.set(looks.get() + 1);
                let record = JobRecord { lease: Some(LeaseNo(looks.get().min(last))), ..sample::record() };
                ready(Ok(Some((sample::rows(), record))))
            })
        };
        let seen = changes_until(i64::MAX).await.unwrap();
        assert!(matches!(seen, Seen::Restless) && looks.get() == LOOKS_MAX as i64);
        assert_eq!(
            said(&seen),
            "0 tasks, 0 changes with their entries, 0 rows, 0 of them sealed; 1 skipped: they changed each time they were read"
        );
        assert!(matches!(changes_until(3).await.unwrap(), Seen::Task(..)) && looks.get() == 4);
        assert!(matches!(read(|| ready(Ok(None))).await.unwrap(), Seen::Gone));
        assert_eq!(said(&Seen::Gone), "0 tasks, 0 changes with their entries, 0 rows, 0 of them sealed");
    }
}
