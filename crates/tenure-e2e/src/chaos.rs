//! `tenure-chaos`: runs rows of the fault matrix one after the other, and writes docs/FAULTS.md after full ones.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use tenure_e2e::report::{Verdict, run};
use tenure_e2e::rows::ROWS;
use tenure_e2e::{Row, Size, table};

#[derive(Parser)]
struct Flags {
    /// Rows by their number, `F13`; all unless named.
    rows: Vec<String>,
    /// Small sizes; nothing is written.
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let known = |id: &String| ROWS.iter().any(|row| row.id == *id);
    if let Some(unknown) = flags.rows.iter().find(|id| !known(id)) {
        eprintln!("there is no row {unknown}");
        return ExitCode::from(2);
    }
    let size = if flags.quick { Size::Small } else { Size::Full };
    let wanted = |row: &&Row| flags.rows.is_empty() || flags.rows.iter().any(|id| id == row.id);
    let (since, mut lines, mut held, mut others) = (Instant::now(), Vec::new(), 0, Vec::new());
    for row in ROWS.iter().filter(wanted) {
        println!("== {} · {}", row.id, row.fault);
        let (report, took) = run(row, size);
        for said in [report.numbers(), report.bitten(), report.pass_line()] {
            println!("   {said}");
        }
        println!("   {} · {} s", report.verdict(), took.as_secs());
        match report.verdict() {
            Verdict::Held => held += 1,
            _ => others.push(row.id),
        }
        lines.push(table::line(row, &report, took));
        // After each: a run that is stopped half-way has shown what it has shown.
        if size == Size::Full
            && let Err(error) = table::write(&lines)
        {
            eprintln!("docs/FAULTS.md: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("== {held} rows held, {} did not: {others:?} · {} s", others.len(), since.elapsed().as_secs());
    if others.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
