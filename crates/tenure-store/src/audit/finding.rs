//! What a check of the journal reports.

use tenure_core::{EventKind, JobId, State, Timestamp};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A seal is missing between its neighbours.
    #[error("seal {expected} is missing: the next one is {found}")]
    SealMissing {
        /// The number that should come.
        expected: i64,
        /// The number that came.
        found: i64,
    },
    /// A seal does not follow the one before it.
    #[error("seal {no} does not follow the seal before it: the chain was cut or forked")]
    SealUnlinked {
        /// Which.
        no: i64,
    },
    /// The rows of a seal, or the seal itself, are not what was sealed.
    #[error("seal {no} does not fit its rows: {expected} rows were sealed, {found} are there")]
    RowsChanged {
        /// Which.
        no: i64,
        /// Rows when it was sealed.
        expected: i64,
        /// Rows now.
        found: i64,
    },
    /// A row is in the journal's table, but no seal covers it and no seal ever will.
    #[error("journal row {row} is under no seal and not among the rows to be sealed: it was inserted past the verbs")]
    StrayRow {
        /// The row's id.
        row: i64,
    },
    /// Rows were written once, and now there is none and no seal.
    #[error("the journal is empty and nothing is sealed, but {}", trace(.drawn, .attempts))]
    JournalEmpty {
        /// Ids that were drawn for rows.
        drawn: i64,
        /// Whether attempts are stored.
        attempts: bool,
    },
    /// The chain does not contain the anchor.
    #[error("the chain does not contain the anchor: seal {no} with {rows} rows and hash {hash}")]
    AnchorMissed {
        /// The anchor's seal.
        no: i64,
        /// Rows up to it.
        rows: i64,
        /// Its hash.
        hash: String,
    },
    /// The record says something that cannot happen.
    #[error("journal row {row}: job {job} was {} and cannot {event:?}", .from.as_str())]
    IllegalStep {
        /// The row's id.
        row: i64,
        /// The job.
        job: JobId,
        /// Where it stood by the record.
        from: State,
        /// What is said to have happened.
        event: EventKind,
    },
}

fn trace(drawn: &i64, attempts: &bool) -> String {
    match attempts {
        true => "attempts are stored, and each of them left a row: the rows were deleted".to_owned(),
        false => format!(
            "{drawn} row numbers were drawn: the rows were deleted, or every transaction that wrote one was rolled back"
        ),
    }
}

/// Something that tampering can cause, and other things can cause as well. A remark does not fail a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    /// The time of a row is later than the time of its seal.
    #[error(
        "journal row {row} has the time {at}, and seal {seal} covered it at {sealed_at}: dated ahead, or a clock was set back"
    )]
    DatedAhead {
        /// The row's id.
        row: i64,
        /// Its time.
        at: Timestamp,
        /// The seal that covers it.
        seal: i64,
        /// When that seal was made.
        sealed_at: Timestamp,
    },
    /// The time of a row is earlier than the time of a seal that was made before the row was written.
    #[error(
        "journal row {row} has the time {at}, but was written after seal {seal} of {sealed_at}: dated back, or a clock was set"
    )]
    DatedBack {
        /// The row's id.
        row: i64,
        /// Its time.
        at: Timestamp,
        /// The last seal before the row.
        seal: i64,
        /// When that seal was made.
        sealed_at: Timestamp,
    },
}
