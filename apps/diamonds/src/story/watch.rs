//! [`Watch`]: looks at the partitions of a run all the time, and counts how often one has gone back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure::{Client, RunId};
use tokio::task::JoinHandle;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks until it is dropped.
pub(super) struct Watch {
    counts: Arc<(AtomicU64, AtomicU64)>,
    looking: JoinHandle<()>,
}

impl Watch {
    pub(super) fn start(client: Client, run: RunId) -> Self {
        let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let looking = tokio::spawn(look(client, run, Arc::clone(&counts)));
        Self { counts, looking }
    }

    /// How often it has looked, and how often a partition had gone back.
    pub(super) fn seen(&self) -> (u64, u64) {
        (self.counts.0.load(Ordering::SeqCst), self.counts.1.load(Ordering::SeqCst))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

async fn look(client: Client, run: RunId, counts: Arc<(AtomicU64, AtomicU64)>) {
    let mut offsets = BTreeMap::new();
    loop {
        // A store that does not answer just now is asked again.
        if let Ok(partitions) = client.partitions_of(run).await {
            for partition in partitions {
                let was = offsets.insert(partition.name, partition.next_offset).unwrap_or(0);
                counts.1.fetch_add(u64::from(partition.next_offset < was), Ordering::SeqCst);
            }
            counts.0.fetch_add(1, Ordering::SeqCst);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
