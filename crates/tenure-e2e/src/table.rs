//! docs/FAULTS.md: a line for each row, replaced by the last full run of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::report::{Report, Row};
use crate::rows::ROWS;

const HEAD: &str = "# Faults

Written by `./x chaos`; do not edit.
Each row is one fault of the matrix, injected into real processes on a real Postgres.
A row *held* when everything below was so **and** the fault really hit as often as it has to; a run in which it did not is *void*, not passed.

The pass line is the same for every row: no acknowledged enqueue is lost, no ending is accepted from a lease that was over, no effect of a completing transaction is there twice, the server counts no deadlock, and nothing is still open a lease, a look for expired leases and 5 s after the fault.
The bounded part of every row runs in `./x test`; how it works is in [TESTING.md](TESTING.md).

*Bite* is how often the fault really hit; *run* is how long it took and at which commit (`+`: with changes that were not committed).
Leases are 1 to 5 s here, so promises that hang on the lease time are shorter than with the default of 60 s; programs are debug builds, so rates say nothing about speed.
Numbers that are missing between F1 and F41 wait for a second release or more machines; F49 is about a broker beside Postgres; F51 is about a synchronous standby; F52 and F53 are about servers that take over and restored dumps; F55 is about a hostile tenant; F57 is about an act on very many jobs; F58 is about open transactions; F37 is measured with F36. E2 is about pages of runs.

| id | fault | injected | numbers | bite | pass line | verdict | run |
|---|---|---|---|---|---|---|---|
";

/// A panic may say a lot; the log of the run has all of it.
const VERDICT_MAX: usize = 300;

/// One line of the table.
pub fn line(row: &Row, report: &Report, took: Duration) -> String {
    let cells = [
        row.id.to_owned(),
        row.fault.to_owned(),
        row.injected.to_owned(),
        report.numbers(),
        report.bitten(),
        report.pass_line(),
        report.verdict().to_string().chars().take(VERDICT_MAX).collect(),
        format!("{} s at {}", took.as_secs(), commit()),
    ];
    let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
    format!("| {} |", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
}

/// Puts these lines into docs/FAULTS.md, in the order of the rows. Other lines stay.
pub fn write(lines: &[String]) -> std::io::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/FAULTS.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for row in ROWS {
        let begin = format!("| {} |", row.id);
        let old = before.lines().find(|line| line.starts_with(&begin));
        let new = lines.iter().map(String::as_str).find(|line| line.starts_with(&begin));
        if let Some(line) = new.or(old) {
            writeln!(text, "{line}").map_err(std::io::Error::other)?;
        }
    }
    let _ = write!(text, "\nThe machine of the last run: {}.\n", machine());
    std::fs::write(&path, text)?;
    Ok(path)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    // What is only about the table itself is no change of what was run.
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!../../docs/FAULTS.md"]);
    format!("{}{}", git(&["rev-parse", "--short", "HEAD"]), if changed.is_empty() { "" } else { "+" })
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{cores} cores, {} GiB, Linux {}, {build} build", kib >> 20, kernel.trim())
}
