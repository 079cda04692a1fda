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
//!
//! A shared call that met another open transaction, by a lock timeout or a deadlock, is sent again in the same way: every
//! request alone, first without waiting for locks, so that only those that met the lock wait once more.
//!
//! Who is refused is sent alone beside the flights, at most [`ALONE`] of them at once. And who met a quota goes that way
//! from the start, until something of the same tenant and queue was stored: a tenant that keeps on asking for more than
//! it may have does not keep others waiting.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::NewJob;
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio::sync::{Semaphore, oneshot};
use tokio_postgres::types::Type;

use crate::call::late;
use crate::enqueue::is_plain;
use crate::error::met_a_lock;
use crate::pool::Desk;
use crate::statement::WAKE_IDLE;
use crate::store::PgStore;

/// Calls on their way at once.
const FLIGHTS: u32 = 2;
/// Jobs that travel together, and from which on an enqueue travels alone.
const TOGETHER_MAX: usize = 100;
/// Bytes of payloads after which no further enqueue joins a call. A large payload travels alone or last.
const TOGETHER_BYTES_MAX: usize = 1 << 20;
/// Calls on their way beside those, of enqueues that were or would be refused.
const ALONE: usize = 1;
/// Tenants and queues that are remembered as full. Beyond that all are forgotten, and refused once more in company.
const FULL_MAX: usize = 10_000;

/// Whether these may share a call with others.
pub(crate) fn fits(jobs: &[NewJob]) -> bool {
    jobs.len() < TOGETHER_MAX && is_plain(jobs)
}

type Answer = Result<Vec<Enqueued>, StoreError>;

/// Whose, and where.
type Line = (String, String);

/// Enqueues that wait for the next call.
pub(crate) struct Gather {
    waiting: Mutex<Waiting>,
    /// Who met a quota, and nothing was stored since.
    full: Mutex<HashSet<Line>>,
    alone: Semaphore,
}

impl Default for Gather {
    fn default() -> Self {
        Self { waiting: Mutex::default(), full: Mutex::default(), alone: Semaphore::new(ALONE) }
    }
}

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
        if self.gather().is_full(&jobs) {
            return self.enqueue_alone(&jobs).await;
        }
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
        if let [request] = requests.as_mut_slice() {
            let answer = self.enqueue_now(&request.jobs).await;
            self.gather().remember(&request.jobs, &answer);
            let _ = requests.into_iter().next().map(|request| request.reply.send(answer));
            return;
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
            Err(error) if met_a_lock(&error) => self.enqueue_past_lock(requests).await,
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

    /// Each request by itself, after a shared call that met a lock. Nothing of it was stored.
    async fn enqueue_past_lock(&self, requests: Vec<Request>) {
        let (mut locked, mut queues) = (Vec::new(), BTreeSet::new());
        for request in requests {
            match self.enqueue_on(Desk::Hasty, &request.jobs).await {
                Err(error) if met_a_lock(&error) => locked.push(request),
                answer => {
                    self.gather().remember(&request.jobs, &answer);
                    queues.extend(request.jobs.iter().map(|job| job.queue.to_string()));
                    let _ = request.reply.send(answer);
                }
            }
        }
        if !locked.is_empty() {
            let store = self.clone();
            tokio::spawn(async move { store.enqueue_each(locked).await });
        }
        // `enqueue_on` with `Desk::Hasty` sends no wake-up, so idle workers are notified here.
        if self.listener().is_some() {
            let queues = Vec::from_iter(queues);
            let _late_not_lost = self.call(Desk::Short, WAKE_IDLE, &[(&queues, Type::TEXT_ARRAY)]).await;
        }
    }

    /// Those of one queue and tenant together, and alone when that is refused too: who meets a full queue must not slow
    /// down the others.
    async fn enqueue_apart(&self, requests: Vec<Request>) {
        let mut groups: BTreeMap<Line, Vec<Request>> = BTreeMap::new();
        for request in requests {
            groups.entry(request.jobs.first().map(line).unwrap_or_default()).or_default().push(request);
        }
        if groups.len() == 1 {
            let store = self.clone();
            tokio::spawn(async move { store.enqueue_each(groups.into_values().flatten().collect()).await });
            return;
        }
        for group in groups.into_values() {
            Box::pin(self.enqueue_together(group)).await;
        }
    }

    async fn enqueue_each(&self, requests: Vec<Request>) {
        for request in requests {
            let answer = self.enqueue_alone(&request.jobs).await;
            let _ = request.reply.send(answer);
        }
    }

    /// Beside the flights, one behind the other.
    async fn enqueue_alone(&self, jobs: &[NewJob]) -> Answer {
        let deadline = self.options().deadline;
        let turn = tokio::time::timeout(deadline, self.gather().alone.acquire()).await;
        let _turn = turn.map_err(|_| late(deadline))?;
        let answer = self.enqueue_now(jobs).await;
        self.gather().remember(jobs, &answer);
        answer
    }
}

fn line(job: &NewJob) -> Line {
    (job.queue.to_string(), job.tenant.to_string())
}

impl Gather {
    /// What goes with the next call; nothing is left to do when it is empty, and then the flight is over.
    fn next(&self) -> Vec<Request> {
        let mut waiting = self.lock();
        let (mut jobs, mut bytes) = (0, 0);
        let fits = waiting.requests.iter().take_while(|request| {
            jobs += request.jobs.len();
            let fits = jobs <= TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX;
            bytes += request.jobs.iter().map(|job| job.payload.bytes()).sum::<usize>();
            fits
        });
        let many = fits.count();
        let next: Vec<Request> = waiting.requests.drain(..many).collect();
        waiting.flights -= u32::from(next.is_empty());
        next
    }

    /// Whether some of these would meet a quota, as far as is known.
    fn is_full(&self, jobs: &[NewJob]) -> bool {
        let full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        !full.is_empty() && jobs.iter().any(|job| full.contains(&line(job)))
    }

    /// Learns from what was said to an enqueue that was sent by itself.
    fn remember(&self, jobs: &[NewJob], answer: &Answer) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Err(StoreError::Full(_)) => {
                if full.len() >= FULL_MAX {
                    full.clear();
                }
                full.extend(jobs.iter().map(line));
            }
            Ok(_) if !full.is_empty() => {
                for job in jobs {
                    full.remove(&line(job));
                }
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
