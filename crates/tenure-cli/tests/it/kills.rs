//! Two `tenure worker` processes, 20,000 jobs, five kills with -9 while handlers run.
//!
//! The jobs are requests to a server of the test, whose ledger has no unique key: it shows what really ran. For each
//! kill the server holds its answers back until every slot of both workers is inside a request, so the kill hits.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::counting::{Counting, Start};
use crate::place::Place;
use crate::postgres::Server;
use crate::running::Running;

const JOBS: usize = 20_000;
const KILLS: usize = 5;
const SLOTS: usize = 16;

#[test]
fn five_kills_lose_nothing_and_double_nothing_on_sqlite() {
    run(&calling(Place::new()));
}

#[test]
fn five_kills_lose_nothing_and_double_nothing_on_postgres() {
    let mut server = Server::new();
    server.place = calling(server.place);
    assert_eq!(server.place.run(&["migrate"]).code, 0);
    run(&server.place);
}

/// Jobs of kind `http` may call this machine.
fn calling(place: Place) -> Place {
    place.with_env("TENURE_HTTP_ALLOW", "127.0.0.1").with_env("TENURE_HTTP_PORTS", "any")
}

fn run(place: &Place) {
    let server = Counting::start();
    let url = server.url();
    let lines = (0..JOBS).fold(String::new(), |mut text, _| {
        writeln!(text, r#"{{"kind":"http","payload":{{"url":"{url}"}}}}"#).unwrap();
        text
    });
    place.write("jobs.jsonl", lines);
    assert_eq!(place.run(&["enqueue", "--file", "jobs.jsonl"]).code, 0);
    assert_eq!(place.run(&["queues", "set", "default", "--lease-ttl=2s"]).code, 0);

    let start =
        |name: &str| Running::start(place, &["worker", "--queue", &format!("default={SLOTS}"), "--worker-id", name]);
    let mut workers = [start("one-0"), start("two-0")];
    for kill in 1..=KILLS {
        server.close();
        server.until_held(2 * SLOTS);
        let victim = &mut workers[kill % 2];
        victim.kill();
        // The dead one's requests are still held: they are answered into nothing.
        *victim = start(&format!("{}-{kill}", ["one", "two"][kill % 2]));
        server.open();
    }
    let ended = |how: &str| place.json(&["stats"])["total"][how].as_u64().unwrap();
    place.until("all jobs have succeeded", || ended("succeeded") == JOBS as u64);

    let codes = workers.map(|worker| worker.terminate().code);
    assert_eq!(codes, [0, 0]);
    let (starts, lost) = (server.starts(), ended("lost"));
    println!("starts {}, lost {lost}, kills {KILLS}", starts.len());
    assert_eq!(lost as usize, KILLS * SLOTS, "every kill hit every slot");
    assert_eq!(starts.len(), JOBS + KILLS * SLOTS, "what was in flight at the kills ran again, nothing else did");
    let grants: HashSet<&Start> = starts.iter().collect();
    assert_eq!(grants.len(), starts.len(), "no (job, fence) twice");
    let jobs: HashSet<&str> = starts.iter().map(|start| start.job.as_str()).collect();
    assert_eq!(jobs.len(), JOBS);
    let total: u64 = ["retry", "failed", "dead", "canceled", "snoozed"].into_iter().map(ended).sum();
    assert_eq!(total, 0, "nothing else ended");
    let audit = place.json(&["audit", "verify", "--seal"]);
    assert_eq!(audit["verified"], true, "{audit}");
}
