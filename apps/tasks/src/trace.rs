//! [`Ear`]: hears every step of the worker loops in this process, from the events that the library traces.
//!
//! The library tells each step as an event of level trace: `loop` with `from` and `to`, and `slot` with the task's id
//! besides. Nothing else is listened to, so the log stays as quiet as it was.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kit::BoxError;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::state::State;

/// Where the library traces its steps.
const TARGET: &str = "tenure_worker";
/// Most steps that are kept; the oldest go first.
const STEPS_MAX: usize = 100_000;

/// A step as it was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// Whose it is: of the loop, or of a task.
    pub of: Of,
    /// When, by the clock of the runtime that took it.
    pub at: Instant,
}

/// Whose step it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// The worker's loop.
    Loop {
        /// Where it stood.
        from: State,
        /// Where it stands.
        to: State,
    },
    /// One task's stay in its slot.
    Task {
        /// Its id.
        task: String,
        /// Where it stood; `None`: its slot was free.
        from: Option<State>,
        /// Where it stands; `None`: its slot is free again.
        to: Option<State>,
    },
}

/// What was heard so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Steps(Arc<Mutex<Vec<Heard>>>);

impl Steps {
    /// All of it, in the order it happened.
    pub fn heard(&self) -> Vec<Heard> {
        self.lock().clone()
    }

    /// Waits until what was heard is as wanted; `what` is named when it never is.
    pub async fn until(&self, what: &str, is_so: impl Fn(&[Heard]) -> bool) -> Result<(), BoxError> {
        kit::until(what, async || Ok(is_so(&self.lock()).then_some(()))).await
    }

    fn add(&self, heard: Heard) {
        let mut all = self.lock();
        if all.len() >= STEPS_MAX {
            all.drain(..STEPS_MAX / 2);
        }
        all.push(heard);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A layer that hears steps and gives each to somebody.
pub struct Ear(Box<dyn Fn(Heard) + Send + Sync>);

impl Ear {
    /// One that keeps what it hears.
    pub fn keeping(steps: &Steps) -> Self {
        let steps = steps.clone();
        Self(Box::new(move |heard| steps.add(heard)))
    }

    /// One that tells what it hears.
    pub fn telling(tell: impl Fn(Heard) + Send + Sync + 'static) -> Self {
        Self(Box::new(tell))
    }

    /// Whether an event can be a step: for the filter of whoever uses this layer beside others.
    pub fn hears(metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::TRACE && metadata.target().starts_with(TARGET)
    }
}

impl<S: Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !Self::hears(event.metadata()) {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        if let Some(of) = said.step() {
            (self.0)(Heard { of, at: Instant::now() });
        }
    }
}

/// The fields of an event.
#[derive(Default)]
struct Said {
    message: String,
    from: String,
    to: String,
    task: String,
}

impl Said {
    fn step(self) -> Option<Of> {
        match self.message.as_str() {
            "loop" => Some(Of::Loop { from: State::of_loop(&self.from)?, to: State::of_loop(&self.to)? }),
            "slot" => {
                Some(Of::Task { task: self.task, from: State::of_slot(&self.from), to: State::of_slot(&self.to) })
            }
            _ => None,
        }
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let place = match field.name() {
            "message" => &mut self.message,
            "from" => &mut self.from,
            "to" => &mut self.to,
            "job.id" => &mut self.task,
            _ => return,
        };
        *place = format!("{value:?}");
    }
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |state: &Option<State>, free: State| state.unwrap_or(free);
        match self {
            Self::Loop { from, to } => write!(f, "worker  {from:<16} -> {to}"),
            // A slot is taken by a claim, and free again when the loop may look for more.
            Self::Task { task, from, to } => {
                let (from, to) = (shown(from, State::Claiming), shown(to, State::Polling));
                write!(f, "task    {from:<16} -> {to:<16} {task}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn steps_are_heard_and_nothing_else_is() {
        let steps = Steps::default();
        let subscriber = tracing_subscriber::registry().with(Ear::keeping(&steps));
        tracing::subscriber::with_default(subscriber, || {
            tracing::trace!(target: "tenure_worker::looper", from = "idle", to = "connecting", "loop");
            tracing::trace!(target: "tenure_worker::slot", { job.id = 7, from = "free", to = "processing" }, "slot");
            tracing::trace!(target: "tenure_worker::slot", { job.id = 7, from = "reporting_failure", to = "free" }, "slot");
            tracing::trace!(target: "tenure_worker::looper", from = "idle", to = "nowhere", "loop");
            tracing::debug!(target: "tenure_worker::looper", from = "idle", to = "connecting", "loop");
            tracing::trace!(target: "somebody", from = "idle", to = "connecting", "loop");
        });
        let shown: Vec<String> = steps.heard().iter().map(|heard| heard.of.to_string()).collect();
        assert_eq!(
            shown,
            [
                "worker  Idle             -> Connecting",
                "task    Claiming         -> Processing       7",
                "task    ReportingFailure -> Polling          7",
            ]
        );
    }
}
