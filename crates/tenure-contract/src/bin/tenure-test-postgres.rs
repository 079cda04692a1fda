//! Runs a command beside a private PostgreSQL cluster and a PgBouncer in front of it.
//!
//! `tenure-test-postgres [--fsync] [--setting NAME=VALUE]… -- COMMAND…` exports `TENURE_TEST_DATABASE_URL` and
//! `TENURE_TEST_PGBOUNCER_URL`, runs the command, cleans up and exits with the command's code. A setting is a line for
//! `postgresql.conf`. Killed, it leaves nothing behind either.

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
    let end = arguments.iter().position(|argument| argument == "--").ok_or_else(usage)?;
    let command = arguments.split_off(end);
    let [_, program, rest @ ..] = command.as_slice() else { return Err(usage()) };
    let postgres = Postgres::start(&options(&arguments)?)?;
    let bouncer = PgBouncer::start(postgres.port())?;
    let mut command = Command::new(program);
    command.args(rest).env(postgres_server::URL_VARIABLE, postgres.admin_url());
    let status = command.env(pgbouncer::URL_VARIABLE, bouncer.url("postgres")).status()?;
    // As shells say it: 128 and the signal.
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}

fn options(mut arguments: &[String]) -> io::Result<Options> {
    let mut options = Options::default();
    while let [flag, rest @ ..] = arguments {
        arguments = match (flag.as_str(), rest) {
            ("--fsync", rest) => {
                options.fsync = true;
                rest
            }
            ("--setting", [setting, rest @ ..]) => {
                let (name, value) = setting.split_once('=').ok_or_else(usage)?;
                options.settings.push((name.to_owned(), value.to_owned()));
                rest
            }
            _ => return Err(usage()),
        };
    }
    Ok(options)
}

fn usage() -> io::Error {
    io::Error::other("usage: tenure-test-postgres [--fsync] [--setting NAME=VALUE]… -- COMMAND…")
}
