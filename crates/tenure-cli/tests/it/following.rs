//! A command that goes on: its lines are read as they come.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::place::Place;

/// A line that does not come within this is a failed test; nothing waits for it otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The running binary; killed at the end.
pub(crate) struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.command(args).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                // The test has seen enough.
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The first line from here on that `is` right.
    pub(crate) fn line(&self, is: impl Fn(&str) -> bool) -> String {
        let mut others = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if is(&line) => return line,
                Ok(line) => others.push(line),
                Err(error) => panic!("{error}; other lines: {others:#?}"),
            }
        }
    }

    /// The first line from here on that is this JSON.
    pub(crate) fn json(&self, is: impl Fn(&Value) -> bool) -> Value {
        let line = self.line(|line| is(&serde_json::from_str(line).unwrap()));
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Presses Ctrl-C and answers the exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let pid = self.pid();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// The exit code of a command that ends by itself.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
