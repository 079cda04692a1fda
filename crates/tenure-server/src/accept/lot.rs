//! Connections that are open, and which of them may be closed for the next one.
//!
//! A connection without a request under way (it has sent none yet, or was answered and waits for the next) costs its peer
//! nothing to keep open. Where all places are taken, the one that has been idle for the longest time gives its place to the
//! next connection. A connection with a request under way is never closed for another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

/// An answered connection keeps its place at least so long: its answer may still be on its way.
const ANSWERED_FOR: Duration = Duration::from_millis(250);

/// All places.
pub(super) struct Lot {
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// A connection became idle.
    idle: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By the number of the moment when it became idle: the first one has been idle for the longest time.
    idle: BTreeMap<u64, Idle>,
}

struct Idle {
    /// When it may be closed.
    from: Instant,
    close: Arc<Notify>,
}

/// The place of one connection, given back when it is dropped.
pub(super) struct Place {
    lot: Arc<Lot>,
    close: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
    /// Its number among the idle, while it is idle.
    number: Mutex<Option<u64>>,
}

impl Lot {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(places)), state: Mutex::default(), idle: Notify::new() })
    }

    /// A place for a connection that has just been accepted; where none is free, the longest idle one is closed.
    pub(super) async fn enter(self: &Arc<Self>) -> Arc<Place> {
        loop {
            let idle = self.idle.notified();
            let acquire = Arc::clone(&self.places).acquire_owned();
            let permit = match Arc::clone(&self.places).try_acquire_owned() {
                Ok(permit) => Some(permit),
                // The closed one may have got a request in the same moment: then another one is chosen.
                Err(_) if self.close_idle() => timeout(ANSWERED_FOR, acquire).await.ok().and_then(Result::ok),
                Err(_) => tokio::select! {
                    permit = acquire => permit.ok(),
                    () = idle => None,
                    () = sleep(ANSWERED_FOR) => None,
                },
            };
            if let Some(permit) = permit {
                let place =
                    Place { lot: Arc::clone(self), close: Arc::default(), _permit: permit, number: Mutex::default() };
                place.set_idle(Duration::ZERO);
                return Arc::new(place);
            }
        }
    }

    /// Closes the connection that has been idle for the longest time, if there is one.
    pub(super) fn close_idle(&self) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        let Some(number) = state.idle.iter().find(|(_, idle)| idle.from <= now).map(|(number, _)| *number) else {
            return false;
        };
        if let Some(idle) = state.idle.remove(&number) {
            idle.close.notify_one();
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Until the place is needed for another connection.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.number().is_none()
    }

    /// A request has begun: the connection keeps its place until [`Answered`] is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Answered {
        self.set_busy();
        Answered(Arc::clone(self))
    }

    fn set_busy(&self) {
        if let Some(number) = self.number().take() {
            self.lot.state().idle.remove(&number);
        }
    }

    fn set_idle(&self, keeps: Duration) {
        let mut number = self.number();
        let mut state = self.lot.state();
        state.next += 1;
        let (at, from) = (state.next, Instant::now() + keeps);
        state.idle.insert(at, Idle { from, close: Arc::clone(&self.close) });
        *number = Some(at);
        drop(state);
        self.lot.idle.notify_one();
    }

    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.set_busy();
    }
}

/// A request under way; when it is dropped the connection is idle again.
pub(super) struct Answered(Arc<Place>);

impl Answered {
    /// The same answer, whose last byte ends the request.
    pub(super) fn by(self, response: Response) -> Response {
        response.map(|body| Body::new(Tracked { body, _answered: self }))
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.0.set_idle(ANSWERED_FOR);
    }
}

/// A body that keeps its connection busy until it is sent.
struct Tracked {
    body: Body,
    _answered: Answered,
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
