//! With one slot, what a worker is seen to do is the machine of the seed: every step of its log is one of its table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tenure_core::State as JobState;
use tenure_core::worker_loop::{Event, State, next};
use tenure_worker::{Fail, Worker};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::bench::{Bench, Task};

/// Writes down every step of loop and slot.
#[derive(Clone, Default)]
struct Steps(Arc<Mutex<Vec<(String, String, String)>>>);

#[derive(Default)]
struct Fields {
    message: String,
    from: String,
    to: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "from" => self.from = value.into(),
            "to" => self.to = value.into(),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            write!(self.message, "{value:?}").unwrap();
        }
    }
}

impl tracing::Subscriber for Steps {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if !fields.from.is_empty() && !fields.to.is_empty() {
            self.0.lock().unwrap().push((fields.message, fields.from, fields.to));
        }
    }
}

#[tokio::test]
async fn every_step_of_a_run_is_one_of_the_tables() {
    let steps = Steps::default();
    let _guard = tracing::subscriber::set_default(steps.clone());
    let bench = Bench::new().await;
    let (good, bad) = (bench.enqueue(1).await, bench.enqueue(2).await);
    let handler = |job: Task| async move { if job.n == 1 { Ok(()) } else { Err(Fail::permanent("no")) } };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(handler).build().unwrap();
    let both = async {
        bench.until(good, JobState::Succeeded).await;
        bench.until(bad, JobState::Failed).await;
        crate::bench::watch("the loop rests", async || steps.0.lock().unwrap().iter().any(|(_, _, to)| to == "idle"))
            .await;
    };
    worker.run_until(both).await.unwrap();

    let steps = steps.0.lock().unwrap();
    let legal: BTreeSet<(&str, &str)> = State::ALL
        .into_iter()
        .flat_map(|from| {
            Event::ALL.into_iter().filter_map(move |event| Some((from.as_str(), next(from, event)?.as_str())))
        })
        .collect();
    let loops: Vec<(&str, &str)> =
        steps.iter().filter(|(what, ..)| what == "loop").map(|(_, from, to)| (from.as_str(), to.as_str())).collect();
    for pair in loops.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "the loop is in one state at a time");
    }
    assert!(loops.iter().all(|step| legal.contains(step)), "{loops:?}");
    let begin = ["startup", "connecting", "recovery", "polling", "claiming", "polling"];
    assert_eq!(loops.iter().map(|(from, _)| *from).take(6).collect::<Vec<_>>(), begin);
    assert_eq!(loops.last().map(|(_, to)| *to), Some("draining"));
    let slots: Vec<(&str, &str)> =
        steps.iter().filter(|(what, ..)| what == "slot").map(|(_, from, to)| (from.as_str(), to.as_str())).collect();
    let success = [("free", "processing"), ("processing", "reporting_success"), ("reporting_success", "free")];
    let failure = [("free", "processing"), ("processing", "reporting_failure"), ("reporting_failure", "free")];
    assert_eq!(slots, [success, failure].concat());
}
