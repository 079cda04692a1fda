//! A machine: everything one worker process does goes through it, so that it can stand still or be gone as a whole.
//!
//! The worker hands each of its tasks to its [`Machine`]. A task that is hosted here is polled only while the machine is
//! up. Frozen, it stays as it is: timers run out and replies arrive meanwhile, and nobody looks, as under SIGSTOP. Gone,
//! it is dropped where it stands, as under `kill -9`. What was sent before is on the network's side and happens anyway.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tenure_worker::machine::{Machine, Task};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::world::lock;

/// A machine with one worker on it. Clones are the same machine.
#[derive(Clone)]
pub(crate) struct Node(Arc<Inner>);

struct Inner {
    name: String,
    state: Mutex<State>,
    stop: Notify,
}

struct State {
    condition: Condition,
    /// Who is to be woken when the condition changes, by the number of the task.
    tasks: BTreeMap<u64, Waker>,
    hosted: u64,
    thawed_at: Option<Instant>,
    cut: Option<(Cut, Instant)>,
    stop_told_at: Option<Instant>,
    /// It was frozen or crashed: nothing it does after it was told to stop says anything about the worker's manners.
    is_troubled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Up,
    Frozen,
    Gone,
}

/// What does not get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Calls,
    Replies,
    Renewals,
}

impl Node {
    pub(crate) fn new(name: String) -> Self {
        let state = State {
            condition: Condition::Up,
            tasks: BTreeMap::new(),
            hosted: 0,
            thawed_at: None,
            cut: None,
            stop_told_at: None,
            is_troubled: false,
        };
        Self(Arc::new(Inner { name, state: Mutex::new(state), stop: Notify::new() }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn is_up(&self) -> bool {
        self.lock().condition == Condition::Up
    }

    /// Whether it came back to life in this very moment: nothing on it had a chance to look at the clock.
    pub(crate) fn thaws_now(&self) -> bool {
        self.lock().thawed_at == Some(Instant::now())
    }

    /// Whether it ever stood still.
    pub(crate) fn was_frozen(&self) -> bool {
        self.lock().thawed_at.is_some()
    }

    /// From now on none of its tasks is polled.
    pub(crate) fn freeze(&self) {
        let mut state = self.lock();
        if state.condition == Condition::Up {
            state.condition = Condition::Frozen;
            state.is_troubled = true;
        }
    }

    /// Up again; answers the tasks to be woken.
    pub(crate) fn thaw(&self) -> Vec<Waker> {
        let mut state = self.lock();
        if state.condition != Condition::Frozen {
            return Vec::new();
        }
        state.condition = Condition::Up;
        state.thawed_at = Some(Instant::now());
        std::mem::take(&mut state.tasks).into_values().collect()
    }

    /// Gone, and everything on it.
    pub(crate) fn destroy(&self) {
        let tasks = {
            let mut state = self.lock();
            state.condition = Condition::Gone;
            state.is_troubled = true;
            std::mem::take(&mut state.tasks)
        };
        tasks.into_values().for_each(Waker::wake);
    }

    /// Some of what it sends, or hears, is lost until then.
    pub(crate) fn cut_off(&self, what: Cut, until: Instant) {
        self.lock().cut = Some((what, until));
    }

    pub(crate) fn reconnect(&self) {
        self.lock().cut = None;
    }

    pub(crate) fn cut(&self) -> Option<Cut> {
        self.lock().cut.filter(|(_, until)| Instant::now() < *until).map(|(what, _)| what)
    }

    /// Tells the worker to stop, as SIGTERM does.
    pub(crate) fn tell_to_stop(&self) {
        self.lock().stop_told_at.get_or_insert_with(Instant::now);
        self.0.stop.notify_one();
    }

    pub(crate) async fn told_to_stop(&self) {
        self.0.stop.notified().await;
    }

    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.lock().stop_told_at.is_some()
    }

    /// When it was told to stop, if it had a fair chance to.
    pub(crate) fn stop_told_at(&self) -> Option<Instant> {
        let state = self.lock();
        state.stop_told_at.filter(|_| !state.is_troubled)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl Machine for Node {
    fn host(&self, task: Task) -> Task {
        let mut state = self.lock();
        state.hosted += 1;
        let number = state.hosted;
        drop(state);
        Box::pin(Hosted { node: self.clone(), number, task: Some(task) })
    }
}

struct Hosted {
    node: Node,
    number: u64,
    task: Option<Task>,
}

impl Future for Hosted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.node.lock();
        let condition = state.condition;
        if condition != Condition::Gone {
            state.tasks.insert(self.number, cx.waker().clone());
        }
        drop(state);
        match condition {
            Condition::Frozen => Poll::Pending,
            Condition::Gone => {
                self.task = None;
                Poll::Ready(())
            }
            Condition::Up => match &mut self.task {
                Some(task) => task.as_mut().poll(cx),
                None => Poll::Ready(()),
            },
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.node.lock().tasks.remove(&self.number);
    }
}
