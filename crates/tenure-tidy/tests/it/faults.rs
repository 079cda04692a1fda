//! The results of the fault matrix: every row that was asked for is there, and each one held.

use std::fs;

use crate::files::root;

/// Rows of the matrix that processes, a wire or a server can be made to show today.
const ASKED: std::ops::RangeInclusive<u32> = 1..=41;
/// Those of them that wait for a replica, a second release, or more machines; the last is measured with the one before.
const LATER: [u32; 7] = [20, 21, 23, 24, 31, 32, 37];
/// Faults of the broker, of standbys, of a server that takes over, of a restored dump, and of values that grow.
const BESIDE: [&str; 5] = ["| F49", "| F51", "| F52", "| F53", "| F55"];
/// Pages of runs, which the matrix has no number for.
const PAGES: &str = "| E2";
/// Acts that are larger than one seal.
const BULK: &str = "| F57";
/// A transaction that stays open beside producers.
const OPEN_TRANSACTION: &str = "| F58";
/// Rows without the common pass line: the jobs of a flood are not all run, and a promoted standby ends the history of its
/// primary, so that row counts by itself what was lost.
const WITHOUT_PASS_LINE: [&str; 2] = ["| F36", "| F51"];

#[test]
fn every_row_of_the_fault_matrix_held() {
    let text = fs::read_to_string(root().join("docs/FAULTS.md")).expect("docs/FAULTS.md: run ./x chaos");
    let cells = |line: &str| line.split(" | ").map(str::trim).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().filter(|line| is_row(line)).map(cells).collect();
    let faults = ASKED.filter(|n| !LATER.contains(n)).map(|n| format!("| F{n}"));
    let wanted: Vec<String> =
        faults.chain(BESIDE.into_iter().chain([PAGES, BULK, OPEN_TRANSACTION]).map(str::to_owned)).collect();
    let found: Vec<String> = lines.iter().map(|cells| cells[0].clone()).collect();
    assert_eq!(found, wanted, "every row, in order");
    for cells in &lines {
        assert_eq!(cells.len(), 8, "{cells:?}");
        assert_eq!(cells[6], "held", "{} {}", cells[0], cells[1]);
        let measured = cells[5].starts_with("lost 0 of ") || WITHOUT_PASS_LINE.contains(&cells[0].as_str());
        assert!(measured, "{} shows its pass line", cells[0]);
    }
}

fn is_row(line: &str) -> bool {
    line.starts_with("| F") || line.starts_with(PAGES)
}
