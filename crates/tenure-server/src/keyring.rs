//! Keys and worker tokens as the store knows them, remembered for a few seconds.
//!
//! A key that was revoked is refused [`REMEMBERED`] later everywhere, and at once by the server that revoked it. Which keys were used is gathered and
//! written down once a minute: it is for people who look for keys that nobody needs any more.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Credential, KeyId, WorkerId};
use tenure_store::access::{KeyRecord, RemoteToken};
use tenure_store::{Store, StoreError};
use tokio::time::Instant;

/// How long an answer of the store is taken for true.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(3);
/// Most that is remembered; then everything is asked for anew.
const KNOWN_MAX: usize = 10_000;
/// How often uses are written down.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What was asked for lately.
#[derive(Default)]
pub(crate) struct Keyring {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Grows when something is forgotten: an answer that was asked for before is not kept.
    forgotten: u64,
    /// Ids that nobody has; apart, so that whoever makes them up pushes out nobody's.
    unknown: HashMap<KeyId, Instant>,
    keys: HashMap<KeyId, (Instant, KeyRecord)>,
    /// Who registered does not change.
    remotes: HashMap<WorkerId, RemoteToken>,
    used: HashSet<KeyId>,
}

impl Keyring {
    /// The key that this credential is, if the store knows it and it is good now.
    pub(crate) async fn find(
        &self,
        store: &dyn Store,
        id: &KeyId,
        credential: &Credential,
    ) -> Result<Option<KeyRecord>, StoreError> {
        match self.look_up(store, id).await? {
            Some(record) if credential.is_of(&record.hash) => self.find_proven(store, id).await,
            _ => Ok(None),
        }
    }

    /// The key of this id, if it is good now: for one who has proven it before.
    pub(crate) async fn find_proven(&self, store: &dyn Store, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let Some(record) = self.look_up(store, id).await? else { return Ok(None) };
        if record.revoked_at.is_some() || record.expires_at.is_some() && !record.is_good(store.now().await?) {
            return Ok(None);
        }
        self.known().used.insert(id.clone());
        Ok(Some(record))
    }

    async fn look_up(&self, store: &dyn Store, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let forgotten = {
            let known = self.known();
            if known.unknown.get(id).is_some_and(|at| at.elapsed() < REMEMBERED) {
                return Ok(None);
            }
            if let Some((_, key)) = known.keys.get(id).filter(|(at, _)| at.elapsed() < REMEMBERED) {
                return Ok(Some(key.clone()));
            }
            known.forgotten
        };
        let asked = Instant::now();
        let record = store.find_key(id).await?;
        let mut known = self.known();
        match &record {
            Some(_) if known.forgotten != forgotten => {}
            Some(record) => {
                if known.keys.len() >= KNOWN_MAX {
                    known.keys.clear();
                }
                known.keys.insert(id.clone(), (asked, record.clone()));
            }
            None => {
                if known.unknown.len() >= KNOWN_MAX {
                    known.unknown.clear();
                }
                known.unknown.insert(id.clone(), asked);
            }
        }
        Ok(record)
    }

    /// Whether this token is that of the worker it names. Its key may be another one by now: keys are rotated.
    pub(crate) async fn is_worker(
        &self,
        store: &dyn Store,
        worker: WorkerId,
        token: &Credential,
    ) -> Result<bool, StoreError> {
        let remembered = self.known().remotes.get(&worker).cloned();
        let remote = match remembered {
            Some(remote) => remote,
            None => {
                let Some(remote) = store.find_remote(worker).await? else { return Ok(false) };
                let mut known = self.known();
                if known.remotes.len() >= KNOWN_MAX {
                    known.remotes.clear();
                }
                known.remotes.insert(worker, remote.clone());
                remote
            }
        };
        Ok(token.is_of(&remote.token))
    }

    /// Forgets a key that was just revoked or replaced here.
    pub(crate) fn forget(&self, key: &KeyId) {
        let mut known = self.known();
        known.forgotten += 1;
        known.keys.remove(key);
    }

    /// Writes down which keys were used, once a minute, for ever.
    pub(crate) fn note_uses(self: &Arc<Self>, store: Arc<dyn Store>) -> impl Future<Output = Infallible> + use<> {
        let keyring = Arc::clone(self);
        async move {
            loop {
                tokio::time::sleep(NOTE_EVERY).await;
                keyring.note(&*store).await;
            }
        }
    }

    /// Writes down which keys were used since the last time.
    pub(crate) async fn note(&self, store: &dyn Store) {
        let used: Vec<KeyId> = self.known().used.drain().collect();
        if used.is_empty() {
            return;
        }
        if let Err(error) = store.use_keys(used).await {
            tracing::warn!(error = %error, "which keys were used is not written down");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
