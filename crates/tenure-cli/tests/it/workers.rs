//! Who works, and who is gone.

use std::time::Duration;

use serde_json::json;
use tenure_core::WorkerId;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::worker_loop::State;
use tenure_store::worker::{About, Beat};

use crate::bench::Bench;
use crate::place::Place;

/// A beat of a worker that serves two queues.
pub(crate) fn beat(worker: WorkerId, state: State) -> Beat {
    let queue = |name: &str, slots: u32| (QueueName::new(name).unwrap(), slots);
    let about = About {
        version: "1.2.3".into(),
        host: "node-7".into(),
        pid: 42,
        queues: vec![queue("mail", 8), queue("default", 2)],
    };
    Beat { worker, state, running: 3, reporting: 1, about }
}

#[test]
fn workers_are_listed_with_what_they_do() {
    let place = Place::new();
    assert_eq!(place.run(&["workers", "list"]).out, "No workers.\n");
    let bench = Bench::new(&place);
    // The bench's clock is ten minutes behind: what it says now was said just now.
    bench.advance(Duration::from_secs(600));
    bench.wait(bench.store.beat_worker(beat(bench.worker, State::Polling))).unwrap();
    let mut workers = place.json(&["workers", "list"]);
    assert!(workers[0]["seen_at"].take().is_string() && workers[0]["registered_at"].take().is_string());
    let expected = json!([{
        "id": bench.worker.0, "name": "ops", "state": "polling", "running": 3, "reporting": 1,
        "queues": [{ "queue": "mail", "slots": 8 }, { "queue": "default", "slots": 2 }],
        "version": "1.2.3", "host": "node-7", "pid": 42, "registered_at": null, "seen_at": null, "order": "work",
    }]);
    assert_eq!(workers, expected);
    let table = place.run(&["workers", "list"]).out;
    for part in ["WORKER", "ops", "polling", "mail 8, default 2", "node-7", "42", "1.2.3"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn workers_that_are_gone_are_shown_only_when_asked_for() {
    let place = Place::new();
    let bench = Bench::new(&place);
    // Silent for ten minutes by everybody else's clock.
    bench.wait(bench.store.beat_worker(beat(bench.worker, State::Claiming))).unwrap();
    let silent = bench.wait(bench.store.register_worker(&WorkerName::new("never-beat").unwrap())).unwrap();
    bench.advance(Duration::from_secs(600));
    let stopped = bench.wait(bench.store.register_worker(&WorkerName::new("stopped").unwrap())).unwrap();
    bench.wait(bench.store.beat_worker(beat(stopped, State::Stopped))).unwrap();

    let hidden = place.run(&["workers", "list"]).out;
    assert!(hidden.starts_with("No workers.\n") && hidden.contains("3 stopped or were not seen for 30s"), "{hidden}");
    assert_eq!(place.json(&["workers", "list"]), json!([]));
    let all = place.json(&["workers", "list", "--all"]);
    let states: Vec<_> = all.as_array().unwrap().iter().map(|w| json!([w["id"], w["state"]])).collect();
    assert_eq!(
        states,
        [json!([stopped.0, "stopped"]), json!([bench.worker.0, "gone"]), json!([silent.0, "gone"])],
        "{all}"
    );
    assert!(place.run(&["workers", "list", "--all"]).out.contains("10m ago"));
}

#[test]
fn a_worker_is_told_what_to_do() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let no = bench.worker.0.to_string();
    for (verb, order) in [("quiet", "quiet"), ("stop", "stop"), ("resume", "work")] {
        let told = place.json(&["workers", verb, &no, "--reason=deploy"]);
        assert_eq!(told, json!({ "worker": bench.worker.0, "order": order }));
        assert_eq!(place.json(&["workers", "list", "--all"])[0]["order"], order);
    }
    let unknown = place.run(&["workers", "quiet", "999"]);
    assert!(unknown.code == 1 && unknown.err.contains("worker 999 is not known here"), "{unknown:?}");
}

/// The loop itself: quiet it claims nothing, stopped it ends by itself and in order.
#[test]
fn a_running_worker_obeys() {
    let place = Place::new();
    place.json(&["migrate"]);
    let worker = std::cell::RefCell::new(crate::running::Running::start(&place, &["worker", "--worker-id=w"]));
    let listed = || place.json(&["workers", "list"]);
    place.until("it is there", || listed()[0]["id"].is_number());
    let no = listed()[0]["id"].to_string();
    place.json(&["workers", "stop", &no]);
    place.until("it has stopped", || place.json(&["workers", "list", "--all"])[0]["state"] == "stopped");
    place.until("its process has ended", || worker.borrow_mut().has_ended());
}
