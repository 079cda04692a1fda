//! The log of deliveries: each event once to each endpoint, PENDING until it is DELIVERED or FAILED.

use serde_json::{Value, json};
use tenure::core::Json;
use tenure::store::enqueue::Enqueued;
use tenure::webhooks::{MasterKeys, Secret, Sent};
use tenure::{Client, Ctx, Database, JobState, Record, StoreError, TenantName, Timestamp, Tx, row};
use uuid::Uuid;

use crate::app::App;
use crate::code::Refusal;
use crate::halt::Halt;
use crate::id::derived;
use crate::jobs::{DeliverWebhook, DeliverWebhookJob};
use crate::records::endpoint;
use crate::records::event::Told;

/// Bytes of a receiver's answer that are kept.
const BODY_BYTES_MAX: usize = 2_048;

/// A delivery with all that is needed to send it.
pub struct Delivery {
    /// Its id: the same in every attempt.
    pub id: Uuid,
    /// To which endpoint.
    pub endpoint: Uuid,
    /// Where that is.
    pub url: String,
    /// Why nothing goes there any more.
    pub disabled_why: Option<String>,
    /// Whether it has arrived.
    pub is_delivered: bool,
    /// What is told.
    pub told: Told,
    row: Record,
}

/// How an attempt ended, as far as the log cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It has arrived.
    Delivered,
    /// It is tried again.
    Pending,
    /// It is given up.
    Failed,
}

/// Makes the deliveries of an event, one for each endpoint that is not disabled, with the jobs that send them.
pub fn add(tx: &Tx<'_>, client: &Client, tenant: &TenantName, event: Uuid) -> Result<Vec<Enqueued>, Halt> {
    let select = "select webhook_endpoint_id from passport_webhook_endpoint \
                  where tenant_id = $1 and disabled_at is null order by webhook_endpoint_id";
    let mut jobs = Vec::new();
    for row in tx.query(select, row![tenant.as_str()])? {
        let endpoint: String = row.get("webhook_endpoint_id")?;
        let id = derived("delivery", &[tenant.as_str(), &endpoint, &event.to_string()])?;
        let job = DeliverWebhookJob::from(DeliverWebhook { webhook_delivery_id: id });
        let stored = client.enqueue(job).unique(id.to_string()).gate(&endpoint::gate(&endpoint)).within(tx)?;
        let insert = "insert into passport_webhook_delivery (tenant_id, webhook_delivery_id, webhook_endpoint_id, \
                      event_id, job_id, status, attempts, fence, created_at) \
                      values ($1, $2, $3, $4, $5, 'PENDING', 0, 0, $6)";
        let (job, event) = (stored.job().to_string(), event.to_string());
        tx.execute(insert, row![tenant.as_str(), id.to_string(), endpoint, event, job, tx.now()?])?;
        jobs.push(stored);
    }
    Ok(jobs)
}

impl Delivery {
    /// The one of this id, if the tenant has it.
    pub async fn find(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Self>, Halt> {
        let select = include_str!("../sql/find_delivery.sql");
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        let Some(row) = found.into_iter().next() else { return Ok(None) };
        Ok(Some(Self {
            id,
            endpoint: super::id(&row, "webhook_endpoint_id")?,
            url: row.get("url")?,
            disabled_why: row.get("disabled_why")?,
            is_delivered: row.get::<String>("status")? == "DELIVERED",
            told: Told::read(&row)?,
            row,
        }))
    }

    /// The secrets that sign it now, the newest first.
    pub fn secrets(&self, seals: &MasterKeys, tenant: &TenantName, now: Timestamp) -> Result<Vec<Secret>, Refusal> {
        endpoint::secrets(seals, tenant, self.endpoint, &self.row, now)
    }

    /// Writes down how an attempt ended. What has arrived stays so, and an attempt that is older than the last one to
    /// write here changes nothing.
    pub fn record(
        &self,
        tx: &Tx<'_>,
        ctx: &Ctx,
        ended: Ended,
        sent: Option<&Sent>,
        error: Option<&str>,
    ) -> Result<(), Halt> {
        let status = match ended {
            Ended::Delivered => "DELIVERED",
            Ended::Pending => "PENDING",
            Ended::Failed => "FAILED",
        };
        let headers = sent.map(|sent| {
            let named = |(name, value): &(&'static str, String)| ((*name).to_owned(), json!(value));
            sent.headers.iter().map(named).collect::<serde_json::Map<_, _>>()
        });
        let headers = headers.map(|headers| Json::parse("headers", Value::from(headers).to_string())).transpose()?;
        let body = sent.map(|sent| sent.body_start.bytes().take(BODY_BYTES_MAX).collect::<Vec<u8>>());
        let now = tx.now()?;
        let row = row![
            ctx.tenant().as_str(),
            self.id.to_string(),
            ctx.fence().0,
            status,
            i32::from(ctx.attempt()),
            sent.map(|sent| i32::from(sent.status)),
            headers,
            body,
            error,
            (ended == Ended::Delivered).then_some(now)
        ];
        tx.execute(include_str!("../sql/record_attempt.sql"), row)?;
        Ok(())
    }
}

/// A tenant's deliveries, newest first; at most so many.
pub async fn list(app: &App, tenant: &TenantName, limit: u32) -> Result<Vec<Value>, Halt> {
    let select = include_str!("../sql/list_deliveries.sql");
    let rows = app.database().query(select, row![tenant.as_str(), limit]).await?;
    let mut list = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut delivery = shown(row)?;
        if delivery["status"] == "PENDING"
            && let Some(why) = given_up(&app.client(tenant), &row.get::<String>("job_id")?).await?
        {
            (delivery["status"], delivery["error_message"]) = (json!("FAILED"), json!(why));
        }
        list.push(delivery);
    }
    Ok(list)
}

/// Why nobody sends a delivery any more that no attempt has given up: its job was canceled while it waited, lost its
/// workers too often, or ended by a panic. Revived, the job may deliver it yet.
async fn given_up(client: &Client, job: &str) -> Result<Option<String>, Halt> {
    let job = job.parse().map_err(|_| StoreError::Corrupt(format!("column `job_id` holds `{job}`, which is no id")))?;
    match client.show(job).await {
        Ok(record) if matches!(record.summary.state, JobState::Failed | JobState::Dead | JobState::Canceled) => {
            let error = record.summary.error.as_ref().map(|error| format!(": {}", error.as_str())).unwrap_or_default();
            Ok(Some(format!("its job is {}{error}", record.summary.state.as_str())))
        }
        Ok(_) => Ok(None),
        Err(StoreError::NotFound(_)) => Ok(Some("its job is not there any more".to_owned())),
        Err(error) => Err(error.into()),
    }
}

fn shown(row: &Record) -> Result<Value, StoreError> {
    let text = |column| row.get::<Option<String>>(column);
    let body: Option<Vec<u8>> = row.get("response_body")?;
    let headers = text("response_headers")?.and_then(|headers| serde_json::from_str::<Value>(&headers).ok());
    Ok(json!({
        "webhook_delivery_id": text("webhook_delivery_id")?,
        "webhook_endpoint_id": text("webhook_endpoint_id")?,
        "event_id": text("event_id")?,
        "job_id": text("job_id")?,
        "status": text("status")?,
        "attempts": row.get::<i64>("attempts")?,
        "http_status": row.get::<Option<i64>>("http_status")?,
        "response_headers": headers,
        "response_body": body.map(|body| String::from_utf8_lossy(&body).into_owned()),
        "error_message": text("error_message")?,
        "created_at": endpoint::time(row, "created_at")?,
        "delivered_at": endpoint::time(row, "delivered_at")?,
    }))
}
