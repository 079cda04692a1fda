//! Claims that wait stand in line, one line for each queue, and share one wait and one poll.
//!
//! A thousand idle workers would otherwise look a thousand times where one look says it: there is nothing.
//!
//! ```text
//!   the store's word ─┐                    ┌─► first in line: looks ──┬─ found something: the next one looks, too
//!   the waker's word ─┼─► a task a queue ──┘                          └─ found nothing: nobody else would
//!   the poll         ─┘
//! ```
//!
//! Whoever comes joins first and looks then, so that nothing falls between the look and the wait; whoever has had its turn
//! joins again at the end before it looks. A turn that nobody takes to its end, because its claim has found something
//! elsewhere or its worker has hung up, goes to the next one. The task ends with the last one in line.

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

/// The lines of all queues that somebody waits for.
pub(crate) struct Lines {
    store: Arc<dyn Store>,
    waker: Option<Arc<dyn Waker>>,
    poll_every: Duration,
    lines: Mutex<HashMap<QueueName, Weak<Line>>>,
}

impl Lines {
    pub(crate) fn new(store: Arc<dyn Store>, waker: Option<Arc<dyn Waker>>, poll_every: Duration) -> Self {
        Self { store, waker, poll_every, lines: Mutex::default() }
    }

    /// A place at the end of each queue's line.
    pub(crate) fn join(&self, queues: &[QueueName]) -> Seats {
        Seats(queues.iter().map(|queue| Seat::new(self.line(queue))).collect())
    }

    fn line(&self, queue: &QueueName) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(queue).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line::default());
        lines.insert(queue.clone(), Arc::downgrade(&line));
        let watch = Watch {
            line: Arc::downgrade(&line),
            queue: queue.clone(),
            store: Arc::clone(&self.store),
            waker: self.waker.as_ref().map(|waker| waker.waiter()),
            poll_every: self.poll_every,
            pushed: None,
        };
        let _first = line.watch.set(tokio::spawn(watch.run()).abort_handle());
        line
    }
}

/// Those who wait for one queue.
#[derive(Default)]
struct Line {
    waiting: Mutex<VecDeque<oneshot::Sender<Turn>>>,
    watch: OnceLock<AbortHandle>,
}

impl Line {
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

impl Drop for Line {
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

/// A claim's places, one in each of its queues' lines, in their order.
pub(crate) struct Seats(Vec<Seat>);

struct Seat {
    line: Arc<Line>,
    turn: oneshot::Receiver<Turn>,
}

impl Seat {
    fn new(line: Arc<Line>) -> Self {
        let turn = line.join();
        Self { line, turn }
    }
}

impl Seats {
    /// Waits for a turn in any line, and joins that line again; answers which it was. May be dropped at any point.
    pub(crate) async fn turn(&mut self) -> (usize, Turn) {
        poll_fn(|cx| {
            for (at, seat) in self.0.iter_mut().enumerate() {
                if let Poll::Ready(turn) = Pin::new(&mut seat.turn).poll(cx) {
                    // Before the look that follows: what comes meanwhile is a turn again.
                    seat.turn = seat.line.join();
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

/// Waits for work in one queue, for all of its line.
struct Watch {
    line: Weak<Line>,
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
            let Some(line) = self.line.upgrade() else { return };
            let found = line.serve().await;
            drop(line);
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
    use super::*;

    /// Takes a turn and says what it came to.
    async fn look(comes: oneshot::Receiver<Turn>, found: bool) {
        let turn = tokio::time::timeout(Duration::from_secs(60), comes).await.expect("its turn comes");
        turn.expect("a turn").over(found);
    }

    #[tokio::test]
    async fn one_looks_and_the_next_when_it_found_something() {
        let line = Line::default();
        let (first, second, mut third) = (line.join(), line.join(), line.join());
        let (found, (), ()) = tokio::join!(line.serve(), look(first, true), look(second, false));
        assert!(found);
        assert!(third.try_recv().is_err(), "nobody looks where somebody found nothing");
        let (found, ()) = tokio::join!(line.serve(), look(third, false));
        assert!(!found);
        assert!(!line.serve().await, "nobody is left");
    }

    #[tokio::test]
    async fn a_turn_that_is_not_taken_to_its_end_is_the_next_ones() {
        let line = Line::default();
        let (gone, going, last) = (line.join(), line.join(), line.join());
        drop(gone);
        let going = async { drop(going.await.expect("a turn")) };
        let (found, (), ()) = tokio::join!(line.serve(), going, look(last, true));
        assert!(found);
    }

    #[tokio::test]
    async fn a_turn_in_any_line_is_taken_and_the_line_joined_again() {
        let lines = [Arc::new(Line::default()), Arc::new(Line::default())];
        let mut seats = Seats(lines.iter().map(|line| Seat::new(Arc::clone(line))).collect());
        for (at, line) in [(1, &lines[1]), (1, &lines[1]), (0, &lines[0])] {
            let taken = async {
                let (which, turn) = seats.turn().await;
                turn.over(false);
                which
            };
            assert_eq!(tokio::join!(line.serve(), taken), (false, at));
        }
        drop(seats);
        assert!(!lines[0].serve().await && lines[0].lock().is_empty(), "who has gone gets no turn");
    }
}
