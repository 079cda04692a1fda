//! The API that is told how tasks ended: checks the signature, keeps what it heard, and has its bad moments.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use kit::{Traffic, Valve};
use serde::Deserialize;
use serde_json::Value;
use tenure::Timestamp;
use tenure::webhooks::Secret;
use tenure::webhooks::verify::{Received, verify};
use tokio::sync::Notify;

/// The longest word that is listened to.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Most words that are kept; the oldest go first.
const KEPT_MAX: usize = 10_000;

/// Something that the API was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The first word is 1.
    pub number: u64,
    /// The same however often it is told.
    pub event: String,
    /// `job.succeeded`, `job.failed`, `job.dead`, …
    pub event_type: String,
    /// The task.
    pub task: String,
    /// The attempt's fence.
    pub fence: i64,
    /// What the task's handler returned.
    pub result: Value,
    /// What went wrong.
    pub error: Value,
    /// What the library was told that it used.
    pub usage: Value,
    /// How often it came; the API does it once.
    pub times: u32,
}

impl fmt::Display for Told {
    /// A line with what came of the task, or what went wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event_type, task, fence, result, error, usage, .. } = self;
        write!(f, "{event_type} {task} fence {fence}")?;
        match error.is_null() {
            true => write!(f, " {result} usage {usage}"),
            false => write!(f, " {error}"),
        }
    }
}

/// What came in a body.
#[derive(Deserialize)]
struct Body {
    event_id: String,
    event_type: String,
    aggregate_id: String,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    fence: i64,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    usage: Value,
}

/// Who is told. Clones share it.
#[derive(Debug, Clone)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    secret: Secret,
    heard: Mutex<Heard>,
    /// What every call passes first.
    valve: Valve,
    traffic: Traffic,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    told: VecDeque<Told>,
    /// Words so far, also those that are kept no more.
    words: u64,
    /// So many calls are turned away with a 500.
    unwell: u32,
}

impl Api {
    pub(super) fn new(secret: Secret) -> Self {
        let (heard, valve) = (Mutex::default(), Valve::opened());
        Self(Arc::new(Inner { secret, heard, valve, traffic: Traffic::default(), changed: Notify::new() }))
    }

    /// Answers the next calls with a 500.
    pub fn be_unwell(&self, calls: u32) {
        self.lock().unwell = calls;
    }

    /// What every call passes first: shut, the API hangs.
    pub fn valve(&self) -> &Valve {
        &self.0.valve
    }

    /// Calls, by what became of them: `told`, `unwell`, `not genuine`; all of them under `calls`.
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// What it was told, in the order it was first heard.
    pub fn told(&self) -> Vec<Told> {
        self.told_after(0)
    }

    /// What it was told after the word of this number.
    pub fn told_after(&self, number: u64) -> Vec<Told> {
        let heard = self.lock();
        // Numbers grow one by one, so the new ones are the last.
        let new = usize::try_from(heard.words.saturating_sub(number)).unwrap_or(usize::MAX).min(heard.told.len());
        heard.told.range(heard.told.len() - new..).cloned().collect()
    }

    /// Waits for words after the one of this number.
    pub async fn wait_after(&self, number: u64) -> Vec<Told> {
        loop {
            // Listen before looking: a call between the two would otherwise be missed.
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.told_after(number) {
                new if new.is_empty() => changed.await,
                new => return new,
            }
        }
    }

    pub(super) fn router(&self) -> Router {
        let limit = DefaultBodyLimit::max(BODY_BYTES_MAX);
        Router::new().route("/callbacks", post(hear)).layer(limit).with_state(self.clone())
    }

    /// Takes a call that came through.
    fn take(&self, headers: &HeaderMap, body: &[u8]) -> (StatusCode, &'static str) {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (id, timestamp, signature) =
            (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
        let received = Received { id, timestamp, signature, body };
        let mut heard = self.lock();
        if verify(std::slice::from_ref(&self.0.secret), &received, now()).is_err() {
            return (StatusCode::UNAUTHORIZED, "not genuine");
        }
        if heard.unwell > 0 {
            heard.unwell -= 1;
            return (StatusCode::INTERNAL_SERVER_ERROR, "unwell");
        }
        let Ok(body) = serde_json::from_slice(body) else { return (StatusCode::BAD_REQUEST, "not understood") };
        heard.keep(body);
        (StatusCode::NO_CONTENT, "told")
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn keep(&mut self, body: Body) {
        let Body { event_id, event_type, aggregate_id, payload } = body;
        if let Some(told) = self.told.iter_mut().find(|told| told.event == event_id) {
            told.times += 1;
            return;
        }
        if self.told.len() >= KEPT_MAX {
            self.told.pop_front();
        }
        self.words += 1;
        let Payload { fence, result, error, usage } = payload;
        self.told.push_back(Told {
            number: self.words,
            event: event_id,
            event_type,
            task: aggregate_id,
            fence,
            result,
            error,
            usage,
            times: 1,
        });
    }
}

async fn hear(State(api): State<Api>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let _there_until_answered = api.0.traffic.enter("calls");
    api.0.valve.pass().await;
    let (status, became) = api.take(&headers, &body);
    drop(api.0.traffic.enter(became));
    api.0.changed.notify_waiters();
    status
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: usize) -> Body {
        let payload = Payload { fence: 1, result: Value::Null, error: Value::Null, usage: Value::Null };
        Body { event_id: number.to_string(), event_type: "job.succeeded".into(), aggregate_id: "t".into(), payload }
    }

    #[test]
    fn words_after_the_last_that_is_kept_are_told_as_well() {
        let api = Api::new(Secret::generate());
        (1..=KEPT_MAX).for_each(|number| api.lock().keep(word(number)));
        let shown = api.told().last().map(|told| told.number).unwrap();
        assert_eq!((shown, api.told_after(shown).len()), (KEPT_MAX as u64, 0));
        (KEPT_MAX + 1..=KEPT_MAX + 2).for_each(|number| api.lock().keep(word(number)));
        // Told again, it is no new one.
        api.lock().keep(word(KEPT_MAX + 2));
        let new: Vec<(u64, u32)> = api.told_after(shown).iter().map(|told| (told.number, told.times)).collect();
        assert_eq!(new, [(shown + 1, 1), (shown + 2, 2)]);
        assert_eq!(api.told().len(), KEPT_MAX);
    }
}
