//! Finds rows that are in the journal's table, but neither under a seal nor among the rows to be sealed.

use std::collections::HashSet;

use crate::error::StoreError;
use crate::store::JournalStore;

/// Ids read at once.
const PAGE_IDS: u32 = 10_000;

/// Compares every id of the table with the ids that seals and the tail account for.
///
/// The ids are walked in order beside the seals, so that most of them cancel out at once. What stays is small: rows that
/// were committed late are walked long before the seal that covers them is read.
#[derive(Default)]
pub(super) struct Strays {
    /// Read under a seal or in the tail, and not walked yet.
    accounted: HashSet<i64>,
    /// Walked, and not read under a seal or in the tail yet.
    walked: HashSet<i64>,
    /// The last id that was walked.
    place: Option<i64>,
}

impl Strays {
    /// A seal or the tail has this row.
    pub(super) fn account(&mut self, id: i64) {
        if !self.walked.remove(&id) && self.place.is_none_or(|place| id > place) {
            self.accounted.insert(id);
        }
    }

    /// Walks on, at least up to this id; `None`: to the end.
    pub(super) async fn walk(&mut self, store: &dyn JournalStore, to: Option<i64>) -> Result<(), StoreError> {
        while self.place.is_none_or(|place| to.is_none_or(|to| place < to)) {
            let from = match self.place {
                None => i64::MIN,
                Some(i64::MAX) => return Ok(()),
                Some(place) => place + 1,
            };
            let ids = store.list_journal_ids(from, PAGE_IDS).await?;
            for id in &ids {
                if !self.accounted.remove(id) {
                    self.walked.insert(*id);
                }
            }
            self.place = ids.last().copied().or(self.place);
            if ids.len() < PAGE_IDS as usize {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the table had no row at all.
    pub(super) fn is_empty(&self) -> bool {
        self.place.is_none()
    }

    /// Ids that nothing accounts for, in order. Complete after the tail was read, and every seal that was made meanwhile.
    pub(super) fn left(&self) -> Vec<i64> {
        let mut left: Vec<i64> = self.walked.iter().copied().collect();
        left.sort_unstable();
        left
    }
}
