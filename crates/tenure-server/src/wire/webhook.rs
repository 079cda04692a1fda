//! Webhook endpoints and deliveries as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_store::webhook::{DeliveryRecord, DeliverySummary, EndpointRecord};
use tenure_webhooks::Secret;
use utoipa::ToSchema;

use super::{date, raw};

/// One endpoint. Its secret is nowhere.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndpointLine {
    id: String,
    tenant: String,
    /// Null: wherever a job's `callback_url` says.
    url: Option<String>,
    events: Vec<String>,
    /// How its own headers begin.
    header_prefix: String,
    created_at: String,
    /// Until when the secret before is good, too.
    rotating_until: Option<String>,
    /// Since when it gets nothing.
    disabled_at: Option<String>,
    disabled_why: Option<String>,
    /// Since when no delivery has arrived, while some were given up.
    failing_since: Option<String>,
}

/// An endpoint with a secret that was just made: it is shown this once.
#[derive(Serialize, ToSchema)]
pub struct EndpointDocument {
    #[serde(flatten)]
    line: EndpointLine,
    /// For the receiver, who checks signatures with it.
    secret: String,
}

/// One line of the delivery log.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryLine {
    /// The id of the job that sends it, too.
    id: String,
    endpoint: String,
    tenant: String,
    event_id: String,
    event_type: String,
    /// What it happened to.
    subject: String,
    callback_url: Option<String>,
    /// pending, delivered or failed
    state: &'static str,
    created_at: String,
    finished_at: Option<String>,
    /// The delivery that it repeats.
    resend_of: Option<String>,
    tries: u32,
}

/// One delivery in full.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryDocument {
    #[serde(flatten)]
    line: DeliveryLine,
    /// As it is sent, byte for byte.
    body: String,
    /// What came of each try: attempt, at, took_ms, status, headers, body, error.
    #[schema(value_type = Option<Value>)]
    log: Option<Box<RawValue>>,
}

impl From<&EndpointRecord> for EndpointLine {
    fn from(endpoint: &EndpointRecord) -> Self {
        Self {
            id: endpoint.id.to_string(),
            tenant: endpoint.tenant.to_string(),
            url: endpoint.url.clone(),
            events: endpoint.events.iter().map(str::to_owned).collect(),
            header_prefix: endpoint.prefix.clone(),
            created_at: endpoint.created_at.to_string(),
            rotating_until: date(endpoint.previous.as_ref().map(|(_, until)| *until)),
            disabled_at: date(endpoint.disabled.as_ref().map(|(at, _)| *at)),
            disabled_why: endpoint.disabled.as_ref().map(|(_, why)| why.clone()),
            failing_since: date(endpoint.failing_since),
        }
    }
}

impl EndpointDocument {
    /// An endpoint and the text of its secret.
    pub fn new(record: &EndpointRecord, secret: &Secret) -> Self {
        Self { line: EndpointLine::from(record), secret: secret.text().to_string() }
    }
}

impl From<&DeliverySummary> for DeliveryLine {
    fn from(delivery: &DeliverySummary) -> Self {
        Self {
            id: delivery.job.to_string(),
            endpoint: delivery.endpoint.to_string(),
            tenant: delivery.tenant.to_string(),
            event_id: delivery.event_id.clone(),
            event_type: delivery.event_type.clone(),
            subject: delivery.subject.clone(),
            callback_url: delivery.callback_url.clone(),
            state: delivery.state.as_str(),
            created_at: delivery.created_at.to_string(),
            finished_at: date(delivery.finished_at),
            resend_of: delivery.resend_of.map(|of| of.to_string()),
            tries: delivery.tries,
        }
    }
}

impl From<&DeliveryRecord> for DeliveryDocument {
    fn from(record: &DeliveryRecord) -> Self {
        Self { line: DeliveryLine::from(&record.summary), body: record.body.clone(), log: raw(Some(&record.tries)) }
    }
}
