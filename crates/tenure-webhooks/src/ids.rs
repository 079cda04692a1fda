//! New ids by the store's clock, in the order in which they are asked for.

use tenure_core::{JobId, Timestamp};

use crate::secret::random;

/// The part of the random bytes that counts up: behind the version and the variant of a uuid.
const COUNTER: std::ops::Range<usize> = 2..10;

/// So many new ids, each larger than the one before.
pub(crate) fn new_ids(now: Timestamp, count: usize) -> Vec<JobId> {
    let mut bytes = [0; 10];
    random(&mut bytes);
    let mut low = [0; 8];
    low.copy_from_slice(&bytes[COUNTER]);
    // The two highest bits are not kept in ids, and the third leaves room to count.
    let first = u64::from_be_bytes(low) >> 3;
    let ids = (0..count as u64).map(|number| {
        bytes[COUNTER].copy_from_slice(&(first + number).to_be_bytes());
        JobId::from_parts(now, bytes)
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_in_the_order_they_are_made() {
        let now = Timestamp::from_micros(1_763_197_200_000_000);
        let ids = new_ids(now, 5_000);
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(ids.iter().all(|id| id.check(now).is_ok()));
        assert_ne!(new_ids(now, 1), ids[..1]);
    }
}
