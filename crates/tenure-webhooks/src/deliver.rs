//! The handler of [`DeliverWebhook`]: one try of one delivery.
//!
//! The job is the clock: it is tried again as the [schedule] says, survives the process, and is dead
//! after the last try. What came of a try is written down before the job ends: a process that dies in between tries once
//! more, unless it had arrived.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure_core::backoff::Roll;
use tenure_core::webhook::{DELIVERY_KIND, OWN_QUEUE};
use tenure_core::{Invalid, Json, Timestamp};
use tenure_store::record::Sight;
use tenure_store::webhook::{DeliveryRecord, DeliveryState, EndpointRecord, RecordTry, Tried};
use tenure_store::{Store, StoreError};
use tenure_worker::{Ctx, Defaults, Fail, Job, State};

use crate::failing::Failing;
use crate::prefix::Prefix;
use crate::schedule::{self, ATTEMPTS_MAX, Next, Outcome};
use crate::seal::{MasterKeys, Owner, SealedSecret};
use crate::secret::{Secret, random};
use crate::send::{SendError, Sender};
use crate::sent::Sent;
use crate::sign::{self, Delivery};

/// An endpoint that took nothing for this long is disabled.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 86_400);

/// The header of W3C trace context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// How long a delivery waits that could not be signed here.
const UNTRIED_FOR: Duration = Duration::from_secs(60);
/// Characters of a receiver's complaint that are kept.
const COMPLAINT_CHARS_MAX: usize = 1_000;

/// Sends a delivery, whose id is the job's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverWebhook {
    endpoint: String,
}

impl Job for DeliverWebhook {
    const KIND: &'static str = DELIVERY_KIND;
    const DEFAULTS: Defaults = Defaults::new().queue(OWN_QUEUE).max_attempts(ATTEMPTS_MAX as u16);
}

/// What the handler needs. Clones share everything.
#[derive(Clone)]
pub struct Deliverer(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    sender: Sender,
    keys: Option<MasterKeys>,
    give_up_after: Duration,
    failing: Failing,
}

impl Deliverer {
    /// Delivers what is in this store; without keys no secret can be opened, and everything waits.
    pub fn new(store: Arc<dyn Store>, sender: Sender, keys: Option<MasterKeys>) -> Self {
        Self(Arc::new(Inner { store, sender, keys, give_up_after: GIVE_UP_AFTER, failing: Failing::default() }))
    }
}

/// Why a try was not even begun.
enum Untried {
    /// Somebody has to do something about it here; until then it is tried again.
    Here(String),
    /// No try of it will be another.
    Never(String),
}

/// Tries to deliver, once.
pub async fn deliver(_: DeliverWebhook, ctx: Ctx, State(deliverer): State<Deliverer>) -> Result<(), Fail> {
    let Inner { store, give_up_after, .. } = &*deliverer.0;
    let job = ctx.job_id();
    let Some((delivery, endpoint)) = find(store, &ctx).await? else {
        // Its endpoint was removed, or somebody made the job up.
        return Err(Fail::canceled());
    };
    if delivery.summary.state == DeliveryState::Delivered {
        return Ok(());
    }
    let now = store.now().await?;
    let begun = tokio::time::Instant::now();
    let tried = match &endpoint.disabled {
        Some((_, why)) => Err(Untried::Never(format!("its endpoint is disabled: {why}"))),
        None => tokio::select! {
            biased;
            _ = ctx.stopped() => return ctx.check(),
            tried = deliverer.0.send(&delivery, &endpoint, now, ctx.traceparent()) => tried,
        },
    };
    let (outcome, sent, text) = match &tried {
        Ok(result) => (Outcome::from(result), result.as_ref().ok(), told(result)),
        Err(Untried::Here(why)) => {
            // No fault of the receiver's: no try is spent, and its endpoint does not fail.
            tracing::error!(job.id = %job, "a webhook cannot be signed: {why}");
            return Err(Fail::snooze(UNTRIED_FOR));
        }
        Err(Untried::Never(why)) => (Outcome::Refused, None, why.clone()),
    };
    let mut roll = [0; 4];
    random(&mut roll);
    let next = schedule::after(ctx.attempt().into(), outcome, Roll(u32::from_ne_bytes(roll)));
    let next = match next {
        Next::Retry(_) if ctx.is_last_attempt() => Next::Dead,
        next => next,
    };
    let entry = entry(&ctx, now, begun.elapsed(), sent, (next != Next::Delivered).then_some(text.as_str()));
    let (came, gone) = match next {
        Next::Delivered => (Tried::Delivered, None),
        Next::Retry(_) => (Tried::Again, None),
        Next::Dead => (Tried::Failed, None),
        Next::Disable => (Tried::Failed, Some(format!("its receiver is gone: {text}"))),
    };
    // Who lost the lease meanwhile says nothing any more.
    ctx.check()?;
    // An endpoint that is disabled is not tried.
    if endpoint.disabled.is_none() {
        let detail = match &tried {
            Ok(Err(error)) => error.detail(),
            _ => text.clone(),
        };
        deliverer.0.failing.log(endpoint.id, (next != Next::Delivered).then_some(detail.as_str()));
    }
    let record = RecordTry { job, entry: entry?, tried: came, gone, give_up_after: *give_up_after };
    match store.record_try(record).await {
        Ok(true) => tracing::warn!(endpoint.id = %endpoint.id, "a webhook endpoint was disabled: {text}"),
        Ok(false) => {}
        Err(StoreError::NotFound(_)) => return Err(Fail::canceled()),
        Err(error) => return Err(error.into()),
    }
    match next {
        Next::Delivered => Ok(()),
        Next::Retry(wait) => Err(Fail::transient(text).retry_in(wait).quiet()),
        Next::Disable | Next::Dead => Err(Fail::dead(text).quiet()),
    }
}

async fn find(store: &Arc<dyn Store>, ctx: &Ctx) -> Result<Option<(DeliveryRecord, EndpointRecord)>, StoreError> {
    let found = async {
        let delivery = store.show_delivery(&Sight::All, ctx.job_id()).await?;
        let endpoint = store.show_endpoint(&Sight::All, delivery.summary.endpoint).await?;
        Ok((delivery, endpoint))
    };
    match found.await {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Inner {
    async fn send(
        &self,
        delivery: &DeliveryRecord,
        endpoint: &EndpointRecord,
        now: Timestamp,
        traceparent: Option<String>,
    ) -> Result<Result<Sent, SendError>, Untried> {
        let summary = &delivery.summary;
        let url = summary.callback_url.as_deref().or(endpoint.url.as_deref());
        let url = url.ok_or_else(|| Untried::Never("nobody says where to".into()))?;
        let target = self.sender.guard().check_url(url).map_err(|refused| Untried::Never(refused.to_string()))?;
        let secrets = self.secrets(endpoint, now).map_err(Untried::Here)?;
        let body = Bytes::from(delivery.body.clone());
        let delivery_id = summary.job.to_string();
        let signed = Delivery {
            id: &summary.event_id,
            delivery_id: &delivery_id,
            event_type: &summary.event_type,
            at: now,
            body: &body,
        };
        let never = |refused: Invalid| Untried::Never(refused.to_string());
        let prefix: Prefix = endpoint.prefix.parse().map_err(never)?;
        let mut headers = sign::headers(&signed, &secrets, &prefix).map_err(never)?;
        // Of this very try, so that a receiver that records traces is a step of it.
        let traceparent = traceparent.and_then(|trace| HeaderValue::try_from(trace).ok());
        headers.extend(traceparent.map(|trace| (TRACEPARENT, trace)));
        Ok(self.sender.send(&target, &headers, body).await)
    }

    /// The valid secrets of an endpoint, the newest first.
    fn secrets(&self, endpoint: &EndpointRecord, now: Timestamp) -> Result<Vec<Secret>, String> {
        let keys = self.keys.as_ref().ok_or("no webhook key is configured here: its secret cannot be opened")?;
        let id = endpoint.id.to_string();
        let owner = Owner { tenant: &endpoint.tenant, endpoint: &id };
        let previous = endpoint.previous.as_ref().filter(|(_, until)| *until > now).map(|(sealed, _)| sealed);
        let open = |sealed: &Vec<u8>| keys.open(&SealedSecret::from_bytes(sealed)?, owner);
        let secrets: Result<Vec<Secret>, _> = [&endpoint.secret].into_iter().chain(previous).map(open).collect();
        secrets.map_err(|error| error.to_string())
    }
}

/// What came of a try, for people. It names the host and the status, never path, query or body.
fn told(result: &Result<Sent, SendError>) -> String {
    match result {
        Ok(sent) => format!("the receiver answered {}", sent.status),
        Err(error) => error.to_string(),
    }
}

/// A line of the delivery's log.
fn entry(ctx: &Ctx, at: Timestamp, took: Duration, sent: Option<&Sent>, error: Option<&str>) -> Result<Json, Fail> {
    let headers: Option<serde_json::Map<_, _>> =
        sent.map(|sent| sent.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect());
    let is_taken = |sent: &&Sent| (200..300).contains(&sent.status);
    let complaint = sent
        .filter(|sent| !is_taken(sent))
        .map(|sent| -> String { sent.body_start.chars().take(COMPLAINT_CHARS_MAX).collect() });
    let entry = json!({
        "attempt": ctx.attempt(),
        "at": at.to_string(),
        "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "status": sent.map(|sent| sent.status),
        "headers": headers,
        "body": complaint,
        "error": error,
    });
    Ok(Json::parse("entry", entry.to_string())?)
}
