//! Claims on their way.
//!
//! A claim waits for its commit, and while it does the server can work on another. So up to [`CLAIMS_MAX`] of a lane are
//! on their way at once where there is room for whole leases; each lands by itself, and what it took is handed out while
//! the others are still under way. More would only step over what the others have locked.
//!
//! What a claim takes is unknown until it has landed. So nothing is swept as unknown while one is on its way, and the loop
//! hears all of a lane before it says that there is nothing, that something broke, or that it drains.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tenure_store::StoreError;
use tenure_store::lease::{ClaimJobs, Claimed};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::shared::Shared;

/// Claims of one lane on their way at once.
pub(crate) const CLAIMS_MAX: usize = 3;

/// The claims of one lane that are on their way. Dropped, they are given up.
#[derive(Default)]
pub(crate) struct Flights {
    flying: Vec<Flight>,
    tasks: JoinSet<()>,
}

struct Flight {
    limit: u32,
    sent: Instant,
    answer: oneshot::Receiver<Result<Option<Claimed>, StoreError>>,
}

/// A claim that was answered, and when it was sent.
pub(crate) struct Landed {
    pub(crate) sent: Instant,
    pub(crate) answer: Result<Option<Claimed>, StoreError>,
}

impl Flights {
    /// How many are on their way.
    pub(crate) fn count(&self) -> usize {
        self.flying.len()
    }

    /// What they may bring, all together.
    pub(crate) fn jobs(&self) -> u32 {
        self.flying.iter().map(|flight| flight.limit).sum()
    }

    /// Sends a claim on its way, as a task of its own: its answer is read while others are.
    pub(crate) fn send(&mut self, shared: &Arc<Shared>, request: ClaimJobs) {
        let (tell, answer) = oneshot::channel();
        self.flying.push(Flight { limit: request.limit, sent: Instant::now(), answer });
        let store = Arc::clone(&shared.store);
        // Nobody hears of it any more when the loop has ended: then the keeper's last word gives it back.
        let claim = async move { drop(tell.send(store.claim_jobs(request).await)) };
        shared.spawn_in(&mut self.tasks, claim);
    }

    /// The next one that lands; `None` when none is on its way.
    pub(crate) async fn land(&mut self) -> Option<Landed> {
        if self.flying.is_empty() {
            return None;
        }
        while self.tasks.try_join_next().is_some() {}
        let (at, answer) = poll_fn(|cx| {
            for (at, flight) in self.flying.iter_mut().enumerate() {
                if let Poll::Ready(answer) = Pin::new(&mut flight.answer).poll(cx) {
                    return Poll::Ready((at, answer));
                }
            }
            Poll::Pending
        })
        .await;
        let Flight { sent, .. } = self.flying.remove(at);
        let lost = || StoreError::Unavailable("the claim's task has ended without an answer".to_owned(), None);
        Some(Landed { sent, answer: answer.unwrap_or_else(|_| Err(lost())) })
    }
}
