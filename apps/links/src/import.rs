//! [`Import`]: a file of bookmarks that a user gave us, and how far we are with it.
//!
//! ```text
//!   file ──one transaction──► placements, links, one job per new link, the import's own job
//!                                              │                              │
//!                                   enrich: fetched once, for ever     begin, then settle: a run of one partition,
//!                                   gate domain:<site>, k = 2          whose rows are the links that have ended
//! ```
//!
//! Links belong to everybody, imports to one user. So the job of a link is no part of any import: an import *waits* for
//! its links, whoever brought them first, and counts those that have ended. It is a run of Tenure: state, times and progress
//! are the run's, `processed_items` are the rows of its partition.
//!
//! An import that is canceled waits no more. A link that another import waits for goes on; one that nobody waits for is put
//! aside before it is fetched, until somebody imports it. Its job is never canceled: it is the only one it will ever have.
//!
//! | status | means |
//! |---|---|
//! | `queued` | stored, and nothing looked at yet |
//! | `running` | some of its links have not ended |
//! | `succeeded` | all have ended, and one of them at least is enriched; or there was none |
//! | `failed` | all have ended, and none is enriched; or the import itself could not go on |
//! | `canceled` | its user ended it |

mod store;

use serde::Serialize;
use tenure::store::operate::Word;
use tenure::store::run::{CancelRun, RunRecord};
use tenure::{Client, Database, Record, RunId, RunState, Sight, StoreError, Timestamp, row};

pub use store::{USER_CHARS_MAX, check_user, store};

/// What the seed calls a file of Chrome.
pub const SOURCE_TYPE: &str = "chrome_html";

/// An import as its user reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Its id, which is also that of its run.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// `chrome_html`.
    pub source_type: String,
    /// Where it stands.
    pub status: &'static str,
    /// Links, each once.
    pub total_items: u64,
    /// Those that have ended.
    pub processed_items: u64,
    /// Of these, those that could not be enriched.
    pub failed_items: u64,
    /// Entries of the file that are no links.
    pub skipped: u64,
    /// Places of the file that could not be read.
    pub unreadable: u64,
    /// When it came.
    pub created_at: String,
    /// When it was first looked at.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Links.
    pub total: u64,
    /// Those that have ended.
    pub processed: u64,
    /// Those that could not be enriched.
    pub failed: u64,
}

impl Counts {
    /// Reads the answer of `count_items.sql`.
    pub fn read(row: &Record) -> Result<Self, StoreError> {
        Ok(Self { total: row.get("total")?, processed: row.get("processed")?, failed: row.get("failed")? })
    }
}

/// The statement that counts the links of an import.
pub(crate) const COUNT_ITEMS: &str = include_str!("sql/count_items.sql");

impl Import {
    /// The import of this id, if it is this user's. Nobody else's is there.
    pub async fn find(client: &Client, database: &Database, user: &str, id: &str) -> Result<Option<Self>, StoreError> {
        let select = "select id, user_name, source_type, skipped, unreadable, created_at, canceled_at \
                      from link_import where id = $1 and user_name = $2";
        let found = database.query(select, row![id, user]).await?;
        let Some(own) = found.first() else { return Ok(None) };
        let run = find_run(client, id).await?;
        let counts = database.query(COUNT_ITEMS, row![id]).await?;
        let Some(counts) = counts.first() else { return Ok(None) };
        let last_error = last_error(database, id).await?;
        Self::read(own, run.as_ref(), Counts::read(counts)?, last_error).map(Some)
    }

    /// Ends it: `None` when the user has no such import, `false` when it had ended before.
    pub async fn cancel(
        client: &Client,
        database: &Database,
        user: &str,
        id: &str,
    ) -> Result<Option<bool>, StoreError> {
        let Some(import) = Self::find(client, database, user, id).await? else { return Ok(None) };
        // Somebody may have canceled it and not come to end its run.
        let is_open = |run: RunRecord| matches!(run.run.state, RunState::Queued | RunState::Running);
        let goes_on = find_run(client, id).await?.is_some_and(is_open);
        if !goes_on && !matches!(import.status, "queued" | "running") {
            return Ok(Some(false));
        }
        let (id, by) = (id.to_owned(), user.to_owned());
        let run: RunId = id.parse()?;
        // First here, so that its own jobs hear of it even when this process ends between the two.
        let update = "update link_import set canceled_at = $2 where id = $1 and canceled_at is null";
        database.transaction(move |tx| tx.execute(update, row![id.as_str(), tx.now()?])).await?;
        let word = Word { actor: Some(by), reason: Some("the user canceled the import".to_owned()) };
        match client.store().cancel_run(CancelRun { sight: Sight::All, run, word }).await {
            // It has not begun; when it does it will see.
            Err(StoreError::NotFound(_)) => Ok(Some(true)),
            // It ended meanwhile.
            Err(StoreError::Conflict(_)) => Ok(Some(false)),
            answer => answer.map(|_| Some(true)),
        }
    }

    fn read(
        own: &Record,
        run: Option<&RunRecord>,
        counts: Counts,
        link_error: Option<String>,
    ) -> Result<Self, StoreError> {
        let canceled_at: Option<Timestamp> = own.get("canceled_at")?;
        let state = match run.map_or(RunState::Queued, |run| run.run.state) {
            // A run hears a moment later what its pages did.
            RunState::Queued if counts.processed > 0 => RunState::Running,
            state => state,
        };
        let has_ended = matches!(state, RunState::Succeeded | RunState::Failed);
        let own_error = run.filter(|run| run.run.state == RunState::Failed).and_then(|run| run.run.last_error.clone());
        let at = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let finished_at = run.and_then(|run| run.run.finished_at);
        Ok(Self {
            id: own.get("id")?,
            user: own.get("user_name")?,
            source_type: own.get("source_type")?,
            status: if canceled_at.is_some() && !has_ended { "canceled" } else { state.as_str() },
            total_items: counts.total,
            processed_items: counts.processed,
            failed_items: counts.failed,
            skipped: own.get("skipped")?,
            unreadable: own.get("unreadable")?,
            created_at: own.get::<Timestamp>("created_at")?.to_string(),
            started_at: at(run.and_then(|run| run.run.started_at)),
            finished_at: at(finished_at.or(canceled_at.filter(|_| !has_ended))),
            last_error: own_error.map(|error| message(&error)).or(link_error),
        })
    }
}

/// The run of an import; none before it has begun.
async fn find_run(client: &Client, id: &str) -> Result<Option<RunRecord>, StoreError> {
    match client.show_run(id.parse()?).await {
        Ok(run) => Ok(Some(run)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What one of its links met since it came, the last one; or why one of them counts as failed.
async fn last_error(database: &Database, id: &str) -> Result<Option<String>, StoreError> {
    let found = database.query(include_str!("sql/find_last_error.sql"), row![id]).await?;
    found.first().map(|row| row.get("last_error")).transpose()
}

/// The words of a stored error.
pub(crate) fn message(error: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(error).ok();
    let said = parsed.as_ref().and_then(|error| error.get("message")?.as_str());
    said.unwrap_or(error).to_owned()
}
