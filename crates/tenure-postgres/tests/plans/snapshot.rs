//! Plans and schema as files: a change of either shows in review, and no plan may scan a table that grows.
//!
//! `TENURE_GENERATE=1` writes the files again. They name the server's major version; another one is free to plan (and
//! dump) differently, and is only held to the rules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_postgres::PgOptions;
use tenure_postgres::statement::{self, Statement};

use crate::database::Database;
use crate::explain::GROWING;
use crate::session::{SHORT, Session};

/// Statements that every job passes through, or that every worker sends all the time.
const HOT: [Statement; 10] = [
    statement::ENQUEUE_PLAIN,
    statement::CLAIM_JOBS,
    statement::COMPLETE_JOBS,
    statement::END_JOBS,
    statement::LOOK_UP_ENDINGS,
    statement::REFUSE_ENDINGS,
    statement::RENEW_LEASES,
    statement::DROP_LEASES,
    statement::ELECT_SWEEP,
    statement::BEAT_WORKER,
];

#[tokio::test]
async fn snapshot_of_hot_plans() {
    let database = Database::new().await;
    compare_hot(&Session::open(&database, SHORT).await).await;
}

/// Where row-level security is on, neither the owner nor a worker pays for it.
#[tokio::test]
async fn snapshot_of_hot_plans_behind_the_second_wall() {
    let database = Database::new().await;
    database.store(PgOptions::default()).await.install_roles().await.expect("install roles");
    for role in ["none", "tenure_worker"] {
        let session = Session::open(&database, SHORT).await;
        session.run(&format!("set role {role}")).await;
        compare_hot(&session).await;
    }
}

async fn compare_hot(session: &Session) {
    for statement in HOT {
        session.prepare(statement).await;
        let types = format!(
            "select cardinality(parameter_types) from pg_prepared_statements where name = '{}'",
            statement.name
        );
        let count: usize = session.value(&types).await.parse().expect("a number");
        let nulls = vec!["null"; count].join(", ");
        let plan = session.column(&format!("explain (costs off) execute {}({nulls})", statement.name)).await.join("\n");
        compare(session, statement.name, &plan).await;
        assert_no_seq_scan(statement.name, &plan);
        assert_no_full_index_scan(statement.name, &plan);
    }
}

#[tokio::test]
async fn snapshot_of_the_schema() {
    let database = Database::new().await;
    let session = Session::open(&database, SHORT).await;
    // Beside the server: a dump by another version would look different.
    let bin_dir = session.value("select setting from pg_config where name = 'BINDIR'").await;
    let dump = Command::new(Path::new(&bin_dir).join("pg_dump"))
        .args(["--schema-only", "--no-owner", "--no-privileges", "--schema=tenure", &database.url])
        .output()
        .expect("run pg_dump");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let text = String::from_utf8(dump.stdout).expect("UTF-8");
    // Comments, session settings and `\restrict` tell of the tool, not of the schema.
    let told =
        |line: &&str| ["--", "SET ", "SELECT pg_catalog.set_config", "\\"].iter().any(|noise| line.starts_with(noise));
    let mut lines: Vec<&str> = text.lines().filter(|line| !told(line)).collect();
    lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
    compare(&session, "schema", lines.join("\n").trim()).await;
}

pub(crate) fn assert_no_seq_scan(name: &str, plan: &str) {
    for line in plan.lines() {
        let table = line.split_once("Seq Scan on ").and_then(|(_, rest)| rest.split(' ').next());
        assert!(table.is_none_or(|table| !GROWING.contains(&table)), "{name} scans a whole table:\n{plan}");
    }
}

/// With sequential scans off, a plan made beside an empty table may read the whole of an index instead.
fn assert_no_full_index_scan(name: &str, plan: &str) {
    for (line, next) in plan.lines().zip(plan.lines().skip(1)) {
        let index = line.split_once("Scan using ").or_else(|| line.split_once("Bitmap Index Scan on "));
        let index = index.and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default();
        if GROWING.iter().any(|table| index.starts_with(&format!("{table}_"))) {
            // All keys of these indexes begin with one of these columns.
            let bounded =
                ["(job ", "(id ", "(no ", "(queue ", "(tenant ", "(how "].iter().any(|column| next.contains(column));
            assert!(next.trim_start().starts_with("Index Cond: ") && bounded, "{name} reads all of {index}:\n{plan}");
        }
    }
}

/// Compares with the file, or writes it.
pub(crate) async fn compare(session: &Session, name: &str, text: &str) {
    let version = session.value("show server_version_num").await;
    let header = format!("PostgreSQL {}", &version[..version.len() - 4]);
    let path = file(name);
    if std::env::var_os("TENURE_GENERATE").is_some() {
        fs::write(&path, format!("{header}\n\n{text}\n")).expect("write a snapshot");
        return;
    }
    let stored =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}: run `./x generate`", path.display()));
    let (made_by, stored) = stored.split_once("\n\n").expect("a header");
    if made_by == header {
        assert!(
            stored.trim_end() == text,
            "{} is stale: run `./x generate` and look at what changed\n{text}",
            path.display()
        );
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans/snapshots").join(name).with_extension("txt")
}
