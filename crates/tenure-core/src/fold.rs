//! A page folded before it is written: of rows with the same key one stays, the strongest.
//!
//! ```
//! let found = [("a", 1), ("b", 5), ("a", 3), ("b", 5)];
//! let kept = tenure_core::fold_strongest(&found, |row| row.0, |row| row.1);
//! assert_eq!(kept, [&found[1], &found[2]]);
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// One row for each key: the one of greatest strength, of equal ones the first. They stay in the order in which they
/// came.
pub fn fold_strongest<'r, R, K, S>(rows: &'r [R], key: impl Fn(&'r R) -> K, strength: impl Fn(&'r R) -> S) -> Vec<&'r R>
where
    K: Eq + Hash,
    S: Ord,
{
    let mut strongest: HashMap<K, usize> = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        match strongest.entry(key(row)) {
            Entry::Vacant(free) => {
                free.insert(at);
            }
            Entry::Occupied(mut held) => {
                if strength(row) > strength(&rows[*held.get()]) {
                    held.insert(at);
                }
            }
        }
    }
    let mut places: Vec<usize> = strongest.into_values().collect();
    places.sort_unstable();
    places.into_iter().map(|at| &rows[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Row = (u8, u8, usize);

    fn fold(rows: &[Row]) -> Vec<Row> {
        fold_strongest(rows, |row| row.0, |row| row.1).into_iter().copied().collect()
    }

    #[test]
    fn the_strongest_wins_and_a_tie_keeps_the_first() {
        assert_eq!(fold(&[(1, 5, 0), (2, 9, 1), (1, 7, 2), (1, 7, 3), (2, 9, 4)]), [(2, 9, 1), (1, 7, 2)]);
        assert_eq!(fold(&[]), []);
    }

    proptest! {
        #[test]
        fn every_key_stays_once_with_its_first_strongest_row(pairs in prop::collection::vec((0..6_u8, 0..4_u8), 0..40)) {
            let rows: Vec<Row> = pairs.iter().enumerate().map(|(at, (key, strength))| (*key, *strength, at)).collect();
            let folded = fold(&rows);
            // In the order they came, so each once.
            prop_assert!(folded.windows(2).all(|two| two[0].2 < two[1].2));
            for row in &rows {
                let kept: Vec<&Row> = folded.iter().filter(|kept| kept.0 == row.0).collect();
                prop_assert_eq!(kept.len(), 1);
                prop_assert!(kept[0].1 > row.1 || (kept[0].1 == row.1 && kept[0].2 <= row.2));
                prop_assert_eq!(rows[kept[0].2], *kept[0]);
            }
        }

        #[test]
        fn what_is_folded_stays_as_it_is(pairs in prop::collection::vec((0..6_u8, 0..4_u8), 0..40)) {
            let rows: Vec<Row> = pairs.iter().enumerate().map(|(at, (key, strength))| (*key, *strength, at)).collect();
            let folded = fold(&rows);
            prop_assert_eq!(fold(&folded), folded);
        }
    }
}
