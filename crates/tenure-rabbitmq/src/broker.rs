//! [`Broker`]: the handle. Nothing it does waits for a broker, but [`woken`](Broker::woken), which is there to wait.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::message::Delivery;
use tenure_core::{Invalid, JobId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::keeper;
use crate::message;
use crate::options::Options;

/// Jobs that wait to be published. When more come than the broker takes, polling finds them.
const LINE_MAX: usize = 1_024;
/// A waiter is woken at most this often: a flood of messages is a hundred claims a second, and not a thousand.
const WAKE_EVERY: Duration = Duration::from_millis(10);
/// How long the task may take to end before it is no longer waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A broker, whether it is there or not. Clones share the connection; each is a waiter of its own.
///
/// When the last one is dropped the connection ends. [`close`](Self::close) ends it at once, for all of them.
pub struct Broker {
    inner: Arc<Inner>,
    /// The number of the last wake-up that this waiter was given.
    seen: AtomicU64,
    /// When it was given.
    woken_at: Mutex<Option<Instant>>,
}

struct Inner {
    shared: Arc<Shared>,
    publishes: bool,
    url: String,
    line: mpsc::Sender<JobId>,
    // Says stop when it changes, and when it is dropped.
    stop: watch::Sender<bool>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// What came and went, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrokerCounts {
    /// Messages that came, malformed ones too.
    pub received: u64,
    /// Messages that were no wake-ups: they were ignored.
    pub malformed: u64,
    /// Jobs that were handed to the broker. It confirms nothing.
    pub published: u64,
    /// Jobs that were not published, because the broker was away or slow: polling finds them.
    pub dropped: u64,
    /// How often the broker was there again after it had been lost.
    pub reconnects: u64,
}

impl Broker {
    /// Checks the options and starts to connect, in a task of the runtime it is called in. Whether a broker is there
    /// makes no difference: it is tried again until it is.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(options: Options) -> Result<Self, Invalid> {
        let target = options.check()?;
        let shared = Arc::new(Shared::new());
        let (line, jobs) = mpsc::channel(LINE_MAX);
        let (stop, stopped) = watch::channel(false);
        let (publishes, url) = (target.options.publish, target.shown.clone());
        let keeper = tokio::spawn(keeper::keep(target, Arc::clone(&shared), jobs, stopped));
        let inner = Inner { shared, publishes, url, line, stop, keeper: Mutex::new(Some(keeper)) };
        Ok(Self::waiter(Arc::new(inner)))
    }

    /// Waits until a message came, or the broker came back, since this waiter was last woken; a new one counts from its
    /// clone. Any number of messages is one wake-up, and wake-ups are at least 10 ms apart.
    ///
    /// May be dropped at any point, as `select!` does: a wake-up that was not given yet stays. While the broker is away it
    /// waits, and after [`close`](Self::close) for ever, so there is always a poll beside it.
    pub async fn woken(&self) {
        let seen = self.seen.load(Ordering::SeqCst);
        let mut wakes = self.inner.shared.wakes.subscribe();
        if wakes.wait_for(|number| *number != seen).await.is_err() {
            std::future::pending::<()>().await;
        }
        let last = *lock(&self.woken_at);
        if let Some(last) = last {
            sleep_until(last + WAKE_EVERY).await;
        }
        // What came meanwhile is part of it.
        self.seen.store(*wakes.borrow(), Ordering::SeqCst);
        *lock(&self.woken_at) = Some(Instant::now());
    }

    /// Says that this job was committed. Never waits: when the broker is away or does not keep up the word is dropped
    /// and counted. Does nothing unless the options say `publish`.
    pub fn publish(&self, job: JobId) {
        if !self.inner.publishes {
            return;
        }
        if !self.is_up() || self.inner.line.try_send(job).is_err() {
            self.inner.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether everything is declared and messages would come.
    pub fn is_up(&self) -> bool {
        self.inner.shared.up.load(Ordering::SeqCst)
    }

    /// What came and went.
    pub fn counts(&self) -> BrokerCounts {
        let shared = &self.inner.shared;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        BrokerCounts {
            received: of(&shared.received),
            malformed: of(&shared.malformed),
            published: of(&shared.published),
            dropped: of(&shared.dropped),
            reconnects: of(&shared.times_up).saturating_sub(1),
        }
    }

    /// Publishes what still waits, says goodbye and ends, for all clones; within a few seconds, whatever the broker does.
    pub async fn close(self) {
        self.inner.stop.send_replace(true);
        let keeper = lock(&self.inner.keeper).take();
        if let Some(mut keeper) = keeper
            && timeout(CLOSE_TIMEOUT, &mut keeper).await.is_err()
        {
            keeper.abort();
        }
    }

    fn waiter(inner: Arc<Inner>) -> Self {
        let seen = AtomicU64::new(*inner.shared.wakes.borrow());
        Self { inner, seen, woken_at: Mutex::new(None) }
    }
}

impl Clone for Broker {
    fn clone(&self) -> Self {
        Self::waiter(Arc::clone(&self.inner))
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Broker");
        shown.field("url", &self.inner.url).field("is_up", &self.is_up()).field("counts", &self.counts());
        shown.finish_non_exhaustive()
    }
}

/// What the task and the handles share.
pub(crate) struct Shared {
    /// The number of the last wake-up.
    wakes: watch::Sender<u64>,
    up: AtomicBool,
    times_up: AtomicU64,
    received: AtomicU64,
    malformed: AtomicU64,
    published: AtomicU64,
    dropped: AtomicU64,
}

impl Shared {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            wakes: watch::Sender::new(0),
            up: AtomicBool::new(false),
            times_up: zero(),
            received: zero(),
            malformed: zero(),
            published: zero(),
            dropped: zero(),
        }
    }

    /// Messages come from now on. Those of before are lost, so everybody looks once.
    pub(crate) fn come_up(&self) {
        self.times_up.fetch_add(1, Ordering::Relaxed);
        self.up.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn go_down(&self) {
        self.up.store(false, Ordering::SeqCst);
    }

    /// Counts a message and wakes if it is one to wake for; answers its number, to acknowledge it with.
    pub(crate) fn hear(&self, delivery: &Delivery) -> u64 {
        self.received.fetch_add(1, Ordering::Relaxed);
        if message::is_wake_up(&delivery.data) {
            self.wake();
        } else {
            self.malformed.fetch_add(1, Ordering::Relaxed);
        }
        delivery.delivery_tag
    }

    /// A job was taken from the line.
    pub(crate) fn take(&self) -> Taken<'_> {
        Taken { shared: self, published: false }
    }

    fn wake(&self) {
        self.wakes.send_modify(|number| *number += 1);
    }
}

/// A job that is on its way out: counted as dropped unless it gets there.
pub(crate) struct Taken<'a> {
    shared: &'a Shared,
    published: bool,
}

impl Taken<'_> {
    pub(crate) fn published(mut self) {
        self.published = true;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let count = if self.published { &self.shared.published } else { &self.shared.dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
