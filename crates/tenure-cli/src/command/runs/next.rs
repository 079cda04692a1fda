//! What a person would do next about a run of which something is missing.

use tenure_core::name::PartitionName;
use tenure_core::run::{Fan, Part};
use tenure_core::{How, JobId, RunState};
use tenure_store::operate::BATCH_MAX;
use tenure_store::run::{PartitionFilter, RunRecord};
use tenure_store::{Store, StoreError};

use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table};

/// What could go on again.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// One of the partitions that stopped, with its job, and how many there are.
    stopped: Option<(PartitionName, JobId)>,
    partitions: usize,
    /// Whether there are members besides them that are missing.
    has_items: bool,
}

impl Next {
    pub(super) async fn find(store: &dyn Store, record: &RunRecord) -> Result<Self, StoreError> {
        let run = &record.run;
        if record.refuse_settled().is_err() || run.failed + run.canceled == 0 {
            return Ok(Self::default());
        }
        let mut next = Self::default();
        for state in [RunState::Failed, RunState::Canceled] {
            let filter = PartitionFilter {
                run: Some(record.id),
                state: Some(state),
                limit: BATCH_MAX,
                ..PartitionFilter::default()
            };
            let found = store.list_partitions(&filter).await?;
            next.partitions += found.len();
            next.stopped = next.stopped.or_else(|| found.into_iter().next().map(|one| (one.name, one.job)));
        }
        next.has_items = run.failed + run.canceled > next.partitions as u64 && next.partitions < BATCH_MAX as usize;
        Ok(next)
    }

    /// The commands, or nothing where nobody is needed.
    pub(super) fn print(&self, record: &RunRecord, out: &mut Output) {
        let lines = self.commands(record);
        if lines.is_empty() {
            return;
        }
        out.line("");
        out.line(Paint::Bold.apply("What to do next", out.color()));
        let mut table = Table::new(&[]);
        for (command, what) in lines {
            table.row(vec![format!("  {command}").into(), Cell::dim(what)]);
        }
        out.table(&table);
        if record.run.expired {
            out.line("Its deadline is over; once something of it is resumed, it goes on without one.");
        }
    }

    fn commands(&self, record: &RunRecord) -> Vec<(String, &'static str)> {
        let id = record.id;
        let mut lines = Vec::new();
        if let (RunState::Failed, Fan::Ended(how), Some(job)) = (record.run.state, record.run.fan, record.consolidate)
            && how != How::Succeeded
        {
            lines.push((format!("tenure jobs show {job}"), "why the consolidate did not succeed"));
            if record.run.refuses_requeue(&Part::Consolidate(id)).is_none() {
                lines.push((format!("tenure jobs requeue {job}"), "run it again; the run goes on with it"));
            }
        }
        if let Some((name, job)) = &self.stopped {
            lines.push((format!("tenure jobs show {job}"), "the page that stopped, and every attempt"));
            match self.partitions {
                1 => lines.push((format!("tenure partitions resume {id} {name}"), "go on where it stopped")),
                _ => lines.push((format!("tenure partitions resume {id} --all"), "all go on where they stopped")),
            }
            lines.push((format!("tenure partitions reset {id} {name}"), "begin it again from the start"));
        }
        if self.has_items {
            lines.push(("tenure dead list --each".to_owned(), "items are jobs of their own: find those that died"));
            lines.push(("tenure jobs requeue ID".to_owned(), "run one again; the run goes on with it"));
        }
        lines
    }
}
