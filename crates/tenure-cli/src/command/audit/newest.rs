//! Finds the newest rows of a journal that can only be read forwards.
//!
//! The port answers "what comes after this number?", in order. The last number is found by asking that for numbers that
//! grow twofold until the answer is empty, and then by halving: forty short questions for a billion rows, where reading
//! forwards would take a billion rows.

use tenure_core::journal::JournalRow;
use tenure_store::journal::JournalPage;
use tenure_store::{Store, StoreError};

/// Rows read at once.
const PAGE_ROWS: u32 = 2_000;
/// Seals looked through for rows; each has at least one.
const PAGE_SEALS: i64 = 1_000;

/// Looks again when a seal was made between two questions: its rows were in neither answer.
const TRIES_MAX: usize = 5;

/// The newest `count` rows in id order, and the number of the last seal then.
pub(super) async fn newest(store: &dyn Store, count: usize) -> Result<(Vec<JournalRow>, i64), StoreError> {
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

/// Every row of one seal or of the tail with an id above `after`, in id order.
pub(super) async fn all_of(store: &dyn Store, seal: Option<i64>, after: i64) -> Result<Vec<JournalRow>, StoreError> {
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
async fn newest_of(store: &dyn Store, seal: Option<i64>, count: usize) -> Result<Vec<JournalRow>, StoreError> {
    let mut rows = store.read_journal(JournalPage { seal, after: 0, limit: PAGE_ROWS }).await?;
    if let Some(known) = rows.last().map(|row| row.id).filter(|_| rows.len() == PAGE_ROWS as usize) {
        let next = async |after: i64| {
            let rows = store.read_journal(JournalPage { seal, after, limit: 1 }).await?;
            Ok(rows.first().map(|row| row.id))
        };
        let last = last_number(known, next).await?;
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

async fn last_seal(store: &dyn Store) -> Result<i64, StoreError> {
    let next = async |after: i64| Ok(store.list_seals(after, 1).await?.first().map(|seal| seal.no));
    last_number(0, next).await
}

/// The last number, given one that is there (or zero) and a way to ask for the first number after another.
async fn last_number(
    known: i64,
    next: impl AsyncFn(i64) -> Result<Option<i64>, StoreError>,
) -> Result<i64, StoreError> {
    let (mut low, mut step) = (known, 1);
    let mut high = loop {
        let probe = i64::saturating_add(low, step);
        match next(probe).await? {
            Some(number) => low = number,
            None => break probe,
        }
        step = i64::saturating_mul(step, 2);
    };
    // Nothing is above `high`, and `low` is there.
    while low < high {
        let middle = low + (high - low) / 2;
        match next(middle).await? {
            Some(number) => low = number,
            None => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_found_with_few_questions_and_through_gaps() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for numbers in [vec![], vec![1], vec![1, 2], vec![7], vec![1, 2, 3, 1_000_000_007], (1..5_000).collect()] {
            let asked = std::cell::Cell::new(0);
            let next = async |after: i64| {
                asked.set(asked.get() + 1);
                Ok(numbers.iter().copied().find(|number| *number > after))
            };
            let last = runtime.block_on(last_number(0, next)).unwrap();
            assert_eq!(last, numbers.last().copied().unwrap_or(0));
            assert!(asked.get() < 80, "{} questions", asked.get());
        }
    }
}
