//! A worker process that is told to stop.

use std::time::{Duration, Instant};

use crate::place::Place;
use crate::running::Running;

/// `timeout` signals the process and then its process group, so one request to stop arrives twice.
#[test]
fn signals_within_a_second_count_as_one_and_a_later_one_ends_the_process() {
    let place = Place::new();
    let id = place.enqueue(&["sleep", "{\"for\": \"10m\"}"]);
    let mut worker = Running::start(&place, &["worker", "--grace=10m"]);
    place.until("the job runs", || place.json(&["jobs", "show", &id])["state"] == "running");
    let first = Instant::now();
    let ran = loop {
        worker.signal("TERM");
        match worker.wait_for(Duration::from_millis(50)) {
            Some(ran) => break ran,
            None => assert!(first.elapsed() < Duration::from_secs(180), "no signal ended it"),
        }
    };
    // A lower bound, so a slow machine cannot break it: nothing ends the process in the first second.
    assert!(first.elapsed() >= Duration::from_secs(1), "{:?}: {}", first.elapsed(), ran.err);
    assert_eq!(ran.code, 130, "{}", ran.err);
}
