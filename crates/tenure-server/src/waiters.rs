//! Claims that wait are on a list, one list for each queue, and share one wait and one poll.
//!
//! A thousand idle workers would otherwise look a thousand times where one look says it: there is nothing.
//!
//! ```text
//!   the store's word ─┐                    ┌─► the first on the list looks ──┬─ found something: the next one looks, too
//!   the waker's word ─┼─► a task a queue ──┘                                 └─ found nothing: nobody else would
//!   the poll         ─┘
//! ```
//!
//! Whoever comes joins first and looks then, so that nothing falls between the look and the wait; whoever has had its turn
//! joins again at the end before it looks. A turn that nobody takes to its end, because its claim has found something
//! elsewhere or its worker has hung up, goes to the next one. The task ends with the last one on its list.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tenure_core::QueueName;
use tenure_store::waker::woken;
use tenure_store::{Store, StoreError, Waker};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// The store is asked for wake-ups so often; the request lasts a little longer.
const PUSH_EVERY: Duration = Duration::from_secs(1);
/// After a look in vain the next one waits so long, however much is said: a flood is a hundred looks a second.
const AFTER_NOTHING: Duration = Duration::from_millis(10);

/// The lists of all queues that somebody waits for.
pub(crate) struct Waiters {
    store: Arc<dyn Store>,
    waker: Option<Arc<dyn Waker>>,
    poll_every: Duration,
    lists: Mutex<HashMap<QueueName, Weak<Waitlist>>>,
}

impl Waiters {
    pub(crate) fn new(store: Arc<dyn Store>, waker: Option<Arc<dyn Waker>>, poll_every: Duration) -> Self {
        Self { store, waker, poll_every, lists: Mutex::default() }
    }

    /// A place at the end of each queue's list.
    pub(crate) fn join(&self, queues: &[QueueName]) -> Seats {
        Seats(queues.iter().map(|queue| Seat::new(self.list(queue))).collect())
    }

    fn list(&self, queue: &QueueName) -> Arc<Waitlist> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.get(queue).and_then(Weak::upgrade) {
            return list;
        }
        lists.retain(|_, list| list.strong_count() > 0);
        let list = Arc::new(Waitlist::default());
        lists.insert(queue.clone(), Arc::downgrade(&list));
        let watch = Watch {
            list: Arc::downgrade(&list),
            queue: queue.clone(),
            store: Arc::clone(&self.store),
            waker: self.waker.as_ref().map(|waker| waker.waiter()),
            poll_every: self.poll_every,
            pushed: None,
        };
        let _first = list.watch.set(tokio::spawn(watch.run()).abort_handle());
        list
    }
}

/// Those who wait for one queue.
#[derive(Default)]
struct Waitlist {
    waiting: Mutex<VecDeque<oneshot::Sender<Turn>>>,
    watch: OnceLock<AbortHandle>,
}

impl Waitlist {
    fn join(&self) -> oneshot::Receiver<Turn> {
        let (turn, comes) = oneshot::channel();
        let mut waiting = self.lock();
        // Who has gone is not kept until its turn would have come.
        waiting.retain(|turn| !turn.is_closed());
        waiting.push_back(turn);
        comes
    }

    /// Lets one after the other look until somebody finds nothing; answers whether anybody found something.
    async fn serve(&self) -> bool {
        let mut found = false;
        loop {
            let Some(next) = self.lock().pop_front() else { return found };
            let (over, is_over) = oneshot::channel();
            if next.send(Turn(over)).is_err() {
                continue;
            }
            match is_over.await {
                Ok(true) => found = true,
                Ok(false) => return found,
                Err(_left_to_the_next) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<Turn>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waitlist {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.get() {
            watch.abort();
        }
    }
}

/// The right to look, now. Dropped, it is the next one's.
pub(crate) struct Turn(oneshot::Sender<bool>);

impl Turn {
    /// Says what the look came to.
    pub(crate) fn over(self, found: bool) {
        // Nobody asks any more when the last one goes.
        let _gone = self.0.send(found);
    }
}

/// A claim's places, one on each of its queues' lists, in their order.
pub(crate) struct Seats(Vec<Seat>);

struct Seat {
    list: Arc<Waitlist>,
    turn: oneshot::Receiver<Turn>,
}

impl Seat {
    fn new(list: Arc<Waitlist>) -> Self {
        let turn = list.join();
        Self { list, turn }
    }
}

impl Seats {
    /// Waits for a turn on any list, and joins that list again; answers which it was. May be dropped at any point.
    pub(crate) async fn turn(&mut self) -> (usize, Turn) {
        poll_fn(|cx| {
            for (at, seat) in self.0.iter_mut().enumerate() {
                if let Poll::Ready(turn) = Pin::new(&mut seat.turn).poll(cx) {
                    // Before the look that follows: what comes meanwhile is a turn again.
                    seat.turn = seat.list.join();
                    if let Ok(turn) = turn {
                        return Poll::Ready((at, turn));
                    }
                    // A word that is never said: the new place has to be looked at, too.
                    cx.waker().wake_by_ref();
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits for work in one queue, for all on its list.
struct Watch {
    list: Weak<Waitlist>,
    queue: QueueName,
    store: Arc<dyn Store>,
    waker: Option<Box<dyn Waker>>,
    poll_every: Duration,
    pushed: Option<Instant>,
}

/// The store's word, on its way.
type Work = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

impl Watch {
    async fn run(mut self) {
        let mut work = self.listen();
        loop {
            // What came before the store knew that somebody waits woke nobody: the first turn is at once.
            let is_spent = if self.push().await { false } else { self.wait(&mut work).await };
            if is_spent {
                work = self.listen();
            }
            // Begun before anybody looks, so that a word after the look is heard; one that is there already is met by it.
            if poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await {
                work = self.listen();
            }
            let Some(list) = self.list.upgrade() else { return };
            let found = list.serve().await;
            drop(list);
            if !found {
                sleep(AFTER_NOTHING).await;
            }
        }
    }

    /// Waits until somebody should look; answers whether the store's word is spent.
    async fn wait(&mut self, work: &mut Work) -> bool {
        // A gate that was found closed may open sooner.
        let opens = self.store.opens_in(&self.queue).unwrap_or(self.poll_every);
        let poll = Instant::now() + self.poll_every.min(opens);
        let mut is_deaf = false;
        loop {
            tokio::select! {
                heard = &mut *work, if !is_deaf => match heard {
                    Ok(()) => return true,
                    // A lost connection wakes nobody; then there is the poll.
                    Err(error) => {
                        tracing::debug!(error = %error, "waiting for work failed");
                        is_deaf = true;
                    }
                },
                () = woken(self.waker.as_deref()) => return is_deaf,
                () = sleep_until(poll) => return is_deaf,
                () = sleep(PUSH_EVERY) => {
                    self.push().await;
                }
            }
        }
    }

    /// Says that somebody is idle, unless that was said lately; answers whether it was said for the first time.
    async fn push(&mut self) -> bool {
        let first = self.pushed.is_none();
        if self.pushed.is_some_and(|at| at.elapsed() < PUSH_EVERY) {
            return false;
        }
        self.pushed = Some(Instant::now());
        if let Err(error) = self.store.push_idle(&self.queue).await {
            tracing::debug!(error = %error, "asking for wake-ups failed");
        }
        first
    }

    fn listen(&self) -> Work {
        let (store, queues) = (Arc::clone(&self.store), [self.queue.clone()]);
        Box::pin(async move { store.wait_for_work(&queues).await })
    }
}

#[cfg(test)]
mod tests {
    use tenure_sqlite::{SqliteOptions, SqliteStore};
    use tenure_store::waker::ManualWaker;

    use super::*;

    /// Nothing is awaited here, so that no task runs in between.
    #[tokio::test]
    async fn those_who_wait_for_a_queue_share_one_wait_which_goes_with_the_last() {
        let store = Arc::new(SqliteStore::in_memory(SqliteOptions::default()).expect("a store"));
        let waker = ManualWaker::default();
        let waiters = Waiters::new(store, Some(Arc::new(waker.clone())), Duration::from_secs(1));
        let queues = ["mail", "default"].map(|name| name.parse::<QueueName>().expect("a name"));
        let (one, other) = (waiters.join(&queues), waiters.join(&queues[1..]));
        assert_eq!(waker.waiters(), 2, "one for each queue");
        drop(one);
        let again = waiters.join(&queues);
        assert_eq!(waker.waiters(), 3, "of the queue that nobody waited for");
        drop((other, again));
        assert!(waiters.lists.lock().expect("not poisoned").values().all(|list| list.upgrade().is_none()));
    }

    /// Takes a turn and says what it came to.
    async fn look(comes: oneshot::Receiver<Turn>, found: bool) {
        let turn = tokio::time::timeout(Duration::from_secs(60), comes).await.expect("its turn comes");
        turn.expect("a turn").over(found);
    }

    #[tokio::test]
    async fn one_looks_and_the_next_when_it_found_something() {
        let list = Waitlist::default();
        let (first, second, mut third) = (list.join(), list.join(), list.join());
        let (found, (), ()) = tokio::join!(list.serve(), look(first, true), look(second, false));
        assert!(found);
        assert!(third.try_recv().is_err(), "nobody looks where somebody found nothing");
        let (found, ()) = tokio::join!(list.serve(), look(third, false));
        assert!(!found);
        assert!(!list.serve().await, "nobody is left");
    }

    #[tokio::test]
    async fn a_turn_that_is_not_taken_to_its_end_is_the_next_ones() {
        let list = Waitlist::default();
        let (gone, going, last) = (list.join(), list.join(), list.join());
        drop(gone);
        let going = async { drop(going.await.expect("a turn")) };
        let (found, (), ()) = tokio::join!(list.serve(), going, look(last, true));
        assert!(found);
    }

    #[tokio::test]
    async fn a_turn_on_any_list_is_taken_and_the_list_joined_again() {
        let lists = [Arc::new(Waitlist::default()), Arc::new(Waitlist::default())];
        let mut seats = Seats(lists.iter().map(|list| Seat::new(Arc::clone(list))).collect());
        for (at, list) in [(1, &lists[1]), (1, &lists[1]), (0, &lists[0])] {
            let taken = async {
                let (which, turn) = seats.turn().await;
                turn.over(false);
                which
            };
            assert_eq!(tokio::join!(list.serve(), taken), (false, at));
        }
        drop(seats);
        assert!(!lists[0].serve().await && lists[0].lock().is_empty(), "who has gone gets no turn");
    }
}
