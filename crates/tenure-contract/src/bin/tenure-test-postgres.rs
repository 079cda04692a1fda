//! Runs a command beside a private PostgreSQL cluster and a PgBouncer in front of it.
//!
//! `tenure-test-postgres [--fsync] -- COMMAND…` exports `TENURE_TEST_DATABASE_URL` and `TENURE_TEST_PGBOUNCER_URL`, runs
//! the command, cleans up and exits with the command's code. Killed, it leaves nothing behind either.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use tenure_contract::pgbouncer::{self, PgBouncer};
use tenure_contract::postgres_server::{self, Options, Postgres};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tenure-test-postgres: {error}");
            ExitCode::from(125)
        }
    }
}

fn run() -> io::Result<u8> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || io::Error::other("usage: tenure-test-postgres [--fsync] -- COMMAND…");
    let end = arguments.iter().position(|argument| argument == "--").ok_or_else(usage)?;
    let command = arguments.split_off(end);
    let fsync = match arguments.as_slice() {
        [] => false,
        [flag] if flag == "--fsync" => true,
        _ => return Err(usage()),
    };
    let [_, program, rest @ ..] = command.as_slice() else { return Err(usage()) };
    let postgres = Postgres::start(&Options { fsync, ..Options::default() })?;
    let bouncer = PgBouncer::start(postgres.port())?;
    let mut command = Command::new(program);
    command.args(rest).env(postgres_server::URL_VARIABLE, postgres.admin_url());
    let status = command.env(pgbouncer::URL_VARIABLE, bouncer.url("postgres")).status()?;
    // As shells say it: 128 and the signal.
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}
