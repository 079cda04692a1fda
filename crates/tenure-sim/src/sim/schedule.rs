//! A schedule that asks for work every few seconds. What was missed is made up once and there is no grace, so that two
//! workers that look at different times decide for different fires.

use std::time::Duration;

use tenure_core::cron::{Missed, Timing};
use tenure_core::name::{KindName, QueueName, ScheduleName, TenantName};
use tenure_core::{Json, Rules};
use tenure_sqlite::SqliteStore;
use tenure_store::operate::Word;
use tenure_store::schedule::{PauseSchedule, SetSchedule, Template};
use tenure_store::{ScheduleStore, StoreError};
use tenure_worker::Job;

use super::jobs::{QUEUES, Work};

/// When it fires.
const CRON: &str = "*/2 * * * * *";

pub(crate) async fn set(store: &SqliteStore) -> Result<(), StoreError> {
    let timing = Timing { missed: Missed::Once, grace: Duration::ZERO, ..Timing::new(CRON.parse()?) };
    let template = Template::new(KindName::new(Work::KIND)?, Json::parse("payload", "{\"n\":0}")?);
    let rules = Rules { backoff: "fixed 1s".parse()?, ..template.rules };
    let template = Template { queue: QueueName::new(QUEUES[0])?, rules, ..template };
    let (tenant, name) = (TenantName::default(), name()?);
    store.set_schedule(SetSchedule { tenant, name, timing, template, word: Word::default() }).await?;
    Ok(())
}

pub(crate) async fn pause(store: &SqliteStore) -> Result<(), StoreError> {
    let (tenant, name) = (TenantName::default(), name()?);
    store.pause_schedule(PauseSchedule { tenant, name, paused: true, word: Word::default() }).await
}

fn name() -> Result<ScheduleName, StoreError> {
    Ok(ScheduleName::new("work")?)
}
