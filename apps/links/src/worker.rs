//! A worker as the seed has it: ten links at once, two of a domain at once, whatever the number of processes.

use std::sync::Arc;
use std::time::Duration;

use kit::BoxError;
use tenure::core::QueueName;
use tenure::preset::LINKS;
use tenure::store::operate::SetQueue;
use tenure::{Builder, Cache, Client, Database, GateRule, Observer, Worker};

use crate::begin::begin;
use crate::enrich::enrich;
use crate::settings::Settings;
use crate::settle::settle;
use crate::web::Web;

/// Where links wait.
pub const QUEUE: &str = "links";
/// Where the imports' own jobs wait: they are short, and no link's slot waits for them.
pub const IMPORTS: &str = "links-imports";
/// Imports' own jobs that one process runs at once.
const IMPORT_SLOTS: u32 = 4;
/// The lease of an import's own job.
const IMPORT_LEASE: Duration = Duration::from_secs(60);
/// Gates of all sites.
const DOMAINS: &str = "domain:*";

/// What handlers share.
#[derive(Clone)]
pub struct Links {
    /// Jobs and tables.
    pub database: Database,
    /// The outside.
    pub web: Web,
    /// How links are enriched.
    pub settings: Arc<Settings>,
}

impl Links {
    /// What sites said in their robots.txt is kept in the database, for all processes.
    pub fn open(database: &Database, settings: &Settings) -> Result<Self, BoxError> {
        let web = Web::new(settings, Cache::new(database))?;
        Ok(Self { database: database.clone(), web, settings: Arc::new(settings.clone()) })
    }
}

/// Sets what all workers share: lease times, and how many may be with a site at once. Workers do, and nobody else: who
/// only imports may have other settings, or none.
pub async fn prepare(client: &Client, settings: &Settings) -> Result<(), BoxError> {
    let store = client.store();
    store.set_queue(SetQueue::new(QueueName::new(QUEUE)?, settings.lease)).await?;
    store.set_queue(SetQueue::new(QueueName::new(IMPORTS)?, settings.lease.min(IMPORT_LEASE))).await?;
    client.set_gate(DOMAINS, GateRule { concurrency: Some(settings.per_domain), ..GateRule::default() }).await?;
    Ok(())
}

/// A worker in the making, for this program's `main`, its tests and its story.
pub fn worker(builder: Builder, links: Links) -> Builder<Links> {
    builder
        .preset(&LINKS)
        .queue(QUEUE, links.settings.concurrency)
        .queue(IMPORTS, IMPORT_SLOTS)
        .state(links)
        .handle(enrich)
        .handle(begin)
        .handle(settle)
}

/// The worker of this database.
pub async fn build(
    database: &Database,
    settings: &Settings,
    observer: Option<Arc<dyn Observer>>,
) -> Result<Worker, BoxError> {
    prepare(&Client::new(database), settings).await?;
    let builder = worker(Worker::builder(database), Links::open(database, settings)?);
    let builder = match observer {
        Some(observer) => builder.observer(observer),
        None => builder,
    };
    Ok(builder.build()?)
}
