//! Fires around jumps of the clock, one case per line of `cron_dst.txt`.
//!
//! The expected fires were found by reasoning and checked by walking each real minute with Python's `zoneinfo`.

use tenure_core::{Cron, Timestamp, Zone};

const CASES: &str = include_str!("cron_dst.txt");

#[test]
fn jumps_of_the_clock_neither_lose_nor_double_a_fire() {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut cases = 0;
    for line in lines {
        let [zone, cron, from, fires] = line.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let zone: Zone = zone.parse().unwrap();
        let cron: Cron = cron.parse().unwrap();
        let mut at: Timestamp = from.parse().unwrap();
        for expected in fires.split(' ') {
            let next = cron.next_after(&zone, at).unwrap();
            assert_eq!(next, expected.parse().unwrap(), "{expected} of: {line}");
            at = next;
        }
        cases += 1;
    }
    assert!(cases >= 70, "{cases} cases");
}
