//! A user's crate: nothing in it but what the README names, built apart from our workspace and so with no feature that
//! only a neighbour asked for. The README's programs and the mistakes in `tests/ui` are programs of this one crate, so
//! that what lies below them is compiled once.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const MANIFEST: &str = r#"[package]
name = "user"
version = "0.1.0"
edition = "2024"
autobins = false

[dependencies]
serde = { version = "1", features = ["derive"] }
tenure = { path = "PATH" }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }

[profile.dev]
debug = false

# It is nobody's member, although it is built inside of our target directory.
[workspace]
"#;

/// The crate, laid out.
pub(crate) struct UserCrate {
    directory: PathBuf,
}

impl UserCrate {
    /// At the same place each time, so that only what changed is compiled. Tests in other processes lay it out too.
    pub(crate) fn new() -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("user");
        fs::create_dir_all(&directory).unwrap();
        let mut manifest = MANIFEST.replace("PATH", library().to_str().unwrap());
        for program in mistakes().into_iter().chain(quickstarts()) {
            let (name, path) = (name_of(&program), program.to_str().unwrap());
            writeln!(manifest, "[[bin]]\nname = \"{name}\"\npath = \"{path}\"").unwrap();
        }
        put(&directory, "Cargo.toml", &manifest);
        // The versions that are on this machine: the build is offline. Cargo itself strikes out what is not needed.
        put(&directory, "Cargo.lock", &fs::read_to_string(root().join("Cargo.lock")).unwrap());
        Self { directory }
    }

    /// Builds and runs a program until it ends by itself; answers what it printed.
    pub(crate) fn run(&self, program: &str, working_directory: &Path, database_url: Option<&str>) -> String {
        let mut cargo = self.cargo("run");
        cargo.args(["--bin", program]).current_dir(working_directory);
        let output = cargo.envs(database_url.map(|url| ("DATABASE_URL", url))).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Tries to build these programs, all of them whatever becomes of each; the output is cargo's messages as JSON.
    pub(crate) fn build(&self, programs: &[String]) -> Output {
        let mut cargo = self.cargo("build");
        cargo.args(["--keep-going", "--message-format=json"]);
        cargo.args(programs.iter().flat_map(|program| ["--bin", program])).output().unwrap()
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([verb, "--quiet", "--offline", "--manifest-path"]).arg(self.directory.join("Cargo.toml"));
        cargo.env("CARGO_TARGET_DIR", self.directory.join("target"));
        cargo
    }
}

/// `tests/ui/*.rs`, each a program with mistakes in it.
pub(crate) fn mistakes() -> Vec<PathBuf> {
    programs_in(&library().join("tests/ui"))
}

/// `examples/quickstart/*.rs`, which the README shows.
fn quickstarts() -> Vec<PathBuf> {
    programs_in(&root().join("examples/quickstart"))
}

/// A program is called as its file is.
pub(crate) fn name_of(program: &Path) -> String {
    program.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    library().join("../..").canonicalize().unwrap()
}

fn library() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn programs_in(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut programs: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    programs.sort();
    programs
}

/// Writes a file if it would change, whole at once: another test may be reading it.
fn put(directory: &Path, name: &str, text: &str) {
    if fs::read_to_string(directory.join(name)).is_ok_and(|there| there == text) {
        return;
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let draft = directory.join(format!("{name}.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst)));
    fs::write(&draft, text).unwrap();
    fs::rename(draft, directory.join(name)).unwrap();
}
