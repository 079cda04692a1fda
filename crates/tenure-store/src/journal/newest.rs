//! Finds the newest rows of a journal that can only be read forwards.
//!
//! The port answers "what comes after this number?", in order. The last number is found by asking that for numbers that
//! grow twofold until the answer is empty, and then by halving: forty short questions for a billion rows, where reading
//! forwards would take a billion rows.

use tenure_core::journal::JournalRow;
use tenure_core::seal::Seal;

use super::JournalPage;
use crate::error::StoreError;
use crate::store::JournalStore;

/// Rows read at once.
const PAGE_ROWS: u32 = 2_000;
/// Seals looked through for rows; each has at least one.
const PAGE_SEALS: i64 = 1_000;

/// Looks again when a seal was made between two questions: its rows were in neither answer.
const TRIES_MAX: usize = 5;

/// The newest `count` rows in id order, and the number of the last seal then.
pub async fn newest(store: &dyn JournalStore, count: usize) -> Result<(Vec<JournalRow>, i64), StoreError> {
    let mut last = last_seal(store).await?;
    let mut rows = newest_of(store, None, count).await?;
    for _ in 1..TRIES_MAX {
        let now = last_seal(store).await?;
        if now == last {
            break;
        }
        last = now;
        rows = newest_of(store, None, count).await?;
    }
    let mut no = last;
    while rows.len() < count && no > 0 && no > last - PAGE_SEALS {
        let mut sealed = newest_of(store, Some(no), count - rows.len()).await?;
        sealed.append(&mut rows);
        rows = sealed;
        no -= 1;
    }
    // What was committed late is sealed late, yet has a small id.
    rows.sort_by_key(|row| row.id);
    Ok((rows, last))
}

/// The last seal; `None` when nothing is sealed yet. `known`: the number of one that is there, or zero; the nearer it is,
/// the fewer questions.
pub async fn newest_seal(store: &dyn JournalStore, known: i64) -> Result<Option<Seal>, StoreError> {
    let last = last_number(known, &Seals { store }).await?;
    Ok(store.list_seals(last - 1, 1).await?.pop())
}

/// Every row of one seal or of the tail with an id above `after`, in id order.
pub async fn all_of(store: &dyn JournalStore, seal: Option<i64>, after: i64) -> Result<Vec<JournalRow>, StoreError> {
    let mut page = JournalPage { seal, after, limit: PAGE_ROWS };
    let mut all = Vec::new();
    loop {
        let mut rows = store.read_journal(page).await?;
        let full = rows.len() == PAGE_ROWS as usize;
        page.after = rows.last().map_or(page.after, |row| row.id);
        all.append(&mut rows);
        if !full {
            return Ok(all);
        }
    }
}

/// The newest `count` rows of one seal or of the tail.
async fn newest_of(store: &dyn JournalStore, seal: Option<i64>, count: usize) -> Result<Vec<JournalRow>, StoreError> {
    let mut rows = store.read_journal(JournalPage { seal, after: 0, limit: PAGE_ROWS }).await?;
    if let Some(known) = rows.last().map(|row| row.id).filter(|_| rows.len() == PAGE_ROWS as usize) {
        let last = last_number(known, &Rows { store, seal }).await?;
        // Ids have gaps: look further back until there are enough.
        let mut back = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        loop {
            let after = last.saturating_sub(back).max(0);
            rows = all_of(store, seal, after).await?;
            if rows.len() >= count || after == 0 {
                break;
            }
            back = back.saturating_mul(4);
        }
    }
    Ok(rows.split_off(rows.len().saturating_sub(count)))
}

async fn last_seal(store: &dyn JournalStore) -> Result<i64, StoreError> {
    last_number(0, &Seals { store }).await
}

/// Numbers that grow, with gaps.
trait Numbers {
    /// The first number after another.
    fn next(&self, after: i64) -> impl Future<Output = Result<Option<i64>, StoreError>> + Send;
}

/// Of the rows of one seal or of the tail.
struct Rows<'s> {
    store: &'s dyn JournalStore,
    seal: Option<i64>,
}

/// Of the seals.
struct Seals<'s> {
    store: &'s dyn JournalStore,
}

impl Numbers for Rows<'_> {
    async fn next(&self, after: i64) -> Result<Option<i64>, StoreError> {
        let rows = self.store.read_journal(JournalPage { seal: self.seal, after, limit: 1 }).await?;
        Ok(rows.first().map(|row| row.id))
    }
}

impl Numbers for Seals<'_> {
    async fn next(&self, after: i64) -> Result<Option<i64>, StoreError> {
        Ok(self.store.list_seals(after, 1).await?.first().map(|seal| seal.no))
    }
}

/// The last number, given one that is there, or zero.
async fn last_number(known: i64, numbers: &impl Numbers) -> Result<i64, StoreError> {
    let (mut low, mut step) = (known, 1);
    let mut high = loop {
        let probe = i64::saturating_add(low, step);
        match numbers.next(probe).await? {
            Some(number) => low = number,
            None => break probe,
        }
        step = i64::saturating_mul(step, 2);
    };
    // Nothing is above `high`, and `low` is there.
    while low < high {
        let middle = low + (high - low) / 2;
        match numbers.next(middle).await? {
            Some(number) => low = number,
            None => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Waker};

    use super::*;

    struct Listed {
        numbers: Vec<i64>,
        asked: AtomicU32,
    }

    impl Numbers for Listed {
        async fn next(&self, after: i64) -> Result<Option<i64>, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(self.numbers.iter().copied().find(|number| *number > after))
        }
    }

    #[test]
    fn the_last_number_is_found_with_few_questions_and_through_gaps() {
        for numbers in [vec![], vec![1], vec![1, 2], vec![7], vec![1, 2, 3, 1_000_000_007], (1..5_000).collect()] {
            let listed = Listed { numbers, asked: AtomicU32::new(0) };
            let mut finding = std::pin::pin!(last_number(0, &listed));
            // Nothing here waits for anything.
            let Poll::Ready(last) = finding.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("it waits")
            };
            assert_eq!(last.unwrap(), listed.numbers.last().copied().unwrap_or(0));
            let asked = listed.asked.load(Ordering::Relaxed);
            assert!(asked < 80, "{asked} questions");
        }
    }
}
