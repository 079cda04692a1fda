//! `tenure schedules next`: when an expression would fire. Stores nothing.

use clap::Args;
use serde::Serialize;
use tenure_core::{Cron, Timestamp, Zone};

use super::{both_clocks, cron, zone};
use crate::args::limit;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::table::{Cell, Table};
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure schedules next '0 3 * * MON-FRI'
  tenure schedules next '30 2 * * *' --zone Europe/Berlin --count 3 --after 2026-03-27T12:00:00Z
  tenure schedules next '*/10 * * * * *' --json";

/// Most fires that are computed at once.
const COUNT_MAX: usize = 1_000;

/// Show when a cron expression would fire; nothing is stored
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The expression; quote it, see tenure schedules set
    #[arg(value_name = "CRON", value_parser = cron)]
    cron: Cron,
    /// Whose clock it goes by
    #[arg(long, value_name = "ZONE", value_parser = zone, default_value = "UTC")]
    zone: Zone,
    /// How many
    #[arg(long, value_name = "N", value_parser = count, default_value = "5")]
    count: usize,
    /// Those after this moment instead of now
    #[arg(long, value_name = "DATE", value_parser = after)]
    after: Option<Timestamp>,
}

/// One fire to come.
#[derive(Serialize)]
struct NextLine {
    at: String,
    local: String,
}

pub(super) fn run(args: &NextArgs, session: &mut Session) -> Result<Answer, Failure> {
    let now = args.after.unwrap_or_else(moment::now);
    let fires =
        std::iter::successors(args.cron.next_after(&args.zone, now), |last| args.cron.next_after(&args.zone, *last));
    let fires: Vec<Timestamp> = fires.take(args.count).collect();
    if session.out.is_json() {
        let line = |at: &Timestamp| NextLine { at: at.to_string(), local: args.zone.local(*at) };
        session.out.json(&fires.iter().map(line).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["UTC", "LOCAL", "IN"]);
    for at in &fires {
        let (utc, local) = both_clocks(*at, &args.zone);
        table.row(vec![utc.into(), local.into(), Cell::dim(moment::relative(*at, now))]);
    }
    session.out.table(&table);
    Ok(Answer::Done)
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    count.ok_or_else(|| format!("it is 1 to {COUNT_MAX}"))
}

fn after(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse("after", text).map_err(limit)
}
