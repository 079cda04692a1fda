//! `tenure schedules show`: one schedule and its last fires.

use clap::Args;
use tenure_core::duration;
use tenure_core::name::ScheduleName;

use super::list::next_word;
use super::{both_clocks, name};
use crate::args::TenantArg;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::wire::schedule::ScheduleLine;

/// Fires shown unless asked for more.
const FIRES: usize = 10;

const EXAMPLES: &str = "\
Examples:
  tenure schedules show nightly
  tenure schedules show nightly --fires 100
  tenure schedules show nightly --json";

/// Show one schedule: when it fires, what it asks for, its last fires
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", value_parser = name)]
    schedule: ScheduleName,
    /// Its last fires, at most this many; a hundred are kept
    #[arg(long, value_name = "N", default_value_t = FIRES)]
    fires: usize,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let tenant = session.tenant(args.tenant.tenant).unwrap_or_default();
    let (record, mut fires) = session.store().await?.show_schedule(&tenant, &args.schedule).await?;
    fires.truncate(args.fires);
    if session.out.is_json() {
        session.out.json(&ScheduleLine::new(&record, &fires))?;
        return Ok(Answer::Done);
    }
    let out = &mut session.out;
    out.line(Paint::Bold.apply(&format!("Schedule {} of tenant {}", record.name, record.tenant), out.color()));
    let mut pairs: Vec<(&'static str, Cell)> = vec![("next", next_word(&record))];
    match &record.timing {
        Ok(timing) => {
            let missed = format!("{}, after a grace of {}", timing.missed, duration::format(timing.grace));
            pairs.extend([
                ("cron", timing.cron.to_string().into()),
                ("zone", timing.zone.to_string().into()),
                ("missed fires", missed.into()),
            ]);
            if let Some(next) = record.next() {
                let (utc, local) = both_clocks(next, &timing.zone);
                pairs.extend([("next, UTC", utc.into()), ("next, local", local.into())]);
            }
        }
        Err(refused) => pairs.push(("unreadable", Cell::painted(refused.to_string(), Paint::Red))),
    }
    if let Some(reason) = &record.pause_reason {
        pairs.push(("paused for", reason.as_str().into()));
    }
    let template = &record.template;
    pairs.extend([
        ("kind", template.kind.as_str().into()),
        ("queue", template.queue.as_str().into()),
        ("payload", template.payload.as_str().into()),
    ]);
    if let Some(gate) = &template.gate {
        pairs.push(("gate", gate.as_str().into()));
    }
    out.table(&Table::pairs(pairs));
    if fires.is_empty() {
        out.line("It has not fired yet.");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["FIRED FOR", "JOB", "STATE"]);
    for fire in &fires {
        table.row(vec![
            moment::absolute(fire.fire_at).into(),
            fire.job.to_string().into(),
            fire.state
                .map_or_else(|| Cell::dim("pruned"), |state| Cell::painted(state.as_str(), Paint::of_state(state))),
        ]);
    }
    out.table(&table);
    Ok(Answer::Done)
}
