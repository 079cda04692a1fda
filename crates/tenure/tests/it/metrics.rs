//! The feature `metrics`: what a recorder of the user's hears, and that docs/METRICS.md tells of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use serde::{Deserialize, Serialize};
use tenure::{AdminStore, Client, Fail, Job, KeeperPlace, SqliteStore, Worker};

/// Counts what is said under each name with its labels.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<BTreeMap<String, u64>>>);

struct Under(Heard, String);

impl Under {
    fn add(&self, count: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += count;
    }
}

impl CounterFn for Under {
    fn increment(&self, value: u64) {
        self.add(value);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Under {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {
        self.add(1);
    }
}

impl HistogramFn for Under {
    fn record(&self, _: f64) {
        self.add(1);
    }
}

impl Heard {
    fn under(&self, key: &Key) -> Arc<Under> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Under(self.clone(), format!("{} {}", key.name(), labels.join(",")).trim_end().to_owned()))
    }
}

impl Recorder for Heard {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.under(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.under(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.under(key))
    }
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "task")]
struct Task {
    good: bool,
}

#[tokio::test]
async fn a_recorder_hears_of_claims_and_attempts() {
    let heard = Heard::default();
    let _here = metrics::set_default_local_recorder(&heard);
    let store = SqliteStore::in_memory(Default::default()).unwrap();
    store.migrate().await.unwrap();
    let client = Client::new(&store);
    client.enqueue_many([Task { good: true }, Task { good: true }, Task { good: false }]).await.unwrap();
    let handler = |task: Task| async move { if task.good { Ok(()) } else { Err(Fail::permanent("no")) } };
    // On this thread, where the recorder is.
    let worker = Worker::builder(&store).keeper(KeeperPlace::Task).handle(handler).build().unwrap();
    let ended = "tenure_attempt_seconds queue=default,kind=task,outcome=";
    let done = async {
        while heard.0.lock().unwrap().iter().filter(|(name, _)| name.starts_with(ended)).map(|(_, n)| n).sum::<u64>()
            < 3
        {
            tokio::task::yield_now().await;
        }
    };
    worker.run_until(done).await.unwrap();
    let heard = heard.0.lock().unwrap();
    assert_eq!(heard[&format!("{ended}succeeded")], 2);
    assert_eq!(heard[&format!("{ended}failed")], 1);
    assert_eq!(heard["tenure_claimed_jobs queue=default"], 3);
    assert!(heard["tenure_claim_seconds queue=default"] > 0 && heard["tenure_running"] > 0, "{heard:?}");
    let page = include_str!("../../../../docs/METRICS.md");
    for name in heard.keys().filter_map(|name| name.split(' ').next()) {
        assert!(page.contains(&format!("| `{name}` |")), "docs/METRICS.md says nothing of {name}");
    }
}
