//! The first program a user copies: built in an empty crate of its own, and run on a real store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure::{JobFilter, JobState, JobStore, JobSummary, PgOptions, PgStore, SqliteOptions, SqliteStore};
use tenure_contract::postgres_server::{psql, shared_admin_url};

/// A user's crate, with nothing in it but what the README names.
const MANIFEST: &str = r#"
[package]
name = "quickstart-NAME"
version = "0.1.0"
edition = "2024"

[dependencies]
serde = { version = "1", features = ["derive"] }
tenure = { path = "PATH" }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }

# It is nobody's member, although it is built inside of our target directory.
[workspace]
"#;

#[tokio::test]
async fn the_readme_example_runs_on_sqlite() {
    let program = Program::new("sqlite");
    let directory = program.directory.join("run");
    let _from_last_time = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    for round in 1..=2 {
        assert_eq!(program.run(&directory, None), "sent: 1\n", "round {round}");
    }
    let store = SqliteStore::open(directory.join("quickstart.db"), SqliteOptions::default()).unwrap();
    let count = |sql: &'static str| {
        let store = store.clone();
        async move {
            let counted = store.transaction(move |tx| {
                let counted = tx.connection().query_row(sql, [], |row| row.get::<_, i64>(0));
                Ok::<_, tenure::StoreError>(counted.unwrap())
            });
            counted.await.unwrap()
        }
    };
    assert_eq!(count("select count(*) from orders").await, 2);
    assert_eq!(count("select count(*) from orders join sent on invoice = id").await, 2);
    assert_done(&store.list_jobs(&JobFilter::default()).await.unwrap());
}

#[tokio::test]
async fn the_readme_example_runs_on_postgres() {
    let program = Program::new("postgres");
    let database = Database::new();
    for round in 1..=2 {
        assert_eq!(program.run(&program.directory, Some(&database.url)), "sent: 1\n", "round {round}");
    }
    assert_eq!(psql(&database.url, "select count(*) from orders").unwrap(), "2");
    assert_eq!(psql(&database.url, "select count(*) from orders join sent on invoice = id").unwrap(), "2");
    let store = PgStore::connect(&database.url, PgOptions::default()).await.unwrap();
    assert_done(&store.list_jobs(&JobFilter::default()).await.unwrap());
}

fn assert_done(jobs: &[JobSummary]) {
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_eq!((job.kind.as_str(), job.queue.as_str()), ("invoice.send", "mail"));
        assert_eq!((job.state, job.attempt), (JobState::Succeeded, 1));
    }
}

/// One example in a crate of its own.
struct Program {
    directory: PathBuf,
}

impl Program {
    /// Lays the crate out; `name` is the file in `examples/quickstart`.
    fn new(name: &str) -> Self {
        // At the same place each time, so that only what changed is compiled.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quickstart").join(name);
        fs::create_dir_all(directory.join("src")).unwrap();
        let library = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = library.join("../..");
        let manifest = MANIFEST.replace("NAME", name).replace("PATH", library.to_str().unwrap());
        fs::write(directory.join("Cargo.toml"), manifest).unwrap();
        // The versions that are on this machine: the build is offline.
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
        let example = root.join("examples/quickstart").join(name).with_extension("rs");
        fs::copy(example, directory.join("src/main.rs")).unwrap();
        Self { directory }
    }

    /// Builds and runs it until it ends by itself; answers what it printed.
    fn run(&self, working_directory: &Path, database_url: Option<&str>) -> String {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--offline", "--manifest-path"]).arg(self.directory.join("Cargo.toml"));
        // One target directory for all of them: what lies below the examples is compiled once.
        cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("quickstart/target"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false").current_dir(working_directory);
        cargo.envs(database_url.map(|url| ("DATABASE_URL", url)));
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// An empty database that is dropped with this value.
struct Database {
    url: String,
    name: String,
}

impl Database {
    fn new() -> Self {
        let admin = shared_admin_url();
        let name = format!("quickstart_{}", std::process::id());
        psql(admin, &format!("create database {name} template template0")).unwrap();
        let base = admin.rsplit_once('/').unwrap().0;
        Self { url: format!("{base}/{name}"), name }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A database that stays costs disk until its cluster goes: no reason to fail a test.
        let _left_behind = psql(shared_admin_url(), &format!("drop database if exists {} with (force)", self.name));
    }
}
