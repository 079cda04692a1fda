//! The program, as README.md walks through it.

use std::process::{Command, Output};

use kit::testing::{Place, Process};

kit::on_each_store_for_processes! { coins::TABLES;
    the_walk_of_the_readme_shows_what_it_says,
    nobody_to_ask_is_an_error_that_says_so,
    a_restarted_world_leaves_switched_off_what_is,
}

const MORGAN: [&str; 10] =
    ["intake", "c1", "1921", "dollar", "--mintmark", "D", "--series", "Morgan", "--title", "1921-D Morgan"];

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coins"));
    command.args(arguments).args(["--database", place.url()]);
    command.envs([("CACHE_ENABLED", "false"), ("WORKER_ID", "worker-1")]);
    command
}

async fn run(place: &Place, arguments: &[&str]) -> Output {
    let mut command = command(place, arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// What it says when it does well.
async fn said(place: &Place, arguments: &[&str]) -> String {
    let ran = run(place, arguments).await;
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

async fn world(place: &Place) -> Process {
    let world = Process::start(command(place, &["world", "--per-minute", "6000"]));
    // The last of the three.
    world.until_said(&["hammer at http://127.0.0.1:"]).await;
    world
}

/// The second field of the line that begins with this name.
fn second(table: &str, name: &str) -> String {
    let line = table.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

async fn the_walk_of_the_readme_shows_what_it_says(place: Place) {
    let _world = world(&place).await;
    let _worker = Process::start(command(&place, &["worker"]));
    assert_eq!(said(&place, &MORGAN).await, "entered\n");
    let asked = said(&place, &["ask", "c1", "--wait"]).await;
    assert_eq!(asked.matches("succeeded").count(), 3, "{asked}");
    let value = "150.00 USD, between 135.00 and 195.00, by 9 prices; 2 outliers left out\n";
    assert_eq!(said(&place, &["value", "c1"]).await, value);
    let jobs = said(&place, &["jobs"]).await;
    assert_eq!((jobs.lines().count(), jobs.matches("worker-1").count()), (4, 3), "{jobs}");
    assert_eq!(said(&place, &["stuck"]).await.lines().count(), 1, "nothing but the heads");
}

async fn nobody_to_ask_is_an_error_that_says_so(place: Place) {
    said(&place, &MORGAN).await;
    let ran = run(&place, &["ask", "c1"]).await;
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success() && told.starts_with("error: nobody was asked: no source is entered"), "{told}");
}

async fn a_restarted_world_leaves_switched_off_what_is(place: Place) {
    let mut first = world(&place).await;
    first.kill();
    said(&place, &["source", "dealer", "pricelist", "http://127.0.0.1:9/", "--disabled"]).await;
    let _again = world(&place).await;
    let sources = said(&place, &["sources"]).await;
    assert_eq!((second(&sources, "dealer"), second(&sources, "hammer")), ("false".into(), "true".into()), "{sources}");
}
