//! `tenure schedules run`: fire a schedule now, beside its own times.

use clap::Args;
use serde_json::json;
use tenure_core::name::ScheduleName;
use tenure_server::new_job::Ids;
use tenure_store::schedule::{FireSchedule, Fired};

use super::name;
use crate::args::TenantArg;
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};

const EXAMPLES: &str = "\
Examples:
  tenure schedules run nightly          store its job now
  tenure schedules run nightly --json

The next fire stays as it is. A fire that is overdue is stored in place of another one.";

/// Fire a schedule now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", value_parser = name)]
    schedule: ScheduleName,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: RunArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (tenant, name) = (session.tenant(args.tenant.tenant).unwrap_or_default(), args.schedule);
    let store = session.store().await?;
    let (record, _) = store.show_schedule(&tenant, &name).await?;
    if record.paused {
        let message = format!("schedule {name} is paused: it fires nothing");
        let hint = format!("`tenure schedules resume {name}` lets it go on.");
        return Err(Failure::new("conflict", exit::REFUSED, message).hint(hint));
    }
    let decided = record.decide(Ids::new().make()?);
    let fire_at = decided.fire_at.unwrap_or(record.now);
    let Fired::Stored(job) = store.fire_schedule(FireSchedule { fire_at: Some(fire_at), ..decided }).await? else {
        let message = format!("schedule {name} was fired or changed at the same moment; nothing was stored");
        return Err(Failure::new("conflict", exit::REFUSED, message).hint("Run the same command again."));
    };
    match session.out.is_json() {
        true => session.out.json(&json!({ "name": name.as_str(), "job": job.to_string() }))?,
        false => session.out.line(format!("Schedule {name} fired: job {job} in queue {}.", record.template.queue)),
    }
    Ok(Answer::Done)
}
