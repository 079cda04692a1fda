//! A worker as the seed has it: one page a job, under a lock of two minutes, tried five times.

use std::fs;
use std::sync::Arc;

use kit::BoxError;
use tenure::core::QueueName;
use tenure::preset::PAGES;
use tenure::sink::Sink;
use tenure::store::operate::SetQueue;
use tenure::{Builder, Client, Database, HandleOptions, Schedule, Worker};

use crate::consolidate::{clean_sink, consolidate};
use crate::deliver::deliver;
use crate::ingest::{ingest, raw_sink};
use crate::markup::Markup;
use crate::nightly::nightly;
use crate::schedule::schedule;
use crate::settings::Settings;
use crate::supplier::Supplier;
use crate::tell::{self, Tell, tell};
use crate::{PAGES_QUEUE, QUEUE};

/// Jobs besides pages that one process does at once.
const SLOTS: u32 = 2;

/// What handlers share.
#[derive(Clone)]
pub struct Diamonds {
    /// Jobs and tables.
    pub database: Database,
    /// What can be set.
    pub settings: Settings,
    pub(crate) supplier: Supplier,
    pub(crate) raw: Sink,
    pub(crate) clean: Sink,
    pub(crate) markup: Arc<Markup>,
}

impl Diamonds {
    /// Puts it together. A markup that is not in order is refused here, before anything is published by it.
    pub fn new(database: &Database, settings: &Settings) -> Result<Self, BoxError> {
        let markup = match &settings.markup {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Markup::read(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
            None => Markup::standard(),
        };
        Ok(Self {
            database: database.clone(),
            settings: settings.clone(),
            supplier: Supplier::new(settings)?,
            raw: raw_sink()?,
            clean: clean_sink()?,
            markup: Arc::new(markup),
        })
    }
}

/// Sets what all workers share: how long a page is locked, and when partitions that failed are looked for.
pub async fn prepare(client: &Client, settings: &Settings) -> Result<(), BoxError> {
    client.store().set_queue(SetQueue::new(QueueName::new(PAGES_QUEUE)?, settings.lease)).await?;
    client.store().set_queue(SetQueue::new(QueueName::new(QUEUE)?, settings.lease)).await?;
    client.set_schedule(Schedule::new("diamonds.tell", tell::EVERY), Tell {}).await?;
    Ok(())
}

/// A worker in the making, for this program's `main`, its tests and its story.
pub fn worker(builder: Builder, diamonds: Diamonds) -> Builder<Diamonds> {
    let settings = diamonds.settings.clone();
    pages(control(builder, diamonds), &settings)
}

/// Everything but pages.
pub fn control(builder: Builder, diamonds: Diamonds) -> Builder<Diamonds> {
    let grace = diamonds.settings.grace;
    let builder = builder.preset(&PAGES).grace(grace).queue(QUEUE, SLOTS).state(diamonds);
    builder.handle(nightly).handle(schedule).handle(consolidate).handle(deliver).handle(tell)
}

/// And the pages.
fn pages(builder: Builder<Diamonds>, settings: &Settings) -> Builder<Diamonds> {
    let (renew_every, options) = (PAGES.renew_every, HandleOptions::new().timeout(settings.page_timeout));
    builder
        .renew_every(renew_every.min(settings.lease / 3))
        // A lock is one page's: the seed takes one message at a time.
        .lease_jobs(u32::from(PAGES.claim_max))
        .queue(PAGES_QUEUE, settings.slots)
        .handle_with(ingest, options)
}

/// The worker of this database.
pub async fn build(database: &Database, settings: &Settings) -> Result<Worker, BoxError> {
    prepare(&Client::new(database), settings).await?;
    Ok(worker(Worker::builder(database), Diamonds::new(database, settings)?).build()?)
}
