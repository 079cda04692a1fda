//! A copy of a file, and a file that was restored from a backup, go on with numbers that its original never drew.
//!
//! A file cannot know that it is a copy: the operator says so, by `tenure migrate rehome --leap`.

use tenure_core::journal::JournalEvent;

use crate::fault::Result;
use crate::journal::{self, Entry};
use crate::tx::Tx;

const ADD_SEQUENCES: &str = include_str!("sql/add_sequences.sql");
const LEAP_NUMBERS: &str = include_str!("sql/leap_numbers.sql");

/// Moves the numbers of leases, journal rows and workers far above the last ones.
pub(crate) fn leap_numbers(tx: &Tx<'_>) -> Result<()> {
    tx.execute(ADD_SEQUENCES, &[])?;
    tx.execute(LEAP_NUMBERS, &[])?;
    let reason = Some("a copy or a restored backup: numbers leap");
    journal::add_json(tx, &Entry { reason, ..Entry::new(JournalEvent::Rehomed) }, "[]")
}
