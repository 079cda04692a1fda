//! A fresh database for each test, cloned from a migrated template.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tenure_contract::postgres_server::{psql, shared_admin_url};
use tenure_contract::{Fixture, pgbouncer};
use tenure_postgres::{Mode, PgOptions, PgStore, migrate};
use tenure_store::AdminStore;
use tenure_store::clock::{Clock, ManualClock};

/// A database that is dropped with this value.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Database {
    /// A clone of the template: migrated and empty.
    pub(crate) async fn new() -> Self {
        let template = template().await;
        Self::create(&format!("template {template}"))
    }

    /// A database without our schema.
    pub(crate) fn bare() -> Self {
        Self::create("template template0")
    }

    fn create(how: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let name = format!("t_{}_{}_{nanos}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        psql(shared_admin_url(), &format!("create database {name} {how}")).expect("create a database");
        Self { url: at(shared_admin_url(), &name), name }
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

impl Drop for Database {
    fn drop(&mut self) {
        // A database that stays costs disk until its cluster goes: no reason to fail a test.
        let _left_behind = psql(shared_admin_url(), &format!("drop database if exists {} with (force)", self.name));
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

/// The template's name, made from its migrations; made once per cluster, whoever comes first.
async fn template() -> String {
    let text: String = migrate::STEPS.iter().map(|step| step.sql).collect();
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let name = format!("tenure_{sum:016x}");
    let admin = shared_admin_url();
    let is_there = || psql(admin, &format!("select 1 from pg_database where datname = '{name}'")).expect("look") == "1";
    if is_there() {
        return name;
    }
    // Under another name until it is finished; the last step loses quietly against whoever was faster.
    let draft = Database::bare();
    let store = PgStore::connect(&draft.url, PgOptions::default()).await.expect("connect");
    store.migrate().await.expect("migrate");
    drop(store);
    let rename = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'; alter database {} rename to {name}",
        draft.name, draft.name
    );
    for statement in rename.split("; ") {
        if let Err(error) = psql(admin, statement) {
            assert!(is_there(), "{error}");
        }
    }
    name
}

fn at(url: &str, name: &str) -> String {
    let base = url.rsplit_once('/').expect("a URL with a database").0;
    format!("{base}/{name}")
}
