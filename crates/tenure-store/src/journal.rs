//! Reading the journal in pages.

mod newest;

pub use newest::{all_of, newest};

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
