//! The results of the fault matrix: every row that was asked for is there, and each one held.

use std::fs;

use crate::files::root;

/// Rows of the matrix that processes, a wire or a server can be made to show today.
const ASKED: std::ops::RangeInclusive<u32> = 1..=40;
/// Those of them that wait for a replica, a second release, more machines, or the server.
const LATER: [u32; 9] = [20, 21, 23, 24, 31, 32, 36, 37, 38];
/// What gates and runs promise, under faults.
const PROMISES: [&str; 4] = ["D1", "D4", "E2", "E4"];
/// Their jobs are not all run: a flood is left where it is.
const LEFT_OPEN: [&str; 1] = ["| D4"];

#[test]
fn every_row_of_the_fault_matrix_held() {
    let text = fs::read_to_string(root().join("docs/FAULTS.md")).expect("docs/FAULTS.md: run ./x chaos");
    let cells = |line: &str| line.split(" | ").map(str::trim).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().filter(|line| is_row(line)).map(cells).collect();
    let faults = ASKED.filter(|n| !LATER.contains(n)).map(|n| format!("| F{n}"));
    let wanted: Vec<String> = faults.chain(PROMISES.iter().map(|id| format!("| {id}"))).collect();
    let found: Vec<String> = lines.iter().map(|cells| cells[0].clone()).collect();
    assert_eq!(found, wanted, "every row, in order");
    for cells in &lines {
        assert_eq!(cells.len(), 8, "{cells:?}");
        assert_eq!(cells[6], "held", "{} {}", cells[0], cells[1]);
        let measured = cells[5].starts_with("lost 0 of ") || LEFT_OPEN.contains(&cells[0].as_str());
        assert!(measured, "{} shows its pass line", cells[0]);
    }
}

/// `| F1 |`, and not the head of the table.
fn is_row(line: &str) -> bool {
    let id = line.strip_prefix("| ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    id.starts_with(['F', 'D', 'E']) && id.ends_with(|c: char| c.is_ascii_digit())
}
