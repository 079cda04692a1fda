//! `tenure schedules pause`, `resume` and `remove`.

use clap::Args;
use serde_json::json;
use tenure_core::name::ScheduleName;
use tenure_store::schedule::{PauseSchedule, RemoveSchedule};

use super::name;
use crate::args::{TenantArg, WordArgs};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::wire::schedule::ScheduleLine;

#[derive(Debug, Args)]
pub(super) struct OperateArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", value_parser = name)]
    schedule: ScheduleName,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    word: WordArgs,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Pause,
    Resume,
    Remove,
}

pub(super) async fn run(args: OperateArgs, act: Act, session: &mut Session) -> Result<Answer, Failure> {
    let (tenant, name) = (session.tenant(args.tenant.tenant).unwrap_or_default(), args.schedule);
    let (word, store) = (session.word(args.word), session.store().await?);
    if act == Act::Remove {
        store.remove_schedule(RemoveSchedule { tenant: tenant.clone(), name: name.clone(), word }).await?;
        match session.out.is_json() {
            true => session.out.json(&json!({ "name": name.as_str(), "tenant": tenant.as_str(), "removed": true }))?,
            false => session.out.line(format!("Schedule {name} is removed; the jobs it asked for stay.")),
        }
        return Ok(Answer::Done);
    }
    let paused = act == Act::Pause;
    store.pause_schedule(PauseSchedule { tenant: tenant.clone(), name: name.clone(), paused, word }).await?;
    if session.out.is_json() {
        let (record, _) = store.show_schedule(&tenant, &name).await?;
        session.out.json(&ScheduleLine::new(&record, &[]))?;
        return Ok(Answer::Done);
    }
    session.out.line(match paused {
        true => format!("Schedule {name} is paused: it fires nothing until it is resumed."),
        false => format!("Schedule {name} goes on from now."),
    });
    Ok(Answer::Done)
}
