//! What every row starts from: an empty store, a ledger, gates, and worker processes on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tenure_cluster::postgres_server::{psql, shared_admin_url};
use tenure_core::QueueName;
use tenure_store::Store;
use tenure_store::operate::SetQueue;
use tenure_worker::{Client, Job};

use crate::act::Act;
use crate::gate::Gates;
use crate::history::History;
use crate::ledger::{Entry, Reader, wall_clock};
use crate::place::Place;
use crate::process::Process;
use crate::sink::{self, Charge};

/// An empty store and everything around it; it goes with this value.
pub struct Stage {
    /// Where the store is.
    pub place: Place,
    /// The store, straight.
    pub store: Arc<dyn Store>,
    /// A producer.
    pub client: Client,
    /// What handlers wait for.
    pub gates: Gates,
    /// What producers were told.
    pub history: History,
    lease_ms: AtomicU64,
    reader: Reader,
    directory: Directory,
    _database: Option<Database>,
}

impl Stage {
    /// A database of its own in the tests' cluster.
    pub async fn postgres() -> Self {
        let database = Database::new(shared_admin_url());
        let place = Place::Postgres(database.url.clone());
        Self::open(Directory::new(), place, Some(database)).await
    }

    /// A file of its own.
    pub async fn sqlite() -> Self {
        let directory = Directory::new();
        let place = Place::Sqlite(directory.0.join("tenure.db"));
        Self::open(directory, place, None).await
    }

    /// A database in somebody's own cluster, which goes with it.
    pub async fn at(url: String) -> Self {
        Self::open(Directory::new(), Place::Postgres(url), None).await
    }

    async fn open(directory: Directory, place: Place, database: Option<Database>) -> Self {
        let store = place.open().await.unwrap();
        store.migrate().await.unwrap();
        if let Place::Postgres(url) = &place {
            psql(url, sink::TABLE).unwrap();
        }
        let reader = Reader::open(&directory.0).unwrap();
        let gates = Gates::new(&directory.0).unwrap();
        let (client, history) = (Client::new(&store), History::default());
        let lease_ms = AtomicU64::new(0);
        Self { place, store, client, gates, history, lease_ms, reader, directory, _database: database }
    }

    /// Goes on with the same jobs at another server, which took over from the one before.
    pub async fn move_to(&mut self, url: String) {
        self.place = Place::Postgres(url);
        self.store = self.place.open().await.unwrap();
        self.client = Client::new(&self.store);
    }

    /// Leases of `queue` last so long.
    pub async fn set_lease(&self, queue: &str, lease_ttl: Duration) {
        let queue = QueueName::new(queue).unwrap();
        self.store.set_queue(SetQueue::new(queue, lease_ttl)).await.unwrap();
        self.lease_ms.fetch_max(u64::try_from(lease_ttl.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// The longest lease that was set.
    pub fn lease(&self) -> Duration {
        match self.lease_ms.load(Ordering::SeqCst) {
            0 => Duration::from_secs(60),
            ms => Duration::from_millis(ms),
        }
    }

    /// How often a worker process looks for expired leases, unless its flags say otherwise.
    pub fn reclaim_every(&self) -> Duration {
        Duration::from_millis(200)
    }

    /// Starts a worker process on this store. `flags` are those of `tenure-e2e-worker`.
    pub fn worker(&self, name: &str, flags: &[&str]) -> Process {
        self.worker_at(&self.place, name, flags)
    }

    /// The same over another way to the store.
    pub fn worker_at(&self, place: &Place, name: &str, flags: &[&str]) -> Process {
        Process::start(name, self.worker_command(place, name, flags))
    }

    /// What would start it, to be changed.
    pub fn worker_command(&self, place: &Place, name: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(beside("tenure-e2e-worker"));
        command.args(["--at", &place.text(), "--name", name]).arg("--dir").arg(&self.directory.0).args(flags);
        command
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.directory.0
    }

    /// Stores jobs, each by itself when there are few: a worker then takes them under several leases.
    pub async fn enqueue(&self, acts: Vec<Act>) {
        self.enqueue_all(acts).await;
    }

    /// The same for jobs that complete in a transaction of their own.
    pub async fn charge(&self, jobs: usize, ms: u64) {
        self.enqueue_all((0..jobs).map(|_| Charge { ms }).collect()).await;
    }

    /// The same while the store comes and goes: each is sent again until it is stored.
    pub async fn charge_patiently(&self, jobs: usize) {
        for _ in 0..jobs {
            self.history.enqueue(&self.client, Charge { ms: 5 }).await;
        }
    }

    async fn enqueue_all<J: Job + Clone>(&self, jobs: Vec<J>) {
        if jobs.len() > 100 {
            for page in jobs.chunks(1_000) {
                self.history.acknowledge(&self.client.enqueue_many(page.to_vec()).await.unwrap());
            }
            return;
        }
        for job in jobs {
            self.history.acknowledge(&[self.client.enqueue(job).await.unwrap()]);
        }
    }

    /// Jobs that have not ended; `None` while the store does not answer.
    pub async fn open_jobs(&self) -> Option<usize> {
        let queues = self.store.list_queues().await.ok()?;
        let open: u64 = queues.iter().map(|queue| queue.due + queue.scheduled + queue.running).sum();
        usize::try_from(open).ok()
    }

    /// Another reader of the ledger.
    pub fn reader(&self) -> Reader {
        Reader::open(&self.directory.0).unwrap()
    }

    /// The ledger.
    pub fn entries(&mut self) -> &[Entry] {
        self.reader.entries()
    }

    /// Its rows of this kind.
    pub fn noted(&mut self, what: &str) -> Vec<Entry> {
        self.entries().iter().filter(|entry| entry.what == what).cloned().collect()
    }

    /// How many there are.
    pub fn count(&mut self, what: &str) -> usize {
        self.entries().iter().filter(|entry| entry.what == what).count()
    }

    /// What the server answers to SQL, past the store and every proxy.
    pub fn sql(&self, sql: &str) -> String {
        let Place::Postgres(url) = &self.place else { panic!("a file has no server") };
        psql(url, sql).unwrap()
    }

    /// Rows in the transactional sink, and how many of them are one job's second.
    pub fn effects(&self) -> (usize, usize) {
        if matches!(self.place, Place::Sqlite(_)) {
            return (0, 0);
        }
        let counts = self.sql("select count(*), count(*) - count(distinct job) from e2e_sink");
        let (rows, double) = counts.split_once('|').unwrap();
        (rows.parse().unwrap(), double.parse().unwrap())
    }

    /// Deadlocks in its database, as the server counts them.
    pub fn deadlocks(&self) -> usize {
        match self.place {
            Place::Sqlite(_) => 0,
            Place::Postgres(_) => {
                self.sql("select deadlocks from pg_stat_database where datname = current_database()").parse().unwrap()
            }
        }
    }
}

/// A program that was built beside the one that runs.
fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    // A test's own program is one directory deeper.
    let found = own.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built"))
}

/// A number nobody else has, for names.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let at = wall_clock();
    format!("{}_{}_{at}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// A directory that goes with its owner.
pub struct Directory(PathBuf);

impl Directory {
    /// A new one.
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tenure-e2e-{}", unique()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Directory {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
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
