//! [`Watch`]: what the workers and their tasks do, as lines, each look only what is new.
//!
//! Workers say in the registry where their loop stands, a few times a second at most; what tasks went through is in the
//! journal. Between two looks a loop takes many steps: whoever wants every one of them starts `tasks worker --states`.
//!
//! Rows of the journal have numbers in the order they were begun, and on Postgres one that is committed late shows up behind
//! others that were told already. So each look goes back as far as the look before has seen, and a window further, and tells
//! what it has not told.

use std::collections::{BTreeMap, BTreeSet};

use tenure::core::WorkerId;
use tenure::core::journal::JournalRow;
use tenure::store::journal::JournalFilter;
use tenure::store::worker::{Standing, WorkerRecord};
use tenure::{Client, Sight, StoreError};

use crate::state::State;
use crate::task::QUEUE;

/// Workers shown, and tasks of one row.
const SHOWN_MAX: u32 = 200;
/// Rows read at once; and how many numbers a row may be late.
const WINDOW: u32 = 1_000;

/// Somebody who watches.
pub struct Watch {
    client: Client,
    /// What was last said of each worker.
    workers: BTreeMap<WorkerId, String>,
    /// How many rows of the journal are read at once, and how late one may be.
    window: u32,
    /// What the last look has seen.
    known: Option<Known>,
}

/// The window of a look: its rows were told, or were there before.
struct Known {
    /// Where it begins: only numbers above are asked for again.
    floor: i64,
    ids: BTreeSet<i64>,
}

impl Watch {
    /// Begins now: what happened before is not told.
    pub fn new(client: Client) -> Self {
        Self { client, workers: BTreeMap::new(), window: WINDOW, known: None }
    }

    /// What is new: a line for each worker that says something else than before, then one for each change of a task.
    pub async fn look(&mut self) -> Result<Vec<String>, StoreError> {
        let store = self.client.store();
        let now = store.now().await?;
        let mut lines = Vec::new();
        let mut names = BTreeMap::new();
        for worker in store.list_workers(SHOWN_MAX).await? {
            names.insert(worker.id, worker.name.to_string());
            let standing = Standing::of(&worker, now);
            let line = worker_line(&worker, standing);
            // Who went long ago is no news.
            let is_news = standing.is_there() || self.workers.contains_key(&worker.id);
            if is_news && self.workers.insert(worker.id, line.clone()).as_ref() != Some(&line) {
                lines.push(line);
            }
        }
        for row in self.rows().await? {
            lines.extend(self.task_lines(&row, &names).await?);
        }
        Ok(lines)
    }

    /// Rows of the journal that the looks before did not see, oldest first.
    async fn rows(&mut self) -> Result<Vec<JournalRow>, StoreError> {
        let mut filter = JournalFilter { limit: self.window, ..JournalFilter::default() };
        // Whoever looks for the first time has one window to remember.
        let floor = self.known.as_ref().map_or(i64::MAX, |known| known.floor);
        let mut rows = Vec::new();
        loop {
            let found = self.client.store().list_journal(&filter).await?;
            let is_back = found.rows.last().is_none_or(|row| row.id <= floor);
            rows.extend(found.rows);
            filter.before = found.next;
            if is_back || filter.before.is_none() {
                break;
            }
        }
        let floor = rows.first().map_or(0, |row| row.id) - i64::from(self.window);
        let ids = rows.iter().map(|row| row.id).filter(|id| *id > floor).collect();
        match self.known.replace(Known { floor, ids }) {
            Some(known) => rows.retain(|row| row.id > known.floor && !known.ids.contains(&row.id)),
            None => rows.clear(),
        }
        rows.reverse();
        Ok(rows)
    }

    /// What a row says of tasks; nothing, when it is about something else.
    async fn task_lines(
        &self,
        row: &JournalRow,
        names: &BTreeMap<WorkerId, String>,
    ) -> Result<Vec<String>, StoreError> {
        let mut lines = Vec::new();
        for job in row.jobs.iter().take(SHOWN_MAX as usize) {
            let record = match self.client.store().show_job(&Sight::All, *job).await {
                Ok(record) => record,
                Err(StoreError::NotFound(_)) => continue,
                Err(error) => return Err(error),
            };
            if record.summary.queue.as_str() != QUEUE {
                continue;
            }
            let by = row.worker.and_then(|worker| names.get(&worker)).map_or("somebody", String::as_str);
            let fence = row.lease.map(|lease| format!(", fence {lease}")).unwrap_or_default();
            lines.push(format!("{} task {job} {} {} by {by}{fence}", row.at, record.summary.kind, row.event.as_str()));
        }
        Ok(lines)
    }
}

fn worker_line(worker: &WorkerRecord, standing: Standing) -> String {
    let state = match standing {
        Standing::There(state) => State::from(state).to_string(),
        Standing::New | Standing::Stopped | Standing::Gone => standing.as_str().to_owned(),
    };
    let (running, reporting) = worker.beat.as_ref().map_or((0, 0), |beat| (beat.running, beat.reporting));
    let (id, name) = (worker.id.to_string(), worker.name.as_str());
    format!("worker {id:>3} {name:<24} {state:<12} {running} running, {reporting} reporting")
}

#[cfg(test)]
mod tests {
    use kit::testing::Place;
    use tenure::JobId;

    use super::*;
    use crate::task::{Report, client};

    /// Each cancellation is a row.
    async fn cancel(client: &Client, tasks: usize) -> Vec<JobId> {
        let mut canceled = Vec::new();
        for _ in 0..tasks {
            let task = client.enqueue(Report {}).await.unwrap().job();
            client.cancel(task).await.unwrap();
            canceled.push(task);
        }
        canceled
    }

    #[tokio::test]
    async fn more_changes_than_a_page_has_are_all_told_once() {
        let place = Place::sqlite(crate::TABLES).await;
        let client = client(&place.database);
        cancel(&client, 5).await;
        let mut watch = Watch { window: 3, ..Watch::new(client.clone()) };
        assert_eq!(watch.look().await.unwrap(), [""; 0], "what was there before is not told");
        for tasks in [10, 0, 1, 2] {
            let canceled = cancel(&client, tasks).await;
            let lines = watch.look().await.unwrap();
            assert_eq!(lines.len(), tasks, "{lines:#?}");
            assert!(lines.iter().zip(canceled).all(|(line, task)| line.contains(&task.to_string())), "{lines:#?}");
        }
    }
}
