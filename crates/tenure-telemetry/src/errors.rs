//! Jobs that failed for good, and handlers that panicked, as events for Sentry; retries as the crumbs before them.
//!
//! Texts go through [`scrub`](crate::scrub()); payloads are not here to begin with, and whose job it was is not told.

use std::collections::VecDeque;
use std::sync::mpsc::Sender as Told;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sentry_types::Dsn;
use sentry_types::protocol::v7::{Breadcrumb, Envelope, Event, Exception, Level, Map};
use tenure_core::{How, Invalid};
use tenure_worker::{AttemptEnded, Observer};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::post::{Post, Silence};
use crate::scrub;

/// Events that wait to be sent; more are dropped.
const WAITING_MAX: usize = 100;
/// Crumbs that an event brings along.
const CRUMBS_MAX: usize = 50;
/// How long nothing is sent after Sentry said that it is enough.
const ENOUGH_FOR: Duration = Duration::from_secs(60);

/// Hears how attempts end and tells Sentry.
pub(crate) struct Errors {
    queue: mpsc::Sender<Message>,
    crumbs: Mutex<VecDeque<Breadcrumb>>,
    full: Silence,
}

enum Message {
    Event(Box<Event<'static>>),
    /// Say when everything before it was sent.
    Flush(Told<()>),
}

impl Errors {
    pub(crate) fn start(dsn: &str, post: &Post) -> Result<Arc<Self>, Invalid> {
        let refused = |_| Invalid::new("sentry_dsn", "given", "it is a DSN such as https://KEY@sentry.example/1");
        let dsn: Dsn = dsn.parse().map_err(refused)?;
        let (queue, messages) = mpsc::channel(WAITING_MAX);
        post.runtime().spawn(send_all(dsn, post.client.clone(), messages));
        Ok(Arc::new(Self { queue, crumbs: Mutex::default(), full: Silence::of("Sentry") }))
    }

    /// Waits until what is left was sent, not longer than this.
    pub(crate) fn close(&self, wait: Duration) {
        let (tell, told) = std::sync::mpsc::channel();
        if self.queue.try_send(Message::Flush(tell)).is_ok() {
            let _sent_or_late = told.recv_timeout(wait);
        }
    }

    fn drop_crumb(&self, ended: &AttemptEnded<'_>) {
        let level = if ended.how == How::Dead { Level::Error } else { Level::Warning };
        let message = ended.failure.map_or_else(String::new, |failure| format!(": {}", failure.message));
        let crumb = Breadcrumb {
            category: Some("job".to_owned()),
            level,
            message: Some(scrub(&format!("{} {}{message}", ended.kind, ended.how.as_str()))),
            data: about(ended),
            ..Breadcrumb::default()
        };
        let mut crumbs = self.crumbs.lock().unwrap_or_else(PoisonError::into_inner);
        if crumbs.len() == CRUMBS_MAX {
            crumbs.pop_front();
        }
        crumbs.push_back(crumb);
    }

    fn event(&self, ended: &AttemptEnded<'_>) -> Event<'static> {
        let error_type = ended.failure.map_or_else(|| "error".to_owned(), |failure| scrub(&failure.error_type));
        let value = ended.failure.map(|failure| scrub(&failure.message));
        let tags = [("job.kind", ended.kind.to_string()), ("queue", ended.queue.to_string())];
        let tags = tags.into_iter().chain([("outcome", ended.how.as_str().to_owned())]);
        let exception = Exception { ty: error_type.clone(), value, ..Exception::default() };
        let crumbs = self.crumbs.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect::<Vec<_>>();
        Event {
            level: Level::Error,
            logger: Some("tenure".to_owned()),
            release: Some(concat!("tenure@", env!("CARGO_PKG_VERSION")).into()),
            // Messages name this and that: what is the same kind and the same sort of error is one issue.
            fingerprint: vec!["tenure".into(), ended.kind.to_string().into(), error_type.into()].into(),
            transaction: Some(ended.kind.to_string()),
            exception: vec![exception].into(),
            breadcrumbs: crumbs.into(),
            tags: tags.map(|(name, value)| (name.to_owned(), value)).collect(),
            extra: about(ended),
            ..Event::default()
        }
    }
}

impl Observer for Errors {
    fn attempt_ended(&self, ended: &AttemptEnded<'_>) {
        if matches!(ended.how, How::Retry | How::Dead) {
            self.drop_crumb(ended);
        }
        let has_panicked = ended.failure.is_some_and(|failure| failure.panicked);
        if !has_panicked && !matches!(ended.how, How::Failed | How::Dead) {
            return;
        }
        if self.queue.try_send(Message::Event(Box::new(self.event(ended)))).is_err() {
            self.full.failed("more fails than can be told");
        }
    }
}

/// What everybody may know of an attempt.
fn about(ended: &AttemptEnded<'_>) -> Map<String, sentry_types::protocol::v7::Value> {
    let facts = [
        ("job.id", ended.job.to_string().into()),
        ("job.kind", ended.kind.to_string().into()),
        ("queue", ended.queue.to_string().into()),
        ("attempt", ended.attempt.into()),
        ("lease.no", ended.lease.0.into()),
    ];
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// Sends one event after the other. What cannot be sent is dropped.
async fn send_all(dsn: Dsn, client: reqwest::Client, mut messages: mpsc::Receiver<Message>) {
    let (silence, mut enough_until) = (Silence::of("Sentry"), None);
    while let Some(message) = messages.recv().await {
        let event = match message {
            Message::Event(event) => *event,
            Message::Flush(told) => {
                let _nobody_waits = told.send(());
                continue;
            }
        };
        if enough_until.is_some_and(|until| Instant::now() < until) {
            continue;
        }
        let (mut body, envelope) = (Vec::new(), Envelope::from(event));
        if envelope.to_writer(&mut body).is_err() {
            continue;
        }
        let agent = concat!("tenure/", env!("CARGO_PKG_VERSION"));
        let request = client
            .post(dsn.envelope_api_url())
            .header("x-sentry-auth", dsn.to_auth(Some(agent)).to_string())
            .header("content-type", "application/x-sentry-envelope")
            .body(body);
        match request.send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => silence.over(),
            Ok(status) => {
                enough_until = (status.as_u16() == 429).then(|| Instant::now() + ENOUGH_FOR);
                silence.failed(status.as_str());
            }
            // Without the error's text: it names the URL.
            Err(_) => silence.failed("the request failed"),
        }
    }
}
