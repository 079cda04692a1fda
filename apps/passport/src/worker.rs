//! A worker as the seed has it: a lease of 60 seconds renewed every 30, one job a claim, the database polled every second,
//! and a broker beside it if there is one.

use std::sync::Arc;

use kit::BoxError;
use tenure::core::QueueName;
use tenure::preset::PASSPORT;
use tenure::store::operate::SetQueue;
use tenure::{Builder, Client, Database, GateRule, Worker};

use crate::QUEUE;
use crate::app::App;
use crate::jobs::compile_passport::compile_passport;
use crate::jobs::deliver_webhook::deliver_webhook;
use crate::jobs::generate_qr::generate_qr;
use crate::jobs::parse_facts::parse_facts;
use crate::jobs::sign_passport::sign_passport;
use crate::records::endpoint::ENDPOINTS;
use crate::settings::Settings;

/// How many deliveries to one endpoint are under way at once, of all workers: a receiver that hangs holds no more slots.
const PER_ENDPOINT: u32 = 2;

/// Makes what the tables alone do not say (events are never changed, states go forward), and sets what all workers share:
/// the lease time, a line for each tenant, and how many may be with one endpoint.
pub async fn prepare(database: &Database, settings: &Settings) -> Result<(), BoxError> {
    let guards = match database.is_postgres() {
        true => include_str!("sql/guards_postgres.sql"),
        false => include_str!("sql/guards_sqlite.sql"),
    };
    database.make_tables(guards).await?;
    let client = Client::new(database);
    let queue = SetQueue { fair: Some(true), ..SetQueue::new(QueueName::new(QUEUE)?, settings.lease_ttl) };
    client.store().set_queue(queue).await?;
    client.set_gate(ENDPOINTS, GateRule { concurrency: Some(PER_ENDPOINT), ..GateRule::default() }).await?;
    Ok(())
}

/// A worker in the making, for this program's `main`, its tests and its story.
pub fn worker(builder: Builder, app: &App) -> Builder<App> {
    let settings = app.settings();
    let builder = builder
        .preset(&PASSPORT)
        .poll_every(settings.poll_every)
        .renew_every(settings.renew_every)
        .queue(QUEUE, settings.slots)
        // A lease is one job's: the seed claims one at a time.
        .lease_jobs(1);
    let builder = match app.broker() {
        Some(broker) => builder.waker(Arc::new(broker.clone())),
        None => builder,
    };
    builder
        .state(app.clone())
        .handle(parse_facts)
        .handle(compile_passport)
        .handle(sign_passport)
        .handle(generate_qr)
        .handle(deliver_webhook)
}

/// The worker of this database.
pub async fn build(database: &Database, settings: &Settings) -> Result<Worker, BoxError> {
    prepare(database, settings).await?;
    let app = App::new(database, Client::new(database), settings)?;
    Ok(worker(Worker::builder(database), &app).build()?)
}
