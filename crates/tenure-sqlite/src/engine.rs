//! Where verbs run: on a file's own threads, or inline in memory.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tenure_core::{Invalid, Timestamp};
use tenure_store::StoreError;
use tenure_store::clock::Clock;
use tenure_store::lines::Lines;
use tokio::sync::Notify;

use crate::fault::{Fault, is_busy};
use crate::lane::{Lane, Urgency};
use crate::store::SqliteOptions;
use crate::turn::{self, Mode, Turn};
use crate::tx::Tx;

/// Statements kept prepared per connection: all of ours.
const STATEMENTS_MAX: usize = 128;
/// How long one try for the file's lock lasts; see `turn::begin`.
const TRY_MS: u64 = 50;

/// The longest wait for the file's lock: neither SQLite nor the deadlines can count for ever.
const BUSY_TIMEOUT_MAX: Duration = Duration::from_secs(86_400);
/// What the log keeps of its size after a bulk, in bytes: twice what an ordinary checkpoint leaves.
const LOG_BYTES_MAX: i64 = 32 << 20;

/// The threads or the connection behind every handle of a store.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    place: Place,
}

enum Place {
    Memory(Mutex<Connection>),
    /// Closed in this order: only the writer may fold the log into the file and remove it.
    File {
        reader: Lane,
        writer: Lane,
    },
}

/// What turns need to know.
pub(crate) struct Shared {
    clock: Clock,
    pub(crate) busy_timeout: Duration,
    /// Which lines of the queues have work.
    pub(crate) lines: Lines,
    /// Rung after a commit that may have made a job due.
    pub(crate) wake: Notify,
    /// Whether the schema was seen to be ours.
    pub(crate) migrated: AtomicBool,
    #[cfg(feature = "mutants")]
    mutation: Option<crate::Mutation>,
}

impl Engine {
    /// In memory, inline.
    pub(crate) fn memory(options: SqliteOptions) -> Result<Self, StoreError> {
        let conn = Connection::open_in_memory().map_err(Fault::from)?;
        prepare(&conn).map_err(Fault::from)?;
        Ok(Self { shared: Arc::new(Shared::new(options)), place: Place::Memory(Mutex::new(conn)) })
    }

    /// On a file, which is created when it is missing, its directory too.
    pub(crate) fn file(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let shown = path.display();
        // SQLite would give each of our two connections a database of its own, or read options from a URI.
        let name = path.as_os_str();
        if name.is_empty() || name == ":memory:" || name.as_encoded_bytes().starts_with(b"file:") {
            let limit = "a store on a file needs a path, not a URI; one in memory has none";
            return Err(Invalid::new("path", shown, limit).into());
        }
        let cannot = |error: std::io::Error| StoreError::Unavailable(format!("cannot make {shown}: {error}"), None);
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            make_directory(directory).map_err(cannot)?;
        }
        make_file(path).map_err(cannot)?;
        let named = |fault: Fault| match StoreError::from(fault) {
            StoreError::Unavailable(what, source) => StoreError::Unavailable(format!("{shown}: {what}"), source),
            StoreError::Corrupt(what) => StoreError::Corrupt(format!("{shown}: {what}")),
            other => other,
        };
        let shared = Arc::new(Shared::new(options));
        let (writer, reader) = connect(path, shared.busy_timeout).map_err(named)?;
        let writer = Lane::start("tenure-write", writer, Arc::clone(&shared), Mode::Write)?;
        let reader = Lane::start("tenure-read", reader, Arc::clone(&shared), Mode::Read)?;
        Ok(Self { shared, place: Place::File { reader, writer } })
    }

    /// Whether other processes may write here too.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.place, Place::File { .. })
    }

    /// Runs a verb that writes and waits for its commit. A panic in it goes on here. Who stops waiting stops nothing: a
    /// queued verb is run all the same, as if its reply were lost.
    pub(crate) async fn write<T, E, F>(&self, urgency: Urgency, alone: bool, verb: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        let (turn, answer) = Turn::new(alone || urgency == Urgency::Bulk, verb);
        match &self.place {
            Place::Memory(conn) => self.inline(conn, Mode::Write, turn),
            Place::File { writer, .. } => writer.push(urgency, turn),
        }
        heard(answer.await)
    }

    /// Runs a verb that only reads, in one snapshot.
    pub(crate) async fn read<T, F>(&self, verb: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> crate::fault::Result<T> + Send + 'static,
    {
        let (turn, answer) = Turn::new(true, move |tx: &Tx<'_>| verb(tx).map_err(StoreError::from));
        match &self.place {
            Place::Memory(conn) => self.inline(conn, Mode::Read, turn),
            Place::File { reader, .. } => reader.push(Urgency::Verb, turn),
        }
        heard(answer.await)
    }

    fn inline(&self, conn: &Mutex<Connection>, mode: Mode, turn: Turn) {
        // A turn never panics here: `turn::run` catches it.
        let conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
        turn::run(&conn, &self.shared, mode, vec![turn]);
    }
}

fn heard<T, E: From<StoreError>>(
    answer: Result<turn::Answer<T, E>, tokio::sync::oneshot::error::RecvError>,
) -> Result<T, E> {
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => Err(StoreError::Unavailable("the store was closed before it answered".into(), None).into()),
    }
}

impl Shared {
    fn new(options: SqliteOptions) -> Self {
        let manual = options.clock.now().is_some();
        Self {
            clock: options.clock,
            busy_timeout: options.busy_timeout.min(BUSY_TIMEOUT_MAX),
            lines: Lines::new(manual),
            wake: Notify::new(),
            migrated: AtomicBool::new(false),
            #[cfg(feature = "mutants")]
            mutation: options.mutation,
        }
    }

    /// The store's clock: this machine's, unless a test moves one.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp::EPOCH.plus(since)
        })
    }

    /// A transaction of a turn that begins now.
    pub(crate) fn tx<'c>(&self, conn: &'c Connection) -> Tx<'c> {
        Tx::new(
            conn,
            self.now(),
            #[cfg(feature = "mutants")]
            self.mutation,
        )
    }

    /// Remembers that the schema is ours, so that verbs need not look again.
    pub(crate) fn set_migrated(&self) {
        self.migrated.store(true, Ordering::Release);
    }
}

/// Makes a directory that only its owner enters. One that exists is left as it is.
fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes an empty file that only its owner reads: payloads may hold anything. One that exists is left as it is. SQLite gives
/// the log and the shared memory beside it the mode of the file.
fn make_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The two connections of a file. Turning a new file to WAL fails at once when somebody else does the same, whatever
/// the busy timeout says: try again until `timeout`.
fn connect(path: &Path, timeout: Duration) -> crate::fault::Result<(Connection, Connection)> {
    let deadline = Instant::now() + timeout;
    loop {
        match connect_once(path, timeout) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            done => return Ok(done?),
        }
    }
}

fn connect_once(path: &Path, timeout: Duration) -> rusqlite::Result<(Connection, Connection)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let writer = Connection::open_with_flags(path, flags)?;
    writer.busy_timeout(timeout)?;
    // Readers never wait for the writer in WAL; FULL makes a commit outlive a power cut.
    writer.pragma_update(None, "journal_mode", "wal")?;
    writer.pragma_update(None, "synchronous", "full")?;
    // Fewer, larger checkpoints: each one waits for the disk twice.
    writer.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    writer.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    prepare(&writer)?;
    writer.busy_timeout(Duration::from_millis(TRY_MS).min(timeout))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(path, flags)?;
    prepare(&reader)?;
    reader.busy_timeout(timeout)?;
    Ok((writer, reader))
}

fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "cache_size", -32_000)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise every new value of a parameter in a range (`run_at <= :now`) has its statement prepared anew.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}
