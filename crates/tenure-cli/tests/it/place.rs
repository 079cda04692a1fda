//! A directory of its own for each test, and the binary in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A working directory with a home and a data directory; removed at the end.
pub(crate) struct Place {
    dir: PathBuf,
    env: Vec<(&'static str, String)>,
}

/// What the binary did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let name = format!("tenure-cli-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let dir = std::env::temp_dir().join(name);
            match std::fs::create_dir(&dir) {
                Ok(()) => return Self { dir, env: Vec::new() },
                // A process of this number was killed before it could clean up.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", dir.display()),
            }
        }
    }

    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs what a page of the docs tells people to type.
    pub(crate) fn run_page(&self, page: &str, at_least: usize) {
        let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ tenure ")).collect();
        assert!(commands.len() >= at_least, "{commands:?}");
        for command in commands {
            // Words, some of them in single quotes.
            let parts = command.split('\'').enumerate();
            let words: Vec<&str> = parts
                .flat_map(|(n, part)| if n % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
                .collect();
            let ran = self.run(&words);
            assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        }
    }

    /// Runs `tenure ARGS` with nothing on standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses its arguments does not read: a closed pipe is fine.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code().expect("ended by a signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The binary with a clean environment: only a home and what the test sets.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args).current_dir(&self.dir).env_clear().env("HOME", &self.dir).env("LOCALAPPDATA", &self.dir);
        command.env("USER", "tester").envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that must succeed, with `--json`, and reads its answer.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}: {ran:?}");
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.out))
    }

    /// Looks again and again until it is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let since = std::time::Instant::now();
        while !is_so() {
            assert!(since.elapsed() < std::time::Duration::from_secs(180), "waited in vain until {what}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Stores a job and answers its id.
    pub(crate) fn enqueue(&self, args: &[&str]) -> String {
        self.json(&[&["enqueue"], args].concat())["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Ran {
    /// The code and message of an error printed with `--json`.
    pub(crate) fn error(&self) -> Value {
        serde_json::from_str::<Value>(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"))["error"].clone()
    }
}
