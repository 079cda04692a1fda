//! [`Outage`]: a database of each kind that goes away and comes back.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure::rusqlite::Connection;
use tenure::{Database, SqliteOptions, SqliteStore};
use tenure_cluster::postgres_server::{Options, Postgres};

/// A database of a test's own, and what keeps everybody from it.
pub(crate) enum Outage {
    /// Somebody else holds the file, longer than anybody waits for it.
    Sqlite { dir: PathBuf, file: PathBuf, holder: Connection },
    /// The server is stopped in the middle of everything.
    Postgres(Box<Postgres>),
}

impl Outage {
    /// In a file.
    pub(crate) async fn sqlite() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tenure-tasks-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("tasks.db");
        ready(&open_file(&file)).await;
        Self::Sqlite { dir, holder: Connection::open(&file).unwrap(), file }
    }

    /// On a server of its own.
    pub(crate) async fn postgres() -> Self {
        let server = Postgres::start(&Options::default()).unwrap();
        ready(&Database::open(&server.admin_url()).await.unwrap()).await;
        Self::Postgres(Box::new(server))
    }

    /// A database of its own for whoever wants one. It must be there.
    pub(crate) async fn open(&self) -> Database {
        match self {
            Self::Sqlite { file, .. } => open_file(file),
            Self::Postgres(server) => Database::open(&server.admin_url()).await.unwrap(),
        }
    }

    /// Its address, for processes.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite { file, .. } => file.to_str().unwrap().to_owned(),
            Self::Postgres(server) => server.admin_url(),
        }
    }

    /// It is away.
    pub(crate) fn begin(&mut self) {
        match self {
            Self::Sqlite { holder, .. } => holder.execute_batch("begin exclusive").unwrap(),
            Self::Postgres(server) => server.stop().unwrap(),
        }
    }

    /// It is back.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Sqlite { holder, .. } => holder.execute_batch("commit").unwrap(),
            Self::Postgres(server) => server.start_again().unwrap(),
        }
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        if let Self::Sqlite { dir, .. } = self {
            // What cannot be removed is the system's to clean: it is its temporary directory.
            let _left_behind = std::fs::remove_dir_all(dir);
        }
    }
}

/// Who waits so little finds out soon that the file is somebody else's.
fn open_file(file: &PathBuf) -> Database {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(100), ..SqliteOptions::default() };
    SqliteStore::open(file, options).unwrap().into()
}

async fn ready(database: &Database) {
    tenure::migrate(database).await.unwrap();
    database.make_tables(tasks::TABLES).await.unwrap();
}
