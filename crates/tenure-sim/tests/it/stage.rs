//! A real store on a stage: its clock in our hand, and users with transactions of their own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_contract::Fixture;
use tenure_core::{JobId, LeaseNo, QueueName, Timestamp, WorkerId};
use tenure_postgres::mutant::Mutant as Cut;
use tenure_postgres::tokio_postgres::{Client, NoTls};
use tenure_postgres::{PgOptions, tx};
use tenure_sim::model::lease::Store;
use tenure_sqlite::{Mutation, SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::operate::SetQueue;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, StoreError};

use crate::database::Database;

/// Long, so that nothing expires unless it is made to.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(3_600);

pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) store: Store,
    users: Users,
}

/// Who has a transaction open on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tx {
    /// A handler that completes this job under this lease.
    Completion(u16, usize),
    /// An operator who asks for this job's end.
    Request(usize),
}

enum Users {
    /// Connections of their own, and those with a transaction open.
    Postgres { url: String, idle: Vec<Client>, open: HashMap<Tx, Client> },
    /// Closures on the one writer.
    Sqlite(SqliteStore),
}

impl Stage {
    /// Postgres, with one statement cut or none.
    pub(crate) async fn postgres(mutant: Option<Cut>) -> Self {
        let (clock, database) = (clock(), Database::new().await);
        let options =
            PgOptions { clock: Clock::Manual(clock.clone()), connections_max: 4, mutant, ..PgOptions::default() };
        let store = database.store(options).await;
        let users = Users::Postgres { url: database.url.clone(), idle: Vec::new(), open: HashMap::new() };
        let fixture = Fixture::new("postgres", Arc::new(store), clock).keeping(database);
        Self { fixture, store: Store::Postgres, users }.ready().await
    }

    /// SQLite in memory, with one phrase changed or none.
    pub(crate) async fn sqlite(mutation: Option<Mutation>) -> Self {
        let clock = clock();
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), mutation, ..SqliteOptions::default() };
        let store = SqliteStore::in_memory(options).expect("open");
        store.migrate().await.expect("migrate");
        let fixture = Fixture::new("sqlite", Arc::new(store.clone()), clock);
        Self { fixture, store: Store::Sqlite, users: Users::Sqlite(store) }.ready().await
    }

    async fn ready(self) -> Self {
        let request = SetQueue::new(QueueName::default(), LEASE_TTL);
        self.fixture.store.set_queue(request).await.expect("set the queue");
        self
    }

    /// Completes a job in a user's transaction that stays open; `false` when that is refused.
    pub(crate) async fn begin(&mut self, tx: Tx, worker: WorkerId, lease: LeaseNo, job: JobId) -> Result<bool, String> {
        let user = self.user().await?;
        run(&user, "begin").await?;
        match tx::complete_in(&user, &CompleteJob::new(worker, lease, job)).await {
            Ok(()) => self.keep(tx, user),
            Err(StoreError::LeaseLost(_)) => {
                run(&user, "rollback").await?;
                self.rest(user);
                return Ok(false);
            }
            Err(error) => return Err(error.to_string()),
        }
        Ok(true)
    }

    /// Asks for a job's end in an operator's transaction that stays open.
    pub(crate) async fn ask(&mut self, tx: Tx, job: JobId) -> Result<String, String> {
        let user = self.user().await?;
        run(&user, "begin").await?;
        let row = user.query_one(&format!("select tenure.cancel('{job}')"), &[]).await;
        let answer = row.map_err(|error| error.to_string())?.get(0);
        self.keep(tx, user);
        Ok(answer)
    }

    /// Commits or rolls back.
    pub(crate) async fn finish(&mut self, tx: Tx, how: &str) -> Result<(), String> {
        let Users::Postgres { open, .. } = &mut self.users else { return Err("nothing is open".into()) };
        let user = open.remove(&tx).ok_or_else(|| format!("{tx:?} is not open"))?;
        run(&user, how).await?;
        self.rest(user);
        Ok(())
    }

    /// Completes a job in one transaction and commits it, or not; `false` when that is refused.
    pub(crate) async fn complete_in(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        job: JobId,
        kept: bool,
    ) -> Result<bool, String> {
        let Users::Sqlite(store) = &self.users else { return Err("only where there is one writer".into()) };
        let rolled_back = "rolled back by its user";
        let done = store.transaction(move |tx| {
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            if kept { Ok(()) } else { Err(StoreError::Conflict(rolled_back.into())) }
        });
        match done.await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict(why)) if why == rolled_back => Ok(true),
            Err(StoreError::LeaseLost(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn user(&mut self) -> Result<Client, String> {
        let Users::Postgres { url, idle, .. } = &mut self.users else { return Err("there is one writer".into()) };
        if let Some(user) = idle.pop() {
            return Ok(user);
        }
        let (client, connection) =
            tenure_postgres::tokio_postgres::connect(url, NoTls).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        run(&client, "set lock_timeout = '10s'").await?;
        Ok(client)
    }

    fn keep(&mut self, tx: Tx, user: Client) {
        if let Users::Postgres { open, .. } = &mut self.users {
            open.insert(tx, user);
        }
    }

    fn rest(&mut self, user: Client) {
        if let Users::Postgres { idle, .. } = &mut self.users {
            idle.push(user);
        }
    }
}

async fn run(user: &Client, sql: &str) -> Result<(), String> {
    user.batch_execute(sql).await.map_err(|error| format!("{sql}: {error}"))
}

/// Begins at the real time: users' transactions read the server's, and it must not be behind.
fn clock() -> ManualClock {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") + Duration::from_secs(60);
    ManualClock::new(Timestamp::from_micros(i64::try_from(since.as_micros()).expect("before the year 9999")))
}
