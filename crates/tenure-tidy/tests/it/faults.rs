//! The results of the fault matrix: every row that was asked for is there, and each one held.

use std::fs;

use crate::files::root;

/// Rows of the matrix that processes, a wire or a server can be made to show today.
const ASKED: std::ops::RangeInclusive<u32> = 1..=35;
/// Those of them that wait for a replica, a second release, or more machines.
const LATER: [u32; 6] = [20, 21, 23, 24, 31, 32];

#[test]
fn every_row_of_the_fault_matrix_held() {
    let text = fs::read_to_string(root().join("docs/FAULTS.md")).expect("docs/FAULTS.md: run ./x chaos");
    let cells = |line: &str| line.split(" | ").map(str::trim).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().filter(|line| line.starts_with("| F")).map(cells).collect();
    let wanted: Vec<String> = ASKED.filter(|n| !LATER.contains(n)).map(|n| format!("| F{n}")).collect();
    let found: Vec<String> = lines.iter().map(|cells| cells[0].clone()).collect();
    assert_eq!(found, wanted, "every row, in order");
    for cells in &lines {
        assert_eq!(cells.len(), 8, "{cells:?}");
        assert_eq!(cells[6], "held", "{} {}", cells[0], cells[1]);
        assert!(cells[5].starts_with("lost 0 of "), "{} shows its pass line", cells[0]);
    }
}
