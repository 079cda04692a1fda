//! A process under test: started, signalled by its id, always reaped, and killed with its row.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::watch::watch;

/// One line it wrote, and when that was heard.
#[derive(Debug, Clone)]
pub struct Line {
    /// When.
    pub at: Instant,
    /// What.
    pub text: String,
}

type Lines = Arc<Mutex<Vec<Line>>>;

/// A running process.
pub struct Process {
    /// As it is called in the ledger.
    pub name: String,
    child: Child,
    said: Lines,
    logged: Lines,
}

impl Process {
    /// Starts it. Its standard input stays open as long as this value lives.
    pub fn start(name: &str, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("start {command:?}: {error}"));
        let said = collect(child.stdout.take().unwrap());
        let logged = collect(child.stderr.take().unwrap());
        Self { name: name.to_owned(), child, said, logged }
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// SIGSTOP, and waits until every thread of it stands still: on a busy machine some go on for a moment.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let status = waitpid(self.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(status, WaitStatus::Stopped(..)), "{}: {status:?}", self.name);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end; answers how it ended and how long that took from now.
    pub async fn wait(&mut self) -> (ExitStatus, Duration) {
        let since = Instant::now();
        let what = format!("{} ends\n{}", self.name, self.log());
        let status = watch(&what, async || self.ended()).await;
        (status, since.elapsed())
    }

    /// Waits until it said a line that begins so.
    pub async fn wait_for_line(&mut self, begin: &str) -> String {
        let what = format!("{} says {begin}", self.name);
        watch(&what, async || {
            let found = self.said.lock().unwrap().iter().find(|line| line.text.starts_with(begin)).cloned();
            if let (None, Some(status)) = (&found, self.ended()) {
                panic!("{}: {status} before it said {begin}\n{}", self.name, self.log());
            }
            found.map(|line| line.text)
        })
        .await
    }

    /// What it logged so far.
    pub fn log_lines(&self) -> Vec<Line> {
        self.logged.lock().unwrap().clone()
    }

    /// The same as one text, for messages.
    pub fn log(&self) -> String {
        let lines: Vec<String> = self.log_lines().into_iter().map(|line| line.text).collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// Memory it has in hand, in MiB.
    pub fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) >> 10
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    fn signal(&self, signal: Signal) {
        // Not reaped before it was waited for, so the number is still its own.
        kill(self.pid(), signal).unwrap_or_else(|error| panic!("{signal} to {}: {error}", self.name));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is fine. A stopped process is killed as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.name, self.log());
        }
    }
}

/// Reads lines until the pipe is closed: a full pipe would stop the process.
fn collect(pipe: impl Read + Send + 'static) -> Lines {
    let lines = Lines::default();
    let heard = Arc::clone(&lines);
    std::thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            heard.lock().unwrap().push(Line { at: Instant::now(), text });
        }
    });
    lines
}
