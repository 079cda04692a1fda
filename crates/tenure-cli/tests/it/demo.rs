//! The demo: it runs anywhere, shows what it promises by the store's own record, and leaves nothing behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::following::Following;
use crate::place::Place;

/// Processes that are told to end, or whose demo is gone, must be gone by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// A place whose temporary files are its own, so that what is left can be seen.
fn place() -> Place {
    let place = Place::new();
    // Settings that cannot be read do not matter: the demo has a store of its own.
    place.write("tenure.toml", "nonsense");
    let temp = place.write("tmp/.keep", "").with_file_name("");
    place.with_env("TMPDIR", temp.to_string_lossy())
}

fn left(place: &Place) -> Vec<String> {
    let left = std::fs::read_dir(place.path("tmp")).unwrap();
    left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(|name| name != ".keep").collect()
}

#[test]
fn the_demo_shows_what_it_promises_by_the_stores_own_record() {
    let place = place();
    let ran = place.run(&["demo", "--once", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    let demo: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(demo["audit"]["verified"], true, "{demo}");
    assert_eq!(demo["violations"], 0, "{demo}");
    for (member, least) in [("reclaimed", 3), ("killed_held", 3), ("stale_refused", 1), ("killed_pid", 2), ("jobs", 60)]
    {
        assert!(demo[member].as_u64().unwrap() >= least, "{member}: {demo}");
    }
    assert!(demo["audit"]["rows"].as_u64().unwrap() > 100 && demo["audit"]["seals"].as_u64().unwrap() > 1, "{demo}");
    let states = demo["states"].as_object().unwrap();
    assert_eq!(states.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), demo["jobs"].as_u64().unwrap());
    assert_eq!(
        (&states["failed"], &states["dead"], &states["canceled"], states.len()),
        (&json!(1), &json!(2), &json!(2), 4),
        "{demo}"
    );
    assert!(demo["seen"].as_object().unwrap().values().all(|seen| seen == true), "{demo}");
    for pid in ["killed_pid", "frozen_pid"] {
        assert!(!is_alive(&demo[pid].to_string()), "{pid}: {demo}");
    }
    assert_eq!(left(&place), [""; 0]);
}

/// What a panel of the first page says, from its id to the end of its element.
fn panel<'p>(page: &'p str, id: &str, end: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("there is no #{id}: {page}"));
    rest.split(end).next().unwrap()
}

/// As soon as the demo says where the dashboard is, and before its story has begun.
#[test]
fn the_first_page_of_the_demos_dashboard_has_something_in_every_panel() {
    let place = place();
    let demo = Following::start(&place, &["demo"]);
    let line = demo.line(|line| line.contains("The dashboard is open: "));
    let address = line.split("http://").nth(1).unwrap().trim();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    let states = panel(&page, "states", "</ul>");
    for state in ["waiting", "queued", "retryable", "running", "succeeded", "failed", "dead", "canceled"] {
        let (_, tile) = states.split_once(&format!("data-state=\"{state}\"><b>")).unwrap();
        assert!(!tile.starts_with('0'), "nothing is {state}: {states}");
    }
    let gates = panel(&page, "gates", "</section>");
    assert!(gates.contains("source:supplier") && gates.contains("breaker open"), "{gates}");
    let runs = panel(&page, "runs", "</section>");
    assert!(runs.contains("outlet delivery") && runs.contains("is-running"), "{runs}");
    let dead = panel(&page, "dead", "</section>");
    assert!(dead.contains("<b>3</b>") && dead.contains("out of paper"), "{dead}");
    let workers = panel(&page, "workers", "</section>");
    assert!(workers.contains("outlet-1"), "{workers}");
    let health = panel(&page, "health", "</section>");
    assert!(health.contains(" there</a>") && health.contains(" open</a>"), "{health}");
    assert_eq!(demo.interrupt(), Some(0));
}

#[test]
fn without_a_terminal_the_demo_tells_a_line_for_each_turn_and_ends() {
    let place = place();
    let ran = place.run(&["demo"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    for part in [
        "was killed with -9 while it held",
        "lost       catalog.export 1",
        "was frozen while it built a report",
        "refused    report.build March: lease",
        "retry      invoice.send 904: 421 mail server busy, attempt 1 of 5",
        "failed     invoice.send 909: 550 no such mailbox",
        "dead       page.fetch /down: 503 service unavailable, no attempts left",
        "snoozed    parcel.track 901",
        "canceled   newsletter.send spring",
        "its breaker is open, its jobs wait",
        "all 8 prices are there",
        "the catalogue was published once",
        "✓ crash",
        "✓ breaker",
        "✓ run",
        "✓ stale",
        "every hash fits",
        "Your turn",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing:\n{}", ran.out);
    }
    assert!(!ran.out.contains(['\x1b', '✗']), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 120), "{}", ran.out);
    assert_eq!(left(&place), [""; 0]);
}

/// A demo that has just frozen one worker, and the process ids it has named so far.
fn frozen(place: &Place) -> (Following, Vec<String>) {
    let demo = Following::start(place, &["demo"]);
    let mut pids = Vec::new();
    let line = demo.line(|line| line.contains("are started"));
    pids.extend(named(&line));
    demo.line(|line| line.contains("was frozen"));
    assert_eq!(pids.len(), 2, "{line}");
    let (killed, frozen) = (&pids[0], &pids[1]);
    assert!(!is_alive(killed), "{line}");
    assert!(is_alive(frozen), "{line}");
    (demo, pids)
}

#[test]
fn ctrl_c_ends_the_demo_and_all_of_its_processes() {
    let place = place();
    let (demo, pids) = frozen(&place);
    let children = children(&demo.pid());
    assert_eq!(demo.interrupt(), Some(0));
    for pid in pids.iter().chain(&children) {
        assert!(!is_alive(pid), "{pid} is left behind");
    }
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn a_demo_that_is_stopped_before_its_end_says_so() {
    let place = place();
    let demo = Following::start(&place, &["demo", "--once"]);
    let pids = named(&demo.line(|line| line.contains("are started")));
    assert!(Command::new("kill").args(["-TERM", &demo.pid()]).status().unwrap().success());
    demo.line(|line| line.starts_with("Stopped before everything was shown"));
    assert_eq!(demo.code(), Some(1), "it did not show what it promised");
    assert!(pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn no_process_outlives_a_demo_that_is_killed_not_even_a_frozen_one() {
    let place = place();
    let (demo, pids) = frozen(&place);
    let children = children(&demo.pid());
    assert!(children.contains(&pids[1]), "{children:?}");
    // Dropped: killed with -9.
    drop(demo);
    let patience = Instant::now() + PATIENCE;
    while let Some(pid) = children.iter().find(|pid| is_alive(pid)) {
        assert!(Instant::now() < patience, "{pid} is left behind");
        std::thread::yield_now();
    }
}

/// Every `(pid 4711)` of a line.
fn named(line: &str) -> Vec<String> {
    line.split("(pid ").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

fn is_alive(pid: &str) -> bool {
    let state = ps(&["-o", "stat=", "-p", pid]);
    // What has ended and was not waited for is dead enough.
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

fn children(pid: &str) -> Vec<String> {
    let all = ps(&["-A", "-o", "pid=,ppid="]);
    let pairs = all.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    pairs.filter(|(_, parent)| parent.trim() == pid).map(|(child, _)| child.to_owned()).collect()
}

fn ps(args: &[&str]) -> String {
    String::from_utf8(Command::new("ps").args(args).output().unwrap().stdout).unwrap()
}
