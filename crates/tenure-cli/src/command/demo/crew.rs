//! The worker processes: started, killed, frozen, woken, and never left behind.
//!
//! None of them may outlive the demo, whatever ends it:
//! - dropped (an error, a panic, Ctrl-C): killed and waited for;
//! - killed itself: the pipe to each worker closes, and a worker whose pipe is closed ends (`part`);
//! - killed while one is frozen: that one reads no pipe. So each has a process group of its own: when the demo is gone,
//!   that group is orphaned, and the system sends the stopped members of an orphaned group SIGHUP and SIGCONT.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::part;
use crate::failure::{Failure, exit};

/// How long processes that were told to end may take.
const END_WITHIN: Duration = Duration::from_secs(8);

/// Whether a process can be frozen and woken here.
pub(super) const CAN_FREEZE: bool = cfg!(unix);

/// All worker processes of one demo.
pub(super) struct Crew {
    program: PathBuf,
    dir: PathBuf,
    hands: Vec<Hand>,
}

/// One process; killed when dropped.
struct Hand {
    name: &'static str,
    child: Child,
    killed: bool,
}

impl Crew {
    pub(super) fn new(dir: &Path) -> Result<Self, Failure> {
        let unknown = |error| Failure::new("demo", exit::STORE, "this program cannot find itself").caused_by(&error);
        Ok(Self { program: std::env::current_exe().map_err(unknown)?, dir: dir.to_owned(), hands: Vec::new() })
    }

    /// Starts a worker and answers its process id.
    pub(super) fn start(&mut self, name: &'static str, queues: &[(&str, u32)]) -> Result<u32, Failure> {
        let failed = |error| Failure::new("demo", exit::STORE, format!("{name} cannot be started")).caused_by(&error);
        let log = File::create(self.log(name)).map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(part::arguments(name, &self.dir, queues));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(failed)?;
        let pid = child.id();
        self.hands.push(Hand { name, child, killed: false });
        Ok(pid)
    }

    /// Kills with -9: no handler runs, nothing is given back.
    pub(super) fn kill(&mut self, name: &str) -> Result<(), Failure> {
        let hand = self.hand(name)?;
        hand.killed = true;
        let failed = |error| Failure::new("demo", exit::STORE, "a worker cannot be killed").caused_by(&error);
        hand.child.kill().map_err(failed)?;
        hand.child.wait().map_err(failed)?;
        Ok(())
    }

    /// Stops every thread of the process where it stands.
    pub(super) fn freeze(&mut self, name: &str) -> Result<(), Failure> {
        self.hand(name)?.signal(Signal::Freeze)
    }

    /// Lets it go on as if nothing had happened.
    pub(super) fn wake(&mut self, name: &str) -> Result<(), Failure> {
        self.hand(name)?.signal(Signal::Wake)
    }

    /// Refuses when a process has ended that nobody killed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for at in 0..self.hands.len() {
            let hand = &mut self.hands[at];
            let Ok(Some(status)) = hand.child.try_wait() else { continue };
            if !hand.killed {
                let name = hand.name;
                let said = std::fs::read_to_string(self.log(name)).unwrap_or_default();
                let said = said.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
                return Err(Failure::new("demo", exit::REFUSED, format!("{name} ended by itself, {status}{said}")));
            }
        }
        Ok(())
    }

    /// Tells every process that it is over, and waits for it. Those that do not end are killed.
    pub(super) async fn stop(mut self) {
        for hand in &mut self.hands {
            hand.child.stdin = None;
        }
        let patience = Instant::now() + END_WITHIN;
        let running = |hand: &mut Hand| matches!(hand.child.try_wait(), Ok(None));
        while self.hands.iter_mut().any(running) && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn hand(&mut self, name: &str) -> Result<&mut Hand, Failure> {
        let unknown = || Failure::new("demo", exit::REFUSED, format!("there is no {name}"));
        self.hands.iter_mut().find(|hand| hand.name == name).ok_or_else(unknown)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.log"))
    }
}

#[derive(Debug, Clone, Copy)]
enum Signal {
    Freeze,
    Wake,
}

impl Hand {
    #[cfg(unix)]
    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        use nix::sys::signal::{Signal as Unix, kill};
        let failed = |error: &dyn std::error::Error| {
            Failure::new("demo", exit::STORE, format!("{} cannot be signaled", self.name)).caused_by(error)
        };
        let signal = match signal {
            Signal::Freeze => Unix::SIGSTOP,
            Signal::Wake => Unix::SIGCONT,
        };
        // Ours until it is waited for: the number cannot belong to somebody else meanwhile.
        let pid = i32::try_from(self.child.id()).map_err(|error| failed(&error))?;
        kill(nix::unistd::Pid::from_raw(pid), signal).map_err(|error| failed(&error))
    }

    #[cfg(not(unix))]
    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let message = format!("{signal:?} {}: this system has no such signal", self.name);
        Err(Failure::new("demo", exit::REFUSED, message))
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
