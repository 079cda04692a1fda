//! Reading the journal in pages.

mod filter;
mod newest;

use tenure_core::JobId;
use tenure_core::journal::JournalRow;

use crate::record::Sight;

pub use filter::{DISORDER_MAX, JournalFilter, JournalFound, LOOKED_AT_MAX, LOOKED_AT_PAGE, SUBJECTS, is_act};
pub use newest::{all_of, newest, newest_seal};

/// Most rows that the story of one job has.
pub const JOB_ROWS_MAX: u32 = 1_000;

/// A seal with fewer rows covers all that was left of its part of the journal. A store that has more to seal closes at
/// least so many rows at once, and not many more.
pub const FULL_SEAL_ROWS: i64 = 1_000;

/// Which rows to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalPage {
    /// Rows of this seal; `None` is the unsealed tail.
    pub seal: Option<i64>,
    /// Only rows with a larger id.
    pub after: i64,
    /// At most this many.
    pub limit: u32,
}

/// What a store knows of its journal apart from the rows: a journal that was emptied left these behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalTraces {
    /// The largest id that was drawn for a row; 0 for none. Postgres draws ids for rows that are rolled back, too, so there it
    /// is 0 where no attempt is stored.
    pub drawn: i64,
    /// Whether an attempt is stored. Each of them was stored together with a row.
    pub attempts: bool,
}

impl JournalTraces {
    /// Whether anything says that rows were written.
    pub fn are_there(&self) -> bool {
        self.drawn > 0 || self.attempts
    }
}

/// A row as the story of one job tells it: others that were claimed with it are not named, and a tenant is not told who
/// wrote it and why, as webhooks do not tell it either.
pub fn row_of_job(row: JournalRow, job: JobId, sight: &Sight) -> JournalRow {
    let row = JournalRow { jobs: vec![job], ..row };
    match sight {
        Sight::All => row,
        Sight::Tenant(_) => JournalRow { worker: None, actor: None, reason: None, ..row },
    }
}
