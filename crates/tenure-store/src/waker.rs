//! Wake-ups by somebody else than the store, such as a broker. Polling is the truth; these only make it faster.
//!
//! Workers and servers know this trait only: whether and how something is said is the business of whoever implements it.

use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use async_trait::async_trait;
use tenure_core::JobId;

/// Somebody who may hear of work sooner than a poll finds it.
#[async_trait]
pub trait Waker: fmt::Debug + Send + Sync {
    /// Another waiter, who is woken for what is said from now on. Made before a look for work, nothing that is said
    /// between the look and the wait is missed.
    fn waiter(&self) -> Box<dyn Waker>;

    /// Waits until there may be work. Any number of words is one wake-up, and wake-ups are some milliseconds apart,
    /// however many words come.
    ///
    /// May be dropped at any point, as `select!` does: a wake-up that was not given yet is given to the next call. While
    /// nobody can be heard it waits, so there is always a poll beside it.
    async fn woken(&self);

    /// Says that this job was committed and may be claimed. Never waits, and is often in vain.
    fn publish(&self, job: JobId);

    /// Whether something that is said now would be heard.
    fn is_up(&self) -> bool;
}

/// Waits for this waker, or for ever where there is none: an arm of `select!`.
pub async fn woken(waker: Option<&dyn Waker>) {
    match waker {
        Some(waker) => waker.woken().await,
        None => pending().await,
    }
}

/// A waker that a test speaks through. Clones share what is said; each is a waiter of its own.
#[derive(Default)]
pub struct ManualWaker {
    said: Arc<Mutex<Said>>,
    /// The number of the last word that this waiter was given.
    seen: AtomicU64,
}

#[derive(Default)]
struct Said {
    last: u64,
    is_up: bool,
    waiters: usize,
    waiting: Vec<std::task::Waker>,
    published: Vec<JobId>,
}

impl ManualWaker {
    /// Wakes every waiter once.
    pub fn wake(&self) {
        let waiting = {
            let mut said = self.lock();
            said.last += 1;
            std::mem::take(&mut said.waiting)
        };
        waiting.into_iter().for_each(std::task::Waker::wake);
    }

    /// Sets whether it would be heard.
    pub fn set_up(&self, is_up: bool) {
        self.lock().is_up = is_up;
    }

    /// The jobs that were published, in their order.
    pub fn published(&self) -> Vec<JobId> {
        self.lock().published.clone()
    }

    /// How many waiters were made.
    pub fn waiters(&self) -> usize {
        self.lock().waiters
    }

    /// How many calls wait, or waited and were dropped, since the last word.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for ManualWaker {
    fn clone(&self) -> Self {
        let seen = AtomicU64::new(self.lock().last);
        Self { said: Arc::clone(&self.said), seen }
    }
}

impl fmt::Debug for ManualWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualWaker").field("is_up", &self.is_up()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Waker for ManualWaker {
    fn waiter(&self) -> Box<dyn Waker> {
        self.lock().waiters += 1;
        Box::new(self.clone())
    }

    async fn woken(&self) {
        poll_fn(|cx| {
            let mut said = self.lock();
            if said.last != self.seen.load(Ordering::SeqCst) {
                self.seen.store(said.last, Ordering::SeqCst);
                return Poll::Ready(());
            }
            said.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn publish(&self, job: JobId) {
        self.lock().published.push(job);
    }

    fn is_up(&self) -> bool {
        self.lock().is_up
    }
}
