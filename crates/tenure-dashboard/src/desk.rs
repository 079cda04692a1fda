//! What all pages share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::name::TenantName;
use tenure_core::seal::Seal;
use tenure_server::dead::Grouped;
use tenure_server::{App, Auth};
use tenure_store::record::{QueueRecord, Sight};
use tenure_store::{Store, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::live::Live;

/// The app, and what is remembered beside it. Clones share everything.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) app: App,
    pub(crate) live: Live,
    /// Where no keys are needed there is no session to make a form's token from.
    pub(crate) open_token: Arc<str>,
    queues: Known<Option<Dated<Vec<QueueRecord>>>>,
    /// The number of a seal that is there; from it on the last one is looked for.
    sealed: Arc<AtomicI64>,
    dead: Known<HashMap<Option<TenantName>, Dated<Grouped>>>,
}

/// What was read, shared by all.
type Known<T> = Arc<Mutex<T>>;
/// What was read, and when.
type Dated<T> = (Instant, T);

/// Queues are counted so often, however many look: counting walks over what waits.
const QUEUES_EVERY: Duration = Duration::from_secs(1);
/// Dead letters are grouped so often: up to ten thousand are read for it.
const DEAD_EVERY: Duration = Duration::from_secs(5);

impl Desk {
    pub(crate) fn new(app: App) -> Self {
        let mut random = [0; 16];
        // Without random bits no form is taken: every token is compared with one that nobody has.
        let is_random = getrandom::fill(&mut random).is_ok();
        let open_token = if is_random { bits_of(&random) } else { String::new() };
        let live = Live::new(app.clone());
        Self {
            app,
            live,
            open_token: open_token.into(),
            queues: Arc::default(),
            sealed: Arc::default(),
            dead: Arc::default(),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.app.store()
    }

    /// Whether everybody on this machine may do everything.
    pub(crate) fn is_open(&self) -> bool {
        self.app.options().auth == Auth::Open
    }

    /// Queues with their counts, as of a moment ago.
    pub(crate) async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        // Held while the store answers: whoever comes meanwhile waits for the same answer.
        let mut known = self.queues.lock().await;
        if let Some((_, queues)) = known.as_ref().filter(|(at, _)| at.elapsed() < QUEUES_EVERY) {
            return Ok(queues.clone());
        }
        let queues = self.store().list_queues().await?;
        *known = Some((Instant::now(), queues.clone()));
        Ok(queues)
    }

    /// The last seal of the journal.
    pub(crate) async fn newest_seal(&self) -> Result<Option<Seal>, StoreError> {
        let seal = tenure_store::journal::newest_seal(self.store(), self.sealed.load(Ordering::Relaxed)).await?;
        if let Some(seal) = &seal {
            self.sealed.fetch_max(seal.no, Ordering::Relaxed);
        }
        Ok(seal)
    }

    /// Dead letters by what killed them, the largest group first, as of a moment ago.
    pub(crate) async fn dead(&self, sight: &Sight) -> Result<Grouped, StoreError> {
        let mut known = self.dead.lock().await;
        if let Some((_, grouped)) = known.get(&sight.tenant().cloned()).filter(|(at, _)| at.elapsed() < DEAD_EVERY) {
            return Ok(grouped.clone());
        }
        let grouped = tenure_server::dead::group(self.store(), sight.clone(), None, None).await?;
        // Tenants come and go; what is old is asked for anew anyway.
        known.retain(|_, (at, _)| at.elapsed() < DEAD_EVERY);
        known.insert(sight.tenant().cloned(), (Instant::now(), grouped.clone()));
        Ok(grouped)
    }

    /// The counts are out of date: somebody has just changed a queue.
    pub(crate) async fn forget_queues(&self) {
        *self.queues.lock().await = None;
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn bits_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
