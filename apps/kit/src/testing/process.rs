//! [`Process`]: a product's own program, started, signalled by its id, and killed with its test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::until;

/// A running program. Its outputs are read to their end; what it logged is shown when its test fails.
pub struct Process {
    child: Child,
    said: Lines,
    logged: Lines,
}

type Lines = Arc<Mutex<Vec<String>>>;

impl Process {
    /// Starts it.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start a program");
        let said = collect(child.stdout.take().expect("its output"));
        let logged = collect(child.stderr.take().expect("its log"));
        Self { child, said, logged }
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// SIGSTOP, and waits until every thread of it stands still.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        let status = waitpid(self.pid(), Some(WaitPidFlag::WUNTRACED)).expect("wait");
        assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// SIGTERM; [`ended`](Self::ended) waits for what follows.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let child = Mutex::new(&mut self.child);
        let look = async || Ok(child.lock().expect("nobody panicked").try_wait()?);
        until("the end of a process", look).await.expect("an end")
    }

    /// Whether it still runs.
    pub fn is_there(&mut self) -> bool {
        self.child.try_wait().expect("look").is_none()
    }

    /// The lines on its standard output so far.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().expect("nobody panicked").clone()
    }

    /// The lines on its standard error so far.
    pub fn logged(&self) -> Vec<String> {
        self.logged.lock().expect("nobody panicked").clone()
    }

    /// Waits until it said a line with all of these words.
    pub async fn until_said(&self, words: &[&str]) -> String {
        find(&self.said, words).await
    }

    /// Waits until it logged a line with all of these words.
    pub async fn until_logged(&self, words: &[&str]) -> String {
        find(&self.logged, words).await
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    fn signal(&self, signal: Signal) {
        // Not reaped before it was waited for, so the number is still its own.
        kill(self.pid(), signal).expect("signal");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is fine. A stopped process is killed as well.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- it logged\n{}", self.logged().join("\n"));
        }
    }
}

async fn find(lines: &Lines, words: &[&str]) -> String {
    let has = |line: &&String| words.iter().all(|word| line.contains(word));
    let look = async || Ok(lines.lock().expect("nobody panicked").iter().find(has).cloned());
    until(&format!("a line with {words:?}"), look).await.expect("a line")
}

/// Reads lines until the pipe is closed: a full pipe would stop the process.
fn collect(pipe: impl Read + Send + 'static) -> Lines {
    let lines = Lines::default();
    let heard = Arc::clone(&lines);
    std::thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            heard.lock().expect("nobody panicked").push(text);
        }
    });
    lines
}
