//! A `tenure worker` that runs beside the test; killed at the end.

use std::io::Read;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::place::{Place, Ran};

pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// The same with a limit of open files that it cannot raise.
    pub(crate) fn start_with_files(place: &Place, files: u32, args: &[&str]) -> Self {
        let bare = place.command(args);
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={files}:{files}")).arg(bare.get_program()).args(bare.get_args());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        if let Some(folder) = bare.get_current_dir() {
            command.current_dir(folder);
        }
        for (name, value) in bare.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// Kills it with -9.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some())
    }

    /// The first line that it prints.
    pub(crate) fn first_line(&mut self) -> String {
        let mut line = Vec::new();
        let out = self.0.as_mut().unwrap().stdout.as_mut().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Sends it a signal. One that is gone already is no error.
    pub(crate) fn signal(&self, signal: &str) {
        let child = self.0.as_ref().unwrap();
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    }

    /// How it ended, if it ends by itself within this time.
    pub(crate) fn wait_for(&mut self, time: Duration) -> Option<Ran> {
        let until = Instant::now() + time;
        while !self.has_ended() {
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.0.take().map(ran)
    }

    /// Asks it to stop, as a process supervisor does, and answers how it ended.
    pub(crate) fn terminate(mut self) -> Ran {
        self.signal("TERM");
        ran(self.0.take().unwrap())
    }
}

fn ran(mut child: Child) -> Ran {
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    Ran { code: child.wait().unwrap().code().expect("ended by a signal"), out, err }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
