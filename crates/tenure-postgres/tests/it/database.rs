//! A fresh database for each test, cloned from a migrated template.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tenure_contract::postgres_server::psql;
use tenure_contract::test_database::TestDatabase;
use tenure_contract::{Fixture, pgbouncer};
use tenure_postgres::{Mode, PgOptions, PgStore, migrate};
use tenure_store::AdminStore;
use tenure_store::clock::{Clock, ManualClock};

/// A database that is dropped with this value.
pub(crate) struct Database(TestDatabase);

impl Deref for Database {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.0
    }
}

impl DerefMut for Database {
    fn deref_mut(&mut self) -> &mut TestDatabase {
        &mut self.0
    }
}

impl Database {
    /// A clone of the template: migrated and empty.
    pub(crate) async fn new() -> Self {
        let steps: String = migrate::STEPS.iter().map(|step| step.sql).collect();
        let migrated = TestDatabase::cloned("tenure", &steps, async |url| {
            let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
            store.migrate().await.expect("migrate");
        });
        Self(migrated.await)
    }

    /// A database without our schema.
    pub(crate) fn bare() -> Self {
        Self(TestDatabase::empty())
    }

    /// Its URL behind the pooler.
    pub(crate) fn pooled_url(&self) -> String {
        let url = std::env::var(pgbouncer::URL_VARIABLE).expect("tests behind a pooler run under tenure-test-postgres");
        at(&url, &self.name)
    }

    /// A store on it that reads `clock`.
    pub(crate) async fn store(&self, options: PgOptions) -> PgStore {
        let url = if options.mode == Mode::Pooled { self.pooled_url() } else { self.url.clone() };
        PgStore::connect(&url, options).await.expect("connect")
    }

    /// Runs SQL and answers what was printed.
    pub(crate) fn sql(&self, sql: &str) -> String {
        psql(&self.url, sql).expect("run SQL")
    }
}

/// A fixture of the contract suite in one mode.
pub(crate) async fn fixture(mode: Mode, clock: ManualClock) -> Fixture {
    let options = PgOptions { mode, clock: Clock::Manual(clock.clone()), connections_max: 4, ..PgOptions::default() };
    fixture_with(options, clock).await
}

/// A fixture of the contract suite with these options.
pub(crate) async fn fixture_with(options: PgOptions, clock: ManualClock) -> Fixture {
    fixture_on(Database::new().await, options, clock).await
}

/// A fixture of the contract suite on this database.
pub(crate) async fn fixture_on(database: Database, options: PgOptions, clock: ManualClock) -> Fixture {
    let name = format!("postgres {:?}", options.mode);
    let store = database.store(options).await;
    Fixture::new(&name, Arc::new(store), clock).keeping(database)
}

fn at(url: &str, name: &str) -> String {
    let base = url.rsplit_once('/').expect("a URL with a database").0;
    format!("{base}/{name}")
}
