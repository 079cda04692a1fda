//! How long to rest when nothing was due: short after work, longer with every miss, never longer than the poll interval.

use std::time::Duration;

/// A rest right after work is so much shorter than the longest.
const FIRST: u32 = 8;

/// The rest after the `misses`-th look in a row that found nothing (1 is the first).
pub(crate) fn rest(poll_every: Duration, misses: u32) -> Duration {
    let doubled = 1_u32 << misses.saturating_sub(1).min(10);
    (poll_every / FIRST).saturating_mul(doubled).min(poll_every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_up_to_the_poll_interval() {
        let poll = Duration::from_secs(1);
        let rests = [1, 2, 3, 4, 5, 1_000_000].map(|misses| rest(poll, misses).as_millis());
        assert_eq!(rests, [125, 250, 500, 1_000, 1_000, 1_000]);
    }
}
