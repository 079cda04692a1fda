//! The simulated outside: a receiver of webhooks that checks signatures, remembers what it got, and fails when told to.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, Method, StatusCode};
use kit::{Site, Traffic, Valve};
use tenure::webhooks::Secret;
use tenure::webhooks::verify::verify_body;

/// Most deliveries that are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// A receiver, open until it is dropped.
pub struct Receiver {
    /// Where it is.
    pub site: Site,
    desk: Arc<Desk>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// `POST`.
    pub method: String,
    /// Headers, by their names in small letters.
    pub headers: BTreeMap<String, String>,
    /// The raw body.
    pub body: Vec<u8>,
    /// Whether `X-BPC-Signature` was made with one of the secrets over this body.
    pub is_genuine: bool,
    /// What it was answered.
    pub status: u16,
}

#[derive(Default)]
struct Memory {
    /// What the next calls are answered instead of 200.
    faults: VecDeque<u16>,
    /// What the first attempts of each delivery are answered, and how many attempts of each there were.
    of_each: Vec<u16>,
    attempts: BTreeMap<String, usize>,
    received: Vec<Received>,
    secrets: Vec<Secret>,
}

struct Desk {
    traffic: Traffic,
    valve: Valve,
    tell: bool,
    memory: Mutex<Memory>,
}

impl Receiver {
    /// Opens one on a free port.
    pub async fn open() -> std::io::Result<Self> {
        Self::open_at(([127, 0, 0, 1], 0).into(), false).await
    }

    /// Opens one at an address; `tell` prints what comes.
    pub async fn open_at(address: SocketAddr, tell: bool) -> std::io::Result<Self> {
        let (traffic, valve) = (Traffic::default(), Valve::opened());
        let desk = Arc::new(Desk { traffic, valve, tell, memory: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        Ok(Self { site: Site::open_at(address, router).await?, desk })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("{}/webhooks/bpc", self.site.url())
    }

    /// Accepts signatures of this secret, beside those it knows.
    pub fn trust(&self, secret: Secret) {
        self.desk.memory().secrets.push(secret);
    }

    /// Answers the next calls with these statuses, one each.
    pub fn fail_next(&self, statuses: impl IntoIterator<Item = u16>) {
        self.desk.memory().faults.extend(statuses);
    }

    /// Answers the first attempts of each delivery with these statuses, one each.
    pub fn fail_each(&self, statuses: Vec<u16>) {
        self.desk.memory().of_each = statuses;
    }

    /// Shut, nobody is answered.
    pub fn valve(&self) -> &Valve {
        &self.desk.valve
    }

    /// Its calls, by the type of their event.
    pub fn traffic(&self) -> &Traffic {
        &self.desk.traffic
    }

    /// What was answered so far, in that order.
    pub fn received(&self) -> Vec<Received> {
        self.desk.memory().received.clone()
    }
}

impl Received {
    /// A header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Desk {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// What an attempt of this delivery is answered.
    fn status(&mut self, delivery: &str) -> StatusCode {
        let mut of_this = || {
            let attempts = self.attempts.entry(delivery.to_owned()).or_default();
            *attempts += 1;
            self.of_each.get(*attempts - 1).copied()
        };
        let status = self.faults.pop_front().or_else(|| if self.of_each.is_empty() { None } else { of_this() });
        status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default()
    }
}

async fn answer(
    State(desk): State<Arc<Desk>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, &'static str) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let event_type = text("x-bpc-event-type");
    let _visit = desk.traffic.enter(event_type.as_str());
    desk.valve.pass().await;
    let mut memory = desk.memory();
    let is_genuine = verify_body(&memory.secrets, &text("x-bpc-signature"), &body).is_ok();
    let status = memory.status(&text("x-bpc-delivery-id"));
    if desk.tell {
        let genuine = if is_genuine { "genuine" } else { "of an unknown secret" };
        println!("{event_type}  {}  {genuine}  answered {}", text("x-bpc-delivery-id"), status.as_u16());
    }
    if memory.received.len() < REMEMBERED_MAX {
        let headers = headers.keys().map(|name| (name.to_string(), text(name.as_str()))).collect();
        let (method, body, status) = (method.to_string(), body.to_vec(), status.as_u16());
        memory.received.push(Received { method, headers, body, is_genuine, status });
    }
    let mut headers = HeaderMap::new();
    if status.is_redirection() {
        headers.insert(LOCATION, axum::http::HeaderValue::from_static("/elsewhere"));
    }
    (status, headers, "as told")
}
