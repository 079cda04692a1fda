//! Enqueues that come at the same time share a transaction.
//!
//! A commit waits for the disk, and a statement has its price before it stores anything; neither is dearer for ten jobs
//! than for one. So an enqueue that finds nothing on its way goes at once, and those that come while [`FLIGHTS`] are on
//! their way go together with the next:
//!
//! ```text
//!   one ──► call 1 ───────────────► answered
//!   two ────► call 2 ───────────────► answered
//!   three, four, five … wait ──► call 3, all of them ──► answered, each its own way
//! ```
//!
//! Only jobs without keys travel so. Keys are where strangers meet, and each of them is to be answered by itself.
//!
//! Each enqueue stays all or none by itself. When a shared call is refused nothing of it was stored, and each is sent
//! again, in smaller company and at last alone: whoever caused it hears why, the others do not. A call that nobody answered is unknown to all of them, and each
//! may be sent again, as ever. Jobs of one enqueue stay in their order; between enqueues there never was one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::NewJob;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio::sync::oneshot;

use crate::enqueue::is_plain;
use crate::store::PgStore;

/// Calls on their way at once.
const FLIGHTS: u32 = 2;
/// Jobs that travel together, and from which on an enqueue travels alone.
const TOGETHER_MAX: usize = 100;

/// Whether these may share a call with others.
pub(crate) fn fits(jobs: &[NewJob]) -> bool {
    jobs.len() < TOGETHER_MAX && is_plain(jobs)
}

type Answer = Result<Vec<Enqueued>, StoreError>;

/// Enqueues that wait for the next call.
#[derive(Default)]
pub(crate) struct Gather(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: Vec<Request>,
    flights: u32,
}

struct Request {
    jobs: Vec<NewJob>,
    reply: oneshot::Sender<Answer>,
}

impl PgStore {
    /// Stores the jobs, perhaps together with those of others.
    pub(crate) async fn enqueue_gathered(&self, jobs: Vec<NewJob>) -> Answer {
        let (reply, answer) = oneshot::channel();
        let flies = {
            let mut waiting = self.gather().lock();
            waiting.requests.push(Request { jobs, reply });
            let flies = waiting.flights < FLIGHTS;
            waiting.flights += u32::from(flies);
            flies
        };
        if flies {
            // A task of its own: who asked first may stop waiting, and the others must not be stopped with it.
            tokio::spawn(Flight { store: self.clone(), landed: false }.run());
        }
        let gone = || StoreError::Unavailable("the runtime that carried the enqueue has ended".to_owned(), None);
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn enqueue_together(&self, mut requests: Vec<Request>) {
        if let [_] = requests.as_slice() {
            return self.enqueue_each(requests).await;
        }
        let jobs: Vec<NewJob> = requests.iter().flat_map(|request| request.jobs.iter().cloned()).collect();
        match self.enqueue_now(&jobs).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for request in requests {
                    let own = answers.by_ref().take(request.jobs.len()).collect();
                    // Who no longer waits has stored its jobs all the same.
                    let _ = request.reply.send(Ok(own));
                }
            }
            Err(error @ StoreError::Unavailable(..)) => {
                for request in requests.drain(1..) {
                    let _ = request.reply.send(Err(StoreError::Unavailable(error.to_string(), None)));
                }
                let first = requests.into_iter().next();
                let _ = first.map(|request| request.reply.send(Err(error)));
            }
            Err(_) => self.enqueue_apart(requests).await,
        }
    }

    /// Those of one queue and tenant together, and alone when that is refused too: who meets a full queue must not slow
    /// down the others.
    async fn enqueue_apart(&self, requests: Vec<Request>) {
        let mut groups: BTreeMap<(String, String), Vec<Request>> = BTreeMap::new();
        for request in requests {
            let of = |job: &NewJob| (job.queue.to_string(), job.tenant.to_string());
            groups.entry(request.jobs.first().map(of).unwrap_or_default()).or_default().push(request);
        }
        if groups.len() == 1 {
            return self.enqueue_each(groups.into_values().flatten().collect()).await;
        }
        for group in groups.into_values() {
            Box::pin(self.enqueue_together(group)).await;
        }
    }

    async fn enqueue_each(&self, requests: Vec<Request>) {
        for request in requests {
            let answer = self.enqueue_now(&request.jobs).await;
            let _ = request.reply.send(answer);
        }
    }
}

impl Gather {
    /// What goes with the next call; nothing is left to do when it is empty, and then the flight is over.
    fn next(&self) -> Vec<Request> {
        let mut waiting = self.lock();
        let mut jobs = 0;
        let fits = waiting.requests.iter().take_while(|request| {
            jobs += request.jobs.len();
            jobs <= TOGETHER_MAX
        });
        let many = fits.count();
        let next: Vec<Request> = waiting.requests.drain(..many).collect();
        waiting.flights -= u32::from(next.is_empty());
        next
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call after the other, until nobody waits.
struct Flight {
    store: PgStore,
    landed: bool,
}

impl Flight {
    async fn run(mut self) {
        while !self.landed {
            match self.store.gather().next() {
                none if none.is_empty() => self.landed = true,
                requests => self.store.enqueue_together(requests).await,
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Its runtime has ended in the middle: those that wait hear of it, and the next enqueue starts another.
        if !self.landed {
            let mut waiting = self.store.gather().lock();
            waiting.flights -= 1;
            waiting.requests.clear();
        }
    }
}
