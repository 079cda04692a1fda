//! Where the demo plays: a temporary directory with one SQLite file in it, gone at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::QueueName;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::operate::SetQueue;
use tenure_store::{AdminStore, Store};

use super::kinds;
use crate::failure::{Failure, exit};

/// Queues, by what waits there.
pub(super) const SHOP: &str = "shop";
pub(super) const IMAGES: &str = "images";
pub(super) const EXPORTS: &str = "exports";
pub(super) const REPORTS: &str = "reports";

/// Leases of the workers that come to harm are short, so that nobody waits long. Those of the shop are not: on a very
/// busy machine a healthy worker must not lose its jobs by chance.
const LEASES: [(&str, Duration); 4] = [
    (SHOP, Duration::from_secs(10)),
    (IMAGES, Duration::from_secs(2)),
    (EXPORTS, Duration::from_secs(2)),
    (REPORTS, Duration::from_secs(2)),
];

/// Five processes write one file, perhaps on a disk that is busy with other things: nobody gives up early.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The store and the directory it lies in.
pub(super) struct Stage {
    pub(super) store: Arc<dyn Store>,
    /// The same, for transactions of the shop's own.
    pub(super) file: SqliteStore,
    // After the store: what is open cannot be removed everywhere.
    pub(super) dir: TempDir,
}

/// A directory that only this user can read; removed when dropped.
pub(super) struct TempDir(PathBuf);

impl Stage {
    pub(super) async fn open() -> Result<Self, Failure> {
        let dir = TempDir::new()?;
        let store = store(dir.path())?;
        store.migrate().await?;
        kinds::create_tables(&store).await?;
        let stage = Self { store: Arc::new(store.clone()), file: store, dir };
        for (queue, _) in LEASES {
            stage.set_lease(queue).await?;
        }
        Ok(stage)
    }

    /// Sets a queue's lease time; a second time it is a write that changes nothing.
    pub(super) async fn set_lease(&self, queue: &str) -> Result<(), Failure> {
        let lease_ttl = LEASES.iter().find(|(name, _)| *name == queue).map_or(Duration::from_secs(10), |(_, ttl)| *ttl);
        Ok(self.store.set_queue(SetQueue::new(QueueName::new(queue)?, lease_ttl)).await?)
    }

    /// Lets jobs end that wait for the story.
    pub(super) fn open_gate(&self, name: &str) -> Result<(), Failure> {
        let gate = kinds::gate(self.dir.path(), name);
        std::fs::write(&gate, "").map_err(|error| no_directory(self.dir.path(), &error))
    }
}

/// The store in a demo's directory, for the demo itself and for its workers.
pub(super) fn store(dir: &Path) -> Result<SqliteStore, Failure> {
    let options = SqliteOptions { busy_timeout: BUSY_TIMEOUT, ..SqliteOptions::default() };
    Ok(SqliteStore::open(dir.join("tenure.db"), options)?)
}

impl TempDir {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut random = [0; 6];
        let none =
            |error| Failure::new("random", exit::STORE, "no random bits for a directory's name").caused_by(&error);
        getrandom::fill(&mut random).map_err(none)?;
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("tenure-demo-{random}"));
        let mut make = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        // Not `recursive`: a directory that is there already is somebody else's.
        make.create(&path).map_err(|error| no_directory(&path, &error))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean: it is its temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn no_directory(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("the demo cannot write to {}", path.display());
    Failure::new("demo", exit::STORE, message).caused_by(error).hint("TMPDIR says where temporary files go.")
}
