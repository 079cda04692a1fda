//! The transactional sink: a table of the user's own, written in the transaction that completes the job.
//!
//! Like the ledger it has no key: a job that got through twice leaves two rows.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tenure_postgres::tokio_postgres::{Client, NoTls, connect};
use tenure_worker::{Attempt, Completed, Ctx, Defaults, Fail, Job, State};

use crate::act::Stagehand;

/// Makes the table.
pub const TABLE: &str = "create table if not exists e2e_sink (job uuid not null, lease bigint not null)";

/// A job that leaves one row in the sink and completes in the same transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Charge {
    /// Waits so long before.
    pub ms: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    // A connection that breaks under it is no reason to wait long, nor to give up.
    const DEFAULTS: Defaults = Defaults::new().max_attempts(100).backoff("fixed 100ms");
}

/// Connections to the sink's database, those of a worker's own program. Clones share them.
#[derive(Clone, Default)]
pub struct Sink(Arc<Inner>);

#[derive(Default)]
struct Inner {
    url: Option<String>,
    idle: Mutex<Vec<Client>>,
}

impl Sink {
    /// The one in this database.
    pub fn new(url: String) -> Self {
        Self(Arc::new(Inner { url: Some(url), idle: Mutex::default() }))
    }

    /// A connection, which comes back by [`give_back`](Self::give_back).
    pub(crate) async fn client(&self) -> Result<Client, Fail> {
        let idle = self.0.idle.lock().unwrap().pop();
        if let Some(client) = idle.filter(|client| !client.is_closed()) {
            return Ok(client);
        }
        let url = self.0.url.as_ref().ok_or_else(|| Fail::permanent("there is no sink"))?;
        let (client, connection) = connect(url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Sink {
    /// For the next one.
    pub(crate) fn give_back(&self, client: Client) {
        self.0.idle.lock().unwrap().push(client);
    }
}

/// The handler of [`Charge`].
pub async fn charge(job: Charge, State(hand): State<Stagehand>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    hand.ledger.write(ctx.job_id(), ctx.fence(), "start").await;
    tokio::time::sleep(std::time::Duration::from_millis(job.ms)).await;
    let mut client = hand.sink.client().await?;
    let tx = client.transaction().await?;
    tx.execute("insert into e2e_sink values ($1, $2)", &[ctx.job_id().as_uuid(), &ctx.fence().0]).await?;
    let done = attempt.complete_in(&tx).await?;
    // Before the commit: a handler without this row has not completed its job.
    hand.ledger.write(ctx.job_id(), ctx.fence(), "end").await;
    tx.commit().await?;
    hand.sink.give_back(client);
    Ok(done)
}
