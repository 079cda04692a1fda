//! A fresh database of each kind for a test, gone with its value, and a clock that the test moves.
//!
//! ```text
//! kit::on_each_store! { coins::TABLES; a_coin_is_collected_once, }
//! async fn a_coin_is_collected_once(place: Place) { … }
//! ```

mod process;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tenure::store::clock::{Clock, ManualClock};
use tenure::{Builder, Client, Database, PgOptions, PgStore, SqliteOptions, SqliteStore, Timestamp, Worker};
use tenure_cluster::test_database::TestDatabase;

pub use process::Process;

/// A database with Tenure's schema and a product's tables.
pub struct Place {
    /// Jobs and tables.
    pub database: Database,
    /// Whose time it is. It stands still until it is moved; in a place for processes it is not asked.
    pub clock: ManualClock,
    url: String,
    is_manual: bool,
    _kept: Kept,
}

/// What goes with the place.
enum Kept {
    Nothing,
    Postgres(#[expect(dead_code, reason = "dropped with its place")] TestDatabase),
    File(PathBuf),
}

/// Makes a test for each store of an async function that takes a [`Place`]. The tables come first.
#[macro_export]
macro_rules! on_each_store {
    ($tables:expr; $($(#[$meta:meta])* $name:ident,)*) => {
        mod sqlite {
            $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::testing::Place::sqlite($tables).await).await })*
        }
        mod postgres {
            $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::testing::Place::postgres($tables).await).await })*
        }
    };
}

/// The same for tests of whole processes: a file and a database that others can open, by the machine's clock.
#[macro_export]
macro_rules! on_each_store_for_processes {
    ($tables:expr; $($(#[$meta:meta])* $name:ident,)*) => {
        mod sqlite_processes {
            $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::testing::Place::sqlite_file($tables).await).await })*
        }
        mod postgres_processes {
            $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::testing::Place::postgres_shared($tables).await).await })*
        }
    };
}

impl Place {
    /// In memory.
    pub async fn sqlite(tables: &'static str) -> Self {
        let clock = now();
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = SqliteStore::in_memory(options).expect("open a store in memory");
        Self::on(store.into(), clock, String::new(), true, Kept::Nothing).ready(tables).await
    }

    /// On Postgres, by the test's clock.
    pub async fn postgres(tables: &'static str) -> Self {
        let clock = now();
        Self::on_postgres(tables, clock.clone(), Clock::Manual(clock)).await
    }

    /// In a file that other processes open too.
    pub async fn sqlite_file(tables: &'static str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tenure-apps-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).expect("make a folder");
        let file = dir.join("tenure.db");
        let options = SqliteOptions { busy_timeout: Duration::from_secs(30), ..SqliteOptions::default() };
        let store = SqliteStore::open(&file, options).expect("open a file");
        let url = file.to_str().expect("a path that is text").to_owned();
        Self::on(store.into(), now(), url, false, Kept::File(dir)).ready(tables).await
    }

    /// On Postgres, by the server's clock.
    pub async fn postgres_shared(tables: &'static str) -> Self {
        Self::on_postgres(tables, now(), Clock::Store).await
    }

    async fn on_postgres(tables: &'static str, clock: ManualClock, whose: Clock) -> Self {
        // Cloned from one that has Tenure's schema: made once for a cluster.
        let database = TestDatabase::cloned("apps", env!("CARGO_PKG_VERSION"), async |url| {
            let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
            tenure::migrate(&store).await.expect("migrate");
        })
        .await;
        let url = database.url.clone();
        let options = PgOptions { clock: whose.clone(), connections_max: 4, ..PgOptions::default() };
        let store = PgStore::connect(&url, options).await.expect("connect");
        let is_manual = matches!(whose, Clock::Manual(_));
        Self::on(store.into(), clock, url, is_manual, Kept::Postgres(database)).ready(tables).await
    }

    fn on(database: Database, clock: ManualClock, url: String, is_manual: bool, kept: Kept) -> Self {
        Self { database, clock, url, is_manual, _kept: kept }
    }

    async fn ready(self, tables: &'static str) -> Self {
        tenure::migrate(&self.database).await.expect("migrate");
        self.database.make_tables(tables).await.expect("make tables");
        self
    }

    /// What other processes open, in a place for processes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client whose ids are made by this place's clock.
    pub fn client(&self) -> Client {
        let client = Client::new(&self.database);
        match self.is_manual {
            true => client.with_clock(Clock::Manual(self.clock.clone())),
            false => client,
        }
    }

    /// A worker in the making, by this place's clock.
    pub fn worker(&self) -> Builder {
        Worker::builder(&self.database).client(self.client())
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// One number that a statement answers as `n`.
    pub async fn count(&self, sql: &'static str) -> i64 {
        let rows = self.database.query(sql, Vec::new()).await.expect("count");
        rows[0].get("n").expect("a number called n")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Self::File(dir) = self {
            // What cannot be removed is the system's to clean: it is its temporary directory.
            let _left_behind = std::fs::remove_dir_all(dir);
        }
    }
}

/// The machine's clock, from where tests move it: ids are made by it.
fn now() -> ManualClock {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    // Whole seconds: what a store keeps of it is the same everywhere.
    ManualClock::new(Timestamp::EPOCH.plus(Duration::from_secs(since.as_secs())))
}
