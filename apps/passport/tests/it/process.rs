//! Whole processes, and calls to them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use kit::testing::{Place, Process};
use serde_json::Value;

use crate::plant::{KEYS, SEALS};

fn command(place: &Place, arguments: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_passport"));
    command.args(arguments).args(["--database", place.url()]);
    command.envs([("BPC_ENV", "development"), ("BPC_SIGNING_KEYS", KEYS), ("BPC_MASTER_KEYS", SEALS)]);
    command.env("BPC_JOBS_POLL_INTERVAL_MS", "50");
    command.envs(env.iter().copied());
    command
}

/// Runs one to its end.
pub(crate) fn run(place: &Place, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    command(place, arguments, env).stdin(Stdio::null()).output().unwrap()
}

/// Runs one to its end, with something to read.
pub(crate) fn run_on(place: &Place, arguments: &[&str], text: &[u8]) -> Output {
    let mut command = command(place, arguments, &[]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn worker(place: &Place, name: &str, env: &[(&str, &str)]) -> Process {
    let mut command = command(place, &["worker"], env);
    command.env("WORKER_ID", name);
    Process::start(command)
}

/// A server, and where it listens.
pub(crate) async fn server(place: &Place, env: &[(&str, &str)]) -> (Process, String) {
    let mut command = command(place, &["serve"], env);
    command.env("BPC_LISTEN", "127.0.0.1:0");
    let server = Process::start(command);
    let line = server.until_said(&["listening on http://"]).await;
    let address = line.split_once("http://").expect("it says where it listens").1.to_owned();
    (server, address)
}

/// One call over HTTP: `call(address, "POST /v1/rules", "acme", body)`. Answers the status and the body.
pub(crate) fn call(address: &str, what: &str, tenant: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{what} HTTP/1.1\r\nHost: {address}\r\nX-Tenant: {tenant}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A body that is refused by its length may not be read to its end.
    let _cut_off = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let status = std::str::from_utf8(&answer[..head]).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer[head + 4..].to_vec())
}

/// The same, answered with JSON.
pub(crate) fn ask(address: &str, what: &str, tenant: &str, body: &str) -> (u16, Value) {
    let (status, body) = call(address, what, tenant, body.as_bytes());
    (status, serde_json::from_slice(&body).unwrap_or_default())
}
