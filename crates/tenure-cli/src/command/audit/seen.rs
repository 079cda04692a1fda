//! Follows a journal: what was seen already, and what came since.

use std::collections::HashSet;

use tenure_core::journal::JournalRow;
use tenure_store::{Store, StoreError};

use tenure_store::journal::{all_of, newest};

/// Seals looked at in one go.
const PAGE_SEALS: u32 = 100;
/// Where nobody seals, the whole journal is the tail: only so many ids below the newest are looked at again for rows
/// that were committed late. Where somebody seals, none is missed.
const LATE_IDS_MAX: i64 = 10_000;

/// What was shown already, or was there before.
pub(crate) struct Seen {
    /// Seen, and not under a seal we know.
    unsealed: HashSet<i64>,
    /// Everything up to here was there before.
    floor: i64,
    seal: i64,
    newest: i64,
}

/// What one look found: rows of each new seal, and of the tail.
pub(crate) struct News {
    seals: Vec<(i64, Vec<JournalRow>)>,
    tail: Vec<JournalRow>,
}

impl Seen {
    /// Nothing yet: everything that is there comes first.
    pub(crate) fn nothing() -> Self {
        Self { unsealed: HashSet::new(), floor: 0, seal: 0, newest: 0 }
    }

    /// The newest rows, and what is there besides. The tail is read first: what comes or is sealed meanwhile is then
    /// known or new, never both.
    pub(crate) async fn begin(store: &dyn Store, count: usize) -> Result<(Self, Vec<JournalRow>), StoreError> {
        let (newest_row, _) = newest(store, 1).await?;
        let floor = newest_row.first().map_or(0, |row| (row.id - LATE_IDS_MAX).max(0));
        let mut unsealed: HashSet<i64> = all_of(store, None, floor).await?.iter().map(|row| row.id).collect();
        let (rows, seal) = newest(store, count).await?;
        unsealed.extend(rows.iter().map(|row| row.id));
        let newest = rows.last().map_or(0, |row| row.id);
        Ok((Self { unsealed, floor, seal, newest }, rows))
    }

    /// Seals first, then the tail: what is sealed in between is in neither, and under a new seal at the next look.
    pub(crate) async fn look(&self, store: &dyn Store) -> Result<News, StoreError> {
        let mut seals = Vec::new();
        for seal in store.list_seals(self.seal, PAGE_SEALS).await? {
            seals.push((seal.no, all_of(store, Some(seal.no), 0).await?));
        }
        let tail = all_of(store, None, (self.newest - LATE_IDS_MAX).max(0)).await?;
        Ok(News { seals, tail })
    }

    /// The rows that are new, in id order. What is under a known seal is never read again, so it need not be kept.
    pub(crate) fn take(&mut self, news: News) -> Vec<JournalRow> {
        let mut rows = Vec::new();
        for (no, sealed) in news.seals {
            self.seal = no;
            rows.extend(sealed.into_iter().filter(|row| !self.unsealed.remove(&row.id)));
        }
        rows.extend(news.tail.into_iter().filter(|row| self.unsealed.insert(row.id)));
        rows.retain(|row| row.id > self.floor);
        rows.sort_by_key(|row| row.id);
        self.newest = rows.last().map_or(self.newest, |row| row.id.max(self.newest));
        rows
    }
}
