//! `tenure schedules list`: every schedule and its next fire.

use clap::Args;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_store::schedule::{ScheduleFilter, ScheduleRecord};

use super::name;
use crate::args::{TenantArg, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::wire::schedule::ScheduleLine;

const EXAMPLES: &str = "\
Examples:
  tenure schedules list
  tenure schedules list --tenant acme
  tenure schedules list --json";

/// List schedules and their next fires
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    #[command(flatten)]
    tenant: TenantArg,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "100")]
    limit: u32,
    /// Only names after this one; with --tenant
    #[arg(long, value_name = "NAME", value_parser = name, requires = "tenant")]
    after: Option<ScheduleName>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    let after = args.after.zip(args.tenant.tenant.clone()).map(|(name, tenant): (_, TenantName)| (tenant, name));
    let filter = ScheduleFilter { sight: session.sight(args.tenant), after, limit: args.limit };
    let schedules = store.list_schedules(&filter).await?;
    if session.out.is_json() {
        session.out.json(&schedules.iter().map(|one| ScheduleLine::new(one, &[])).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if schedules.is_empty() {
        session.out.line("No schedules yet. One is made so: tenure schedules set nightly '0 3 * * *' report");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["SCHEDULE", "TENANT", "CRON", "ZONE", "NEXT", "KIND", "QUEUE"]);
    for schedule in &schedules {
        let (cron, zone) = match &schedule.timing {
            Ok(timing) => (timing.cron.to_string(), timing.zone.to_string()),
            Err(_) => ("unreadable".to_owned(), "-".to_owned()),
        };
        table.row(vec![
            schedule.name.as_str().into(),
            schedule.tenant.as_str().into(),
            cron.into(),
            zone.into(),
            next_word(schedule),
            schedule.template.kind.as_str().into(),
            schedule.template.queue.as_str().into(),
        ]);
    }
    session.out.table(&table);
    if schedules.len() == args.limit as usize
        && let Some(last) = schedules.last()
    {
        let (tenant, name) = (&last.tenant, &last.name);
        session.out.line(format!("There may be more: tenure schedules list --tenant {tenant} --after {name}"));
    }
    Ok(Answer::Done)
}

/// The next fire, or why there is none.
pub(super) fn next_word(schedule: &ScheduleRecord) -> Cell {
    match (schedule.paused, &schedule.timing, schedule.next()) {
        (true, ..) => Cell::painted("paused", Paint::Yellow),
        (_, Err(_), _) => Cell::painted("cannot fire", Paint::Red),
        (.., Some(next)) => moment::relative(next, schedule.now).into(),
        (.., None) => Cell::dim("never"),
    }
}
