//! Gates: what a handler that holds waits for. A file in a directory, so that opening one needs neither the store nor a
//! process that is stopped, and a worker that starts later finds it open.

use std::path::{Path, PathBuf};

/// The gates of one test.
#[derive(Debug, Clone)]
pub struct Gates(PathBuf);

impl Gates {
    /// Those in this directory, which is made when missing.
    pub fn new(directory: &Path) -> std::io::Result<Self> {
        let gates = directory.join("gates");
        std::fs::create_dir_all(&gates)?;
        Ok(Self(gates))
    }

    /// Opens one for everybody, or with `name@worker` for one worker.
    pub fn open(&self, name: &str) -> std::io::Result<()> {
        std::fs::write(self.0.join(name), "")
    }

    /// Whether it is open, for everybody or for this worker.
    pub fn is_open(&self, name: &str, worker: &str) -> bool {
        self.0.join(name).exists() || self.0.join(format!("{name}@{worker}")).exists()
    }
}
