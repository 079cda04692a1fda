//! A server process that cannot outlive us, in a directory that goes with it.
//!
//! ```text
//!   we ──stdin pipe──► sh (own process group) ──► server
//! ```
//!
//! A shell starts the server and reads from a pipe whose other end only we hold; a word on it stops the server or starts
//! it again. When we are done, or crash, or are killed, the pipe closes, and the shell stops the server and removes the
//! directory. Its own process group keeps a test runner that kills a whole group from killing the guard as well.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to stop before we no longer wait for it.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A file system in memory, as every Linux has it.
const MEMORY: &str = "/dev/shm";
/// What a cluster of the tests may need: its log of changes, and tables of a million rows.
const ROOM_MIB: u64 = 6 * 1024;

/// Lines of its log that an error shows.
const LAST_LINES: usize = 30;

const GUARD: &str = r#"
dir=$1; signal=$2; shift 2
"$@" & pid=$!
while read -r word; do
  case $word in
    stop) kill -s "$signal" $pid; wait $pid ;;
    start) "$@" & pid=$! ;;
  esac
done
kill -s "$signal" $pid
wait $pid
rm -r -f "$dir"
"#;

/// A server, running or stopped.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Child,
    log: String,
}

impl Guarded {
    /// Starts `command` in the directory and waits until `is_ready`. Its output goes to `log` there.
    pub(crate) fn start(
        home: &Home,
        signal: &str,
        command: &[&str],
        environment: &[(String, String)],
        mut is_ready: impl FnMut() -> bool,
    ) -> io::Result<Self> {
        let log_path = home.path("log");
        let log = File::create(&log_path)?;
        let mut sh = Command::new("sh");
        sh.args(["-c", GUARD, "guard"]).arg(&home.dir).arg(signal).args(command).envs(environment.iter().cloned());
        sh.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut started = Self { guard: home.as_user(&mut sh).spawn()?, log: log_path };
        let name = command.first().copied().unwrap_or_default();
        let failed = |log: &str| log.contains("FATAL");
        started.wait(&format!("{name} did not start"), failed, &mut is_ready)?;
        Ok(started)
    }

    /// Stops the server at once and waits until `is_gone`. Its files stay.
    pub(crate) fn stop(&mut self, mut is_gone: impl FnMut() -> bool) -> io::Result<()> {
        self.say("stop")?;
        self.wait("the server did not stop", |_| false, &mut is_gone)
    }

    /// Starts it again on the same files and waits until `is_ready`.
    pub(crate) fn start_again(&mut self, mut is_ready: impl FnMut() -> bool) -> io::Result<()> {
        self.say("start")?;
        // The log is full of what the stop did to sessions: it tells nothing about this start.
        self.wait("the server did not start again", |_| false, &mut is_ready)
    }

    /// What it has written to its log.
    pub(crate) fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn say(&mut self, word: &str) -> io::Result<()> {
        let pipe = self.guard.stdin.as_mut().ok_or_else(|| io::Error::other("the guard is gone"))?;
        writeln!(pipe, "{word}")
    }

    fn wait(&mut self, what: &str, failed: fn(&str) -> bool, is_done: &mut dyn FnMut() -> bool) -> io::Result<()> {
        let since = Instant::now();
        while !is_done() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let ended = self.guard.try_wait()?.is_some();
            if ended || failed(&log) || since.elapsed() > START_TIMEOUT {
                // Its last words; a server that was stormed has said the same thing thousands of times.
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
                return Err(io::Error::other(format!("{what}:\n{last}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let since = Instant::now();
        while matches!(self.guard.try_wait(), Ok(None)) && since.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A temporary directory, and the user who owns it: servers refuse to run as root.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    pub(crate) user: Option<(u32, u32)>,
}

impl Home {
    /// Makes a new one among the temporary files. The path is short: a Unix socket's is at most 107 bytes.
    pub(crate) fn new(what: &str) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), what)
    }

    /// Makes a new one in memory, where there is room for it: for files that nobody wants to outlive the machine.
    pub(crate) fn new_in_memory(what: &str) -> io::Result<Self> {
        let base = if has_room(MEMORY) { PathBuf::from(MEMORY) } else { std::env::temp_dir() };
        Self::new_in(&base, what)
    }

    fn new_in(base: &Path, what: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = loop {
            let name = format!("tenure-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
            let dir = base.join(name);
            match fs::create_dir(&dir) {
                Ok(()) => break dir,
                // A process of this number was killed before it could clean up.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
        let user = if fs::metadata(&dir)?.uid() == 0 { Some(unprivileged()?) } else { None };
        if let Some((uid, gid)) = user {
            chown(&dir, Some(uid), Some(gid))?;
        }
        Ok(Self { dir, user })
    }

    /// A path inside, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Makes a command run as the owner.
    pub(crate) fn as_user<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(&self.dir);
        match self.user {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }

    /// Runs a command as the owner to its end; its output is part of the error.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<()> {
        let output = self.as_user(command).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr].concat();
        Err(io::Error::other(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&text))))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The guard has removed it, unless the server was never started.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Whether so much is free in a directory, as `df` says it. One that is not there has no room.
fn has_room(dir: &str) -> bool {
    let asked = Command::new("df").args(["--output=avail", "--block-size=1M", dir]).output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().nth(1).and_then(|mib| mib.trim().parse::<u64>().ok()).is_some_and(|mib| mib >= ROOM_MIB)
}

/// Finds a program in directories, then in `PATH`.
pub(crate) fn find_program(name: &str, first: &[PathBuf]) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = first.iter().cloned().chain(std::env::split_paths(&path)).chain([PathBuf::from("/usr/sbin")]);
    let found = dirs.map(|dir| dir.join(name)).find(|file| Path::is_file(file));
    found.ok_or_else(|| io::Error::other(format!("{name} is not installed (looked in {first:?} and PATH)")))
}

/// A port nobody listens on right now.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// User and group of `postgres`, else of `nobody`.
fn unprivileged() -> io::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).ok_or_else(|| io::Error::other("no user to run a server as"))
}
