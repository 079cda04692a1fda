//! The ledger: one row per handler start, and one for what became of it.
//!
//! It is a table without any key, in a database of its own: what is under test can neither forbid a row that should not
//! be there nor take one back. A row outlives a `kill -9` of its writer as soon as it is written, and nothing here waits
//! for the disk: machines are not switched off by these tests.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use tenure_core::{JobId, LeaseNo};
use tenure_sqlite::rusqlite::{self, Connection, params};
use tokio::sync::oneshot;

/// Rows that share a transaction when they wait together.
const GROUP_MAX: usize = 100;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The job.
    pub job: JobId,
    /// The lease its handler ran under.
    pub fence: LeaseNo,
    /// The name of the process.
    pub worker: String,
    /// `start`, `end`, or how it was stopped.
    pub what: String,
    /// When, in microseconds of this machine's wall clock.
    pub at: i64,
}

/// Where handlers write. Clones share a thread.
#[derive(Clone)]
pub struct Ledger {
    worker: String,
    rows: mpsc::Sender<(Entry, Option<oneshot::Sender<()>>)>,
}

/// What a test reads, a little more with every look.
pub struct Reader {
    connection: Connection,
    last: i64,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Opens the ledger in this directory for the process of this name.
    pub fn open(directory: &Path, worker: &str) -> rusqlite::Result<Self> {
        let connection = connect(directory)?;
        let (rows, waiting) = mpsc::channel::<(Entry, Option<oneshot::Sender<()>>)>();
        std::thread::spawn(move || {
            while let Ok(first) = waiting.recv() {
                let group: Vec<_> = std::iter::once(first).chain(waiting.try_iter().take(GROUP_MAX)).collect();
                write(&connection, group.iter().map(|(entry, _)| entry)).expect("write the ledger");
                for written in group.into_iter().filter_map(|(_, written)| written) {
                    // A handler that was dropped no longer waits.
                    let _ = written.send(());
                }
            }
        });
        Ok(Self { worker: worker.to_owned(), rows })
    }

    /// Writes a row and waits until it is there.
    pub async fn write(&self, job: JobId, fence: LeaseNo, what: &str) {
        let (written, is_written) = oneshot::channel();
        self.send(job, fence, what, Some(written));
        is_written.await.expect("the ledger's thread lives");
    }

    /// Writes a row with the time of this moment, and does not wait: for handlers that are being dropped or that block.
    pub fn note(&self, job: JobId, fence: LeaseNo, what: &str) {
        self.send(job, fence, what, None);
    }

    fn send(&self, job: JobId, fence: LeaseNo, what: &str, written: Option<oneshot::Sender<()>>) {
        let entry = Entry { job, fence, worker: self.worker.clone(), what: what.to_owned(), at: wall_clock() };
        self.rows.send((entry, written)).expect("the ledger's thread lives");
    }
}

impl Reader {
    /// Opens the ledger in this directory.
    pub fn open(directory: &Path) -> rusqlite::Result<Self> {
        Ok(Self { connection: connect(directory)?, last: 0, entries: Vec::new() })
    }

    /// Every row until now, in the order they were written.
    pub fn entries(&mut self) -> &[Entry] {
        self.read().expect("read the ledger");
        &self.entries
    }

    fn read(&mut self) -> rusqlite::Result<()> {
        let sql = "select rowid, job, fence, worker, what, at from ledger where rowid > ? order by rowid";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([self.last])?;
        while let Some(row) = rows.next()? {
            self.last = row.get(0)?;
            let job: String = row.get(1)?;
            self.entries.push(Entry {
                job: job.parse().expect("an id"),
                fence: LeaseNo(row.get(2)?),
                worker: row.get(3)?,
                what: row.get(4)?,
                at: row.get(5)?,
            });
        }
        Ok(())
    }
}

/// This machine's wall clock in microseconds; on one machine it is the database's as well.
pub fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn connect(directory: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(directory.join("ledger.db"))?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let table = "create table if not exists ledger (job text, fence integer, worker text, what text, at integer)";
    connection.execute_batch(table)?;
    Ok(connection)
}

fn write<'e>(connection: &Connection, entries: impl Iterator<Item = &'e Entry>) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    {
        let mut insert = transaction.prepare_cached("insert into ledger values (?, ?, ?, ?, ?)")?;
        for entry in entries {
            insert.execute(params![entry.job.to_string(), entry.fence.0, entry.worker, entry.what, entry.at])?;
        }
    }
    transaction.commit()
}
