//! What every test starts from: an empty store, a ledger, gates, and worker processes on them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_contract::postgres_server::{psql, shared_admin_url};
use tenure_core::QueueName;
use tenure_e2e::{Act, Entry, Gates, Place, Reader};
use tenure_store::Store;
use tenure_store::operate::SetQueue;
use tenure_worker::Client;

use crate::process::Process;

pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) gates: Gates,
    reader: Reader,
    directory: Directory,
    _database: Option<Database>,
}

impl Stage {
    /// A database of its own in the tests' cluster.
    pub(crate) async fn postgres() -> Self {
        let database = Database::new(shared_admin_url());
        let place = Place::Postgres(database.url.clone());
        Self::open(Directory::new(), place, Some(database)).await
    }

    /// A file of its own.
    pub(crate) async fn sqlite() -> Self {
        let directory = Directory::new();
        let place = Place::Sqlite(directory.0.join("tenure.db"));
        Self::open(directory, place, None).await
    }

    /// A database in somebody's own cluster, which goes with it.
    pub(crate) async fn at(url: String) -> Self {
        Self::open(Directory::new(), Place::Postgres(url), None).await
    }

    async fn open(directory: Directory, place: Place, database: Option<Database>) -> Self {
        let store = place.open().await.unwrap();
        store.migrate().await.unwrap();
        let reader = Reader::open(&directory.0).unwrap();
        let gates = Gates::new(&directory.0).unwrap();
        let client = Client::new(&store);
        Self { place, store, client, gates, reader, directory, _database: database }
    }

    /// Leases of `queue` last so long.
    pub(crate) async fn set_lease(&self, queue: &str, lease_ttl: Duration) {
        let queue = QueueName::new(queue).unwrap();
        self.store.set_queue(SetQueue { queue, lease_ttl }).await.unwrap();
    }

    /// Starts a worker process on this store. `flags` are those of `tenure-e2e-worker`.
    pub(crate) fn worker(&self, name: &str, flags: &[&str]) -> Process {
        self.worker_at(&self.place, name, flags)
    }

    /// The same over another way to the store.
    pub(crate) fn worker_at(&self, place: &Place, name: &str, flags: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure-e2e-worker"));
        command.args(["--at", &place.text(), "--name", name]).arg("--dir").arg(&self.directory.0).args(flags);
        Process::start(name, command)
    }

    /// Stores jobs, each by itself when there are few: a worker then takes them under several leases.
    pub(crate) async fn enqueue(&self, acts: Vec<Act>) {
        if acts.len() > 100 {
            for page in acts.chunks(1_000) {
                self.client.enqueue_many(page.to_vec()).await.unwrap();
            }
            return;
        }
        for act in acts {
            self.client.enqueue(act).await.unwrap();
        }
    }

    /// Another reader of the ledger.
    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.directory.0).unwrap()
    }

    /// The ledger.
    pub(crate) fn entries(&mut self) -> &[Entry] {
        self.reader.entries()
    }

    /// Its rows of this kind.
    pub(crate) fn noted(&mut self, what: &str) -> Vec<Entry> {
        self.entries().iter().filter(|entry| entry.what == what).cloned().collect()
    }

    /// How many there are.
    pub(crate) fn count(&mut self, what: &str) -> usize {
        self.entries().iter().filter(|entry| entry.what == what).count()
    }
}

/// A number nobody else has, for names.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let at = tenure_e2e::ledger::wall_clock();
    format!("{}_{}_{at}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tenure-e2e-{}", unique()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A database that goes with the test.
struct Database {
    admin: &'static str,
    name: String,
    url: String,
}

impl Database {
    fn new(admin: &'static str) -> Self {
        let name = format!("e2e_{}", unique());
        psql(admin, &format!("create database {name} template template0")).unwrap();
        let url = format!("{}/{name}", admin.rsplit_once('/').unwrap().0);
        Self { admin, name, url }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // One that stays costs disk until its cluster goes.
        let _left_behind = psql(self.admin, &format!("drop database if exists {} with (force)", self.name));
    }
}
