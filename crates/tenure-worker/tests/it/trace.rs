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
struct Steps(Arc<Mutex<Vec<Step>>>);

#[derive(Default)]
struct Step {
    what: String,
    job: String,
    from: String,
    to: String,
}

impl Visit for Step {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "from" => self.from = value.into(),
            "to" => self.to = value.into(),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => write!(self.what, "{value:?}").unwrap(),
            "job.id" => write!(self.job, "{value:?}").unwrap(),
            _ => {}
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
        let mut step = Step::default();
        event.record(&mut step);
        if !step.from.is_empty() && !step.to.is_empty() {
            self.0.lock().unwrap().push(step);
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
        crate::bench::watch("the loop rests", async || steps.0.lock().unwrap().iter().any(|step| step.to == "idle"))
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
    let of = |what: &str, job: &str| -> Vec<(&str, &str)> {
        let wanted = steps.iter().filter(|step| step.what == what && step.job == job);
        wanted.map(|step| (step.from.as_str(), step.to.as_str())).collect()
    };
    let loops = of("loop", "");
    for pair in loops.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "the loop is in one state at a time");
    }
    assert!(loops.iter().all(|step| legal.contains(step)), "{loops:?}");
    let begin = ["startup", "connecting", "recovery", "polling", "claiming", "polling"];
    assert_eq!(loops.iter().map(|(from, _)| *from).take(6).collect::<Vec<_>>(), begin);
    assert_eq!(loops.last().map(|(_, to)| *to), Some("draining"));
    let success = [("free", "processing"), ("processing", "reporting_success"), ("reporting_success", "free")];
    let failure = [("free", "processing"), ("processing", "reporting_failure"), ("reporting_failure", "free")];
    assert_eq!(of("slot", &good.to_string()), success);
    assert_eq!(of("slot", &bad.to_string()), failure);
    // The second begins when the first has ended; that one's report may still be under way.
    let places = |state: &str| steps.iter().position(|step| step.what == "slot" && step.to == state);
    assert!(places("reporting_success") < steps.iter().position(|step| step.job == bad.to_string()));
}
