//! `tenure schedules apply`: the schedules of the settings file become those of the store.

use clap::Args;
use tenure_core::name::TenantName;
use tenure_store::operate::Word;
use tenure_store::schedule::{ScheduleSet, SetSchedule};
use tenure_store::{Store, StoreError};

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::settings::FileSchedule;
use tenure_server::wire::schedule::ScheduleLine;

const EXAMPLES: &str = "\
Examples:
  tenure schedules apply
  tenure --config production.toml schedules apply

A settings file has schedules in tables of their own; tenure worker applies them when it starts:
  [schedules.nightly]
  cron = \"0 3 * * *\"
  kind = \"report\"
  zone = \"Europe/Berlin\"     # payload, missed, grace, queue, priority, max_attempts, backoff, gate, tenant as well

Schedules that the file does not name stay as they are; a paused one stays paused.";

/// Set the schedules that tenure.toml has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApplyArgs {}

pub(super) async fn run(_: &ApplyArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (named, tenant) = (session.settings.schedules.clone(), session.tenant(None));
    let (count, word) = (named.len(), Word { actor: session.settings.actor(None), reason: None });
    let store = session.store_to_add().await?;
    let changed = apply(&*store, named, tenant, word).await?;
    if session.out.is_json() {
        let mut lines = Vec::new();
        for set in &changed {
            let (record, _) = store.show_schedule(&set.tenant, &set.name).await?;
            lines.push(ScheduleLine::new(&record, &[]));
        }
        session.out.json(&lines)?;
        return Ok(Answer::Done);
    }
    for set in &changed {
        session.out.line(format!("Schedule {} fires by {}, {}.", set.name, set.timing.cron, set.timing.zone));
    }
    session.out.line(format!("{} set, {} as they were.", changed.len(), count - changed.len()));
    Ok(Answer::Done)
}

/// Sets those that differ from what the store has; answers which.
pub(crate) async fn apply(
    store: &dyn Store,
    schedules: Vec<FileSchedule>,
    tenant: Option<TenantName>,
    word: Word,
) -> Result<Vec<SetSchedule>, StoreError> {
    let mut changed = Vec::new();
    for schedule in schedules {
        let request = schedule.request(tenant.clone(), word.clone());
        if store.set_schedule(request.clone()).await? != ScheduleSet::Same {
            changed.push(request);
        }
    }
    Ok(changed)
}
