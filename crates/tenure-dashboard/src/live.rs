//! Who is told that a page is out of date.
//!
//! One look at the journal every second, however many pages are open, and none while there is none. A browser hears
//! `changed` when there is a new entry, and `tick` every few seconds, because jobs that are stored leave none; then it
//! fetches its page again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use tenure_core::name::TenantName;
use tenure_server::App;
use tenure_store::journal::JournalFilter;
use tokio::sync::{broadcast, mpsc, watch};

use crate::desk::Desk;
use crate::person::Person;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks from one `tick` to the next.
const TICK_LOOKS: u32 = 4;
/// A page listens for so long; then it asks again, and has to be somebody's yet.
const LISTENED_MAX: Duration = Duration::from_secs(300);
/// Most event streams at once; pages beyond it look by themselves now and then.
const STREAMS_MAX: usize = 1_000;
/// Most event streams of one tenant at once.
const STREAMS_OF_TENANT_MAX: usize = 100;
/// Most event streams of all tenants together: the rest is left for operators.
const STREAMS_OF_TENANTS_MAX: usize = 900;

/// Tells pages. Clones share everything.
#[derive(Clone)]
pub(crate) struct Live {
    app: App,
    told: broadcast::Sender<&'static str>,
    streams: Streams,
    /// Whether somebody looks at the journal for them.
    looks: watch::Sender<bool>,
}

impl Live {
    pub(crate) fn new(app: App) -> Self {
        Self { app, told: broadcast::Sender::new(16), streams: Streams::default(), looks: watch::Sender::new(false) }
    }

    /// Looks at the journal until nobody listens.
    fn begin(&self) {
        let is_first = self.looks.send_if_modified(|looks| !std::mem::replace(looks, true));
        if is_first {
            tokio::spawn(self.clone().look());
        }
    }

    async fn look(self) {
        let mut stopping = self.app.stopping();
        let mut newest = None;
        for looks in 1_u32.. {
            let stopped = tokio::time::timeout(LOOK_EVERY, stopping.wait_for(|stopping| *stopping)).await.is_ok();
            if stopped || self.told.receiver_count() == 0 {
                break;
            }
            let filter = JournalFilter { limit: 1, ..JournalFilter::default() };
            // A store that does not answer has nothing new; its pages say so themselves.
            let Ok(found) = self.app.store().list_journal(&filter).await else { continue };
            let last = found.rows.first().map(|row| row.id);
            if last != newest.replace(last).flatten() {
                let _nobody = self.told.send("changed");
            }
            if looks.is_multiple_of(TICK_LOOKS) {
                let _nobody = self.told.send("tick");
            }
        }
        self.looks.send_replace(false);
        // Somebody came while this one was leaving.
        if self.told.receiver_count() > 0 && !*self.app.stopping().borrow() {
            self.begin();
        }
    }
}

/// `GET /live`: server-sent events.
pub(crate) async fn listen(State(desk): State<Desk>, person: Person) -> Response {
    let live = desk.live;
    let Some(open) = live.streams.open(person.caller.tenant.as_ref()) else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let mut told = live.told.subscribe();
    live.begin();
    let mut stopping = live.app.stopping();
    let (send, receive) = mpsc::channel(1);
    // What happens to others is not a tenant's to know, not even that something does.
    let hears_all = person.caller.tenant.is_none();
    let over = tokio::time::Instant::now() + LISTENED_MAX;
    tokio::spawn(async move {
        let _open = open;
        let mut next = Some("hello");
        while let Some(word) = next {
            if (hears_all || word != "changed")
                && send.send(Bytes::from(format!("retry: 3000\nevent: {word}\ndata: {word}\n\n"))).await.is_err()
            {
                return;
            }
            next = tokio::select! {
                word = told.recv() => match word {
                    Ok(word) => Some(word),
                    // It missed some: all it has to know is that something happened.
                    Err(broadcast::error::RecvError::Lagged(_)) => Some("changed"),
                    Err(broadcast::error::RecvError::Closed) => None,
                },
                () = send.closed() => None,
                () = tokio::time::sleep_until(over) => None,
                _ = stopping.wait_for(|stopping| *stopping) => None,
            };
        }
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(Events(receive))).into_response()
}

/// Event streams that are open, by tenant. Clones share the count.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<HashMap<Option<TenantName>, usize>>>);

impl Streams {
    /// Counts one more stream of a tenant, or of operators; `None` when that would be too many.
    fn open(&self, tenant: Option<&TenantName>) -> Option<OpenStream> {
        let mut counts = self.counts();
        let of_all: usize = counts.values().sum();
        let of_operators = counts.get(&None).copied().unwrap_or(0);
        let of_this = counts.get(&tenant.cloned()).copied().unwrap_or(0);
        let is_too_many_of_tenants =
            of_this >= STREAMS_OF_TENANT_MAX || of_all - of_operators >= STREAMS_OF_TENANTS_MAX;
        if of_all >= STREAMS_MAX || tenant.is_some() && is_too_many_of_tenants {
            return None;
        }
        *counts.entry(tenant.cloned()).or_default() += 1;
        Some(OpenStream { streams: self.clone(), tenant: tenant.cloned() })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Option<TenantName>, usize>> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event stream that is open; counted until it is dropped.
struct OpenStream {
    streams: Streams,
    tenant: Option<TenantName>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.counts();
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

struct Events(mpsc::Receiver<Bytes>);

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantName {
        name.parse().expect("a name")
    }

    #[test]
    fn streams_of_one_tenant_leave_room_for_others_and_for_operators() {
        let (streams, hostile) = (Streams::default(), tenant("hostile"));
        let held: Vec<_> = (0..STREAMS_MAX).filter_map(|_| streams.open(Some(&hostile))).collect();
        assert_eq!(held.len(), STREAMS_OF_TENANT_MAX);
        assert!(streams.open(Some(&tenant("other"))).is_some());
        let tenants: Vec<_> = (0..20).map(|n| tenant(&format!("t{n}"))).collect();
        let many: Vec<_> =
            tenants.iter().flat_map(|name| (0..STREAMS_MAX).filter_map(|_| streams.open(Some(name)))).collect();
        assert_eq!(held.len() + many.len(), STREAMS_OF_TENANTS_MAX);
        let operators: Vec<_> = (0..STREAMS_MAX).filter_map(|_| streams.open(None)).collect();
        assert_eq!(operators.len(), STREAMS_MAX - STREAMS_OF_TENANTS_MAX);
        drop(held);
        assert!(streams.open(Some(&hostile)).is_some(), "a stream that is closed makes room");
        drop((many, operators));
        assert_eq!(streams.counts().len(), 0, "closed streams leave nothing behind");
    }
}
