//! A wall clock that is wrong, for one process at a time: `skew.c`, built by the system's compiler and preloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("skew.c");

/// A clock that can be set. Every process that was started with its [`environment`](Self::environment) has it.
pub struct Skew {
    library: PathBuf,
    file: PathBuf,
}

impl Skew {
    /// Builds the library in this directory and sets the clock right.
    pub fn build(directory: &Path, name: &str) -> Self {
        let (source, library) = (directory.join("skew.c"), directory.join("skew.so"));
        if !library.exists() {
            std::fs::write(&source, SOURCE).unwrap();
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&library).arg(&source).arg("-ldl");
            let built = cc.output().unwrap_or_else(|error| panic!("run cc: {error}"));
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        }
        let skew = Self { library, file: directory.join(format!("skew-{name}")) };
        skew.set(0);
        skew
    }

    /// The clock is wrong by so many seconds from now on.
    pub fn set(&self, seconds: i64) {
        // Replaced, not rewritten: a reader never sees half of it.
        let new = self.file.with_extension("new");
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(&new, &self.file).unwrap();
    }

    /// What a process is to be started with.
    pub fn environment(&self) -> [(String, String); 2] {
        let text = |path: &Path| path.display().to_string();
        [("LD_PRELOAD".to_owned(), text(&self.library)), ("TENURE_SKEW_FILE".to_owned(), text(&self.file))]
    }
}
