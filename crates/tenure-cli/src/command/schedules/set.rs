//! `tenure schedules set`: make a schedule, or change it.

use std::time::Duration;

use clap::Args;
use tenure_core::apply::{Rules, SPARE_LOSSES};
use tenure_core::cron::{Missed, Timing};
use tenure_core::name::{GateName, KindName, QueueName, ScheduleName};
use tenure_core::{Backoff, Cron, Json, Priority, Zone};
use tenure_store::schedule::{ScheduleSet, SetSchedule, Template};

use super::{cron, name, zone};
use crate::args::{TenantArg, WordArgs, gate, kind, limit, priority, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::moment;
use tenure_server::wire::schedule::ScheduleLine;

const EXAMPLES: &str = "\
Examples:
  tenure schedules set nightly '0 3 * * *' report --zone Europe/Berlin
  tenure schedules set nightly '0 3 * * *' report '{\"full\": true}' --queue slow --missed once
  tenure schedules set pulse '*/10 * * * * *' ping                every ten seconds
  tenure schedules set payday '0 9 L * *' salaries                on the last day of each month
  tenure schedules set sync @hourly sync --gate source:ebay       a gate with --concurrency 1 lets none overlap

CRON is minute hour day month weekday, with seconds first if wanted, or @hourly, @daily, @weekly, @monthly, @yearly:
  *  5  1-5  */10  1,15  MON-FRI  MON#2 (the second)  L (the last day)
A fixed time that the clock skips in spring is made up when it jumps; one that it repeats in autumn fires once.

--missed says what becomes of fires that no worker was there for: skip drops them, once makes the latest up.
A fire is missed after its --grace. Setting the same again changes nothing; a new timing begins now.";

/// Make a schedule or change it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SetArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE", value_parser = name)]
    schedule: ScheduleName,
    /// When it fires; quote it, see below
    #[arg(value_name = "CRON", value_parser = cron)]
    cron: Cron,
    /// What its jobs ask for; picks the handler
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: KindName,
    /// JSON for the handler, {} if left out
    #[arg(allow_negative_numbers = true)]
    payload: Option<String>,
    /// Whose clock it goes by, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    zone: Option<Zone>,
    /// What becomes of missed fires: skip or once [default: skip]
    #[arg(long, value_name = "POLICY", value_parser = missed)]
    missed: Option<Missed>,
    /// A fire is missed after this [default: 1m]
    #[arg(long, value_name = "DURATION", value_parser = grace)]
    grace: Option<Duration>,
    /// Where its jobs wait [default: default]
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// 0 critical, 1 high, 2 normal, 3 low [default: 2]
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    priority: Option<Priority>,
    /// Attempts before a job is dead [default: 5]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u16>,
    /// When to try again, see tenure enqueue
    #[arg(long, value_name = "POLICY", value_parser = backoff)]
    backoff: Option<Backoff>,
    /// The shared resource its jobs pass, see tenure gates
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Option<GateName>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let quoting = "Quote it for the shell: tenure schedules set NAME '0 3 * * *' KIND '{\"full\": true}'";
    let payload = Json::parse("payload", args.payload.unwrap_or_else(|| "{}".to_owned()))
        .map_err(|invalid| Failure::from(invalid).hint(quoting))?;
    let default = Timing::new(args.cron);
    let timing = Timing {
        zone: args.zone.unwrap_or(default.zone),
        missed: args.missed.unwrap_or(default.missed),
        grace: args.grace.unwrap_or(default.grace),
        cron: default.cron,
    };
    let mut template = Template::new(args.kind, payload);
    let Rules { max_attempts, backoff, .. } = template.rules;
    let max_attempts = args.max_attempts.unwrap_or(max_attempts);
    template.rules = Rules {
        max_attempts,
        max_losses: max_attempts.saturating_add(SPARE_LOSSES),
        backoff: args.backoff.unwrap_or(backoff),
    };
    template.queue = args.queue.unwrap_or(template.queue);
    template.priority = args.priority.unwrap_or(template.priority);
    template.gate = args.gate;
    let (tenant, name) = (session.tenant(args.tenant.tenant).unwrap_or_default(), args.schedule);
    let word = session.word(args.word);
    let request = SetSchedule { tenant: tenant.clone(), name: name.clone(), timing, template, word };
    request.check()?;
    let store = session.store_to_add().await?;
    let set = store.set_schedule(request).await?;
    let (record, fires) = store.show_schedule(&tenant, &name).await?;
    if session.out.is_json() {
        session.out.json(&ScheduleLine::new(&record, &fires))?;
        return Ok(Answer::Done);
    }
    let next = match record.next() {
        Some(next) => format!("it fires {}, at {}", moment::relative(next, record.now), moment::absolute(next)),
        None if record.paused => format!("it is paused: tenure schedules resume {name}"),
        None => "it never fires".to_owned(),
    };
    session.out.line(match set {
        ScheduleSet::Created => format!("Schedule {name} is made; {next}."),
        ScheduleSet::Changed => format!("Schedule {name} is changed; {next}."),
        ScheduleSet::Same => format!("Schedule {name} was the same before; {next}."),
    });
    Ok(Answer::Done)
}

fn missed(text: &str) -> Result<Missed, String> {
    text.parse().map_err(limit)
}

fn grace(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("grace", text).map_err(limit)
}

fn backoff(text: &str) -> Result<Backoff, String> {
    text.parse().map_err(limit)
}
