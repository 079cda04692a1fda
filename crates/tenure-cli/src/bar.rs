//! Progress that stands in a table or a sentence: a bar of text that can be read without colours.

/// What is done, what is missing for good, what is left.
const DONE: &str = "━";
const MISSING: &str = "×";
const LEFT: &str = "─";

/// Characters of a bar in a list, and of one that stands alone.
pub(crate) const NARROW: usize = 12;
pub(crate) const WIDE: usize = 30;

/// `width` characters for `total` things, of which `done` are done and `missing` will not come. Only what is complete is
/// drawn full, and a single thing that is missing can be seen.
pub(crate) fn bar(done: u64, missing: u64, total: u64, width: usize) -> String {
    // The total may have been a guess.
    let total = total.max(done.saturating_add(missing));
    let share = |part: u64| match u128::from(part) * width as u128 {
        0 => 0,
        cells => usize::try_from(cells / u128::from(total)).unwrap_or(width),
    };
    let seen = usize::from(missing > 0);
    let dones = share(done).min(width.saturating_sub(seen));
    let crosses = match done.saturating_add(missing) == total {
        // Nothing is left, so no room is: what rounding took goes to what is missing.
        true if missing > 0 => width - dones,
        _ => share(missing).max(seen),
    };
    let left = width.saturating_sub(dones + crosses);
    format!("{}{}{}", DONE.repeat(dones), MISSING.repeat(crosses), LEFT.repeat(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_when_all_is_done_and_shows_what_is_missing() {
        for (done, missing, total, expected) in [
            (0, 0, 0, "──────────"),
            (0, 0, 5, "──────────"),
            (5, 0, 10, "━━━━━─────"),
            (999, 0, 1_000, "━━━━━━━━━─"),
            (1_000, 0, 1_000, "━━━━━━━━━━"),
            (999, 1, 1_000, "━━━━━━━━━×"),
            (0, 1_000, 1_000, "××××××××××"),
            (6, 2, 10, "━━━━━━××──"),
            (1, 3, 4, "━━××××××××"),
            (999, 1, 1_001, "━━━━━━━━━×"),
            (12, 0, 10, "━━━━━━━━━━"),
            (u64::MAX, 0, u64::MAX, "━━━━━━━━━━"),
        ] {
            assert_eq!(bar(done, missing, total, 10), expected, "{done} {missing} {total}");
        }
    }
}
