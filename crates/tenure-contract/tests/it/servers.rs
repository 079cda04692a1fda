//! The private servers start, answer, and leave nothing behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tenure_contract::pgbouncer::{self, PgBouncer};
use tenure_contract::postgres_server::{Options, Postgres, psql, shared_admin_url};

#[test]
fn a_private_cluster_and_its_bouncer_answer_and_go_away() {
    let postgres = Postgres::start(&Options::default()).unwrap();
    assert_eq!(psql(&postgres.admin_url(), "show max_prepared_transactions").unwrap(), "20");
    assert_eq!(psql(&postgres.admin_url(), "show fsync").unwrap(), "off");
    psql(&postgres.admin_url(), "create database other").unwrap();
    let bouncer = PgBouncer::start(postgres.port()).unwrap();
    assert_eq!(psql(&bouncer.url("other"), "select current_database()").unwrap(), "other");
    let (dir, url) = (postgres.socket_dir().to_owned(), postgres.admin_url());
    drop(bouncer);
    drop(postgres);
    assert!(!dir.exists(), "{} is still there", dir.display());
    assert!(psql(&url, "select 1").is_err());
}

#[test]
fn a_process_shares_one_cluster_and_one_bouncer() {
    assert_eq!(psql(shared_admin_url(), "select 1").unwrap(), "1");
    assert_eq!(psql(pgbouncer::shared_url(), "select 2").unwrap(), "2");
    assert_eq!(shared_admin_url(), shared_admin_url());
}

#[test]
fn the_wrapper_exports_both_urls_and_forwards_the_exit_code() {
    let script =
        "psql $TENURE_TEST_DATABASE_URL -Atc 'select 1' && psql $TENURE_TEST_PGBOUNCER_URL -Atc 'select 2'; exit 7";
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_tenure-test-postgres"));
    let output = wrapper.args(["--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n");
}

#[test]
fn a_killed_process_leaves_no_server_behind() {
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_tenure-test-postgres"));
    let script = "psql $TENURE_TEST_DATABASE_URL -Atc 'show unix_socket_directories'; read _";
    let mut wrapper =
        wrapper.args(["--", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut dir = String::new();
    BufReader::new(wrapper.stdout.take().unwrap()).read_line(&mut dir).unwrap();
    let dir = Path::new(dir.trim());
    assert!(dir.exists(), "{}", dir.display());
    wrapper.kill().unwrap();
    wrapper.wait().unwrap();
    let since = Instant::now();
    while dir.exists() {
        assert!(since.elapsed() < Duration::from_secs(30), "{} is still there", dir.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
