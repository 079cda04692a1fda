//! Claims on their way.
//!
//! A claim waits for its commit, and while it does the server can work on another. So up to [`CLAIMS_MAX`] of a lane are
//! on their way at once where there is room for whole leases; each lands by itself, and what it took is handed out while
//! the others are still under way. More would only step over what the others have locked.
//!
//! What a claim takes is unknown until it has landed. So nothing is swept as unknown while one is on its way, and the loop
//! hears all of a lane before it says that there is nothing, that something broke, or that it drains.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tenure_core::QueueName;
use tenure_store::StoreError;
use tenure_store::lease::{ClaimJobs, Claimed};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::measure;
use crate::shared::Shared;

/// Claims of one lane on their way at once.
pub(crate) const CLAIMS_MAX: usize = 3;

type Answer = Result<Option<Claimed>, StoreError>;
type Claim = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The claims of one lane that are on their way. Dropped, they are given up.
#[derive(Default)]
pub(crate) struct Flights(Vec<Flight>);

struct Flight {
    queue: QueueName,
    limit: u32,
    sent: Instant,
    /// Never locked: a lane is shared while it is looked at, and a future alone could not be.
    answer: Mutex<Claim>,
}

/// A claim that was answered, and when it was sent.
pub(crate) struct Landed {
    pub(crate) sent: Instant,
    pub(crate) answer: Answer,
}

impl Flights {
    /// How many are on their way.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// What they may bring, all together.
    pub(crate) fn jobs(&self) -> u32 {
        self.0.iter().map(|flight| flight.limit).sum()
    }

    /// Adds a claim. A lone one goes when [`land`](Self::land) is next asked; a further one goes at once, in a task.
    pub(crate) fn add(&mut self, shared: &Arc<Shared>, request: ClaimJobs) {
        let (store, limit, queue) = (Arc::clone(&shared.store), request.limit, request.queue.clone());
        let claim = Box::pin(async move { store.claim_jobs(request).await });
        let answer = if self.0.is_empty() { claim } else { in_task(shared, claim) };
        self.0.push(Flight { queue, limit, sent: Instant::now(), answer: Mutex::new(answer) });
    }

    /// The next one that lands; `None` when none is on its way. Who stops waiting loses nothing.
    pub(crate) async fn land(&mut self) -> Option<Landed> {
        poll_fn(|cx| {
            for at in 0..self.0.len() {
                let answer = self.0[at].answer.get_mut().unwrap_or_else(PoisonError::into_inner);
                if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                    let Flight { queue, sent, .. } = self.0.remove(at);
                    measure::claim_answered(&queue, sent.elapsed());
                    return Poll::Ready(Some(Landed { sent, answer }));
                }
            }
            if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

/// Its answer is read while the loop hands out another's. The task ends when nobody waits for it any more.
fn in_task(shared: &Arc<Shared>, claim: Claim) -> Claim {
    let (tell, answer) = oneshot::channel();
    let mut task = JoinSet::new();
    shared.spawn_in(&mut task, async move { drop(tell.send(claim.await)) });
    Box::pin(async move {
        let _ended_with_this = task;
        let lost = |_| StoreError::Unavailable("the claim's task has ended without an answer".to_owned(), None);
        answer.await.map_err(lost)?
    })
}
