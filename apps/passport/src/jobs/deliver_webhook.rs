//! DELIVER_WEBHOOK: one attempt to tell one event to one endpoint.
//!
//! The body is signed by the endpoint's secret: `X-BPC-Signature: sha256=<hex>`, beside `X-BPC-Event-Type` and
//! `X-BPC-Delivery-Id`, which is the same in every attempt: a receiver drops what it has seen. Each endpoint is a gate that
//! lets few through at once: a receiver that hangs does not hold every slot. Every answer but 2xx is
//! tried again, a redirect too, which is never followed; `410` alone means that nobody is there any more.

use serde::{Deserialize, Serialize};
use tenure::webhooks::sign::{self, Delivery as Signed};
use tenure::webhooks::{Prefix, Refused, SendError, Sent};
use tenure::{Attempt, Class, Completed, Ctx, Fail, Job, State, Stop, Tx};
use uuid::Uuid;

use crate::app::App;
use crate::code::{Code, Refusal};
use crate::halt::Halt;
use crate::jobs::payload::Payload;
use crate::records::delivery::{Delivery, Ended};
use crate::records::endpoint;

/// How the headers begin.
const PREFIX: &str = "X-BPC-";
/// The answer of a receiver that is no more.
const GONE: u16 = 410;

/// What to deliver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverWebhook {
    /// The delivery.
    pub webhook_delivery_id: Uuid,
}

/// The job. Its timeout is for what hangs here: a receiver's time is the sender's to watch.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "DELIVER_WEBHOOK", queue = "passport", priority = "low", max_attempts = 5, timeout = "6m")]
#[job(backoff = "exponential 1s..1024s by attempts")]
pub struct DeliverWebhookJob(Payload<DeliverWebhook>);

impl From<DeliverWebhook> for DeliverWebhookJob {
    fn from(asked: DeliverWebhook) -> Self {
        Self(Payload::new(asked))
    }
}

/// Sends it, and writes down what came of it.
pub async fn deliver_webhook(
    job: DeliverWebhookJob,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Halt> {
    let id = job.0.read()?.webhook_delivery_id;
    let tenant = ctx.tenant().clone();
    let Some(delivery) = Delivery::find(app.database(), &tenant, id).await? else {
        return Err(Refusal::invalid(format!("delivery `{id}` is not known to tenant `{tenant}`")).into());
    };
    if delivery.is_delivered {
        return app.database().transaction(move |tx: &Tx<'_>| Ok(attempt.complete_in(tx)?)).await;
    }
    let sent = tokio::select! {
        biased;
        why = ctx.stopped() => return stopped(&app, ctx, delivery, why).await,
        sent = send(&app, &ctx, &delivery) => sent,
    };
    let (answer, refusal) = match sent {
        Ok(answer) if (200..300).contains(&answer.status) => {
            let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
                delivery.record(tx, &ctx, Ended::Delivered, Some(&answer), None)?;
                Ok(attempt.complete_in(tx)?)
            };
            return app.database().transaction(work).await;
        }
        Ok(answer) => {
            let (code, gone) = (Code::WebhookNon2xx, answer.status == GONE);
            let refusal = Refusal::new(code, format!("the receiver answered {}", answer.status));
            (Some(answer), if gone { Refusal { code: Code::EndpointGone, ..refusal } } else { refusal })
        }
        Err(refusal) => (None, refusal),
    };
    let is_final = refusal.code.class() != Class::Transient || ctx.is_last_attempt();
    let ended = if is_final { Ended::Failed } else { Ended::Pending };
    // A worker that lost its lease has nothing to write.
    ctx.check()?;
    let failed = refusal.clone();
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        delivery.record(tx, &ctx, ended, answer.as_ref(), Some(&failed.to_string()))?;
        if failed.code == Code::EndpointGone {
            endpoint::disable(tx, &tenant, delivery.endpoint, &failed.message)?;
        }
        Ok(())
    };
    app.database().transaction(work).await?;
    Err(refusal.into())
}

/// It is told to stop: where that is the end of the job it is the end of the delivery. A lost lease has nothing to write, and
/// what is released comes again.
async fn stopped(app: &App, ctx: Ctx, delivery: Delivery, why: Stop) -> Result<Completed, Halt> {
    let said = ctx.check();
    let error = match why {
        Stop::Canceled => Some("canceled before it was answered"),
        Stop::Timeout if ctx.is_last_attempt() => Some("stopped after its timeout"),
        Stop::Timeout | Stop::Shutdown | Stop::LeaseLost => None,
    };
    if let Some(error) = error {
        let work = move |tx: &Tx<'_>| delivery.record(tx, &ctx, Ended::Failed, None, Some(error));
        app.database().transaction(work).await?;
    }
    said?;
    Err(Fail::canceled().into())
}

/// One request. What stands in its way is told by its code.
async fn send(app: &App, ctx: &Ctx, delivery: &Delivery) -> Result<Sent, Refusal> {
    if let Some(why) = &delivery.disabled_why {
        return Err(Refusal::new(Code::EndpointGone, format!("the endpoint is disabled: {why}")));
    }
    let target = app.sender().guard().check_url(&delivery.url).map_err(|why| Refusal::invalid(why.to_string()))?;
    let now = ctx.client().store().now().await;
    let now = now.map_err(|error| Refusal::new(Code::DbUnavailable, error))?;
    let secrets = delivery.secrets(app.seals()?, ctx.tenant(), now)?;
    let body = serde_json::to_vec(&delivery.told).map_err(|error| Refusal::invalid(error.to_string()))?;
    let (id, prefix): (String, Prefix) = (delivery.id.to_string(), PREFIX.parse()?);
    let told = &delivery.told;
    let signed = Signed { id: &told.event_id, delivery_id: &id, event_type: &told.event_type, at: now, body: &body };
    let headers = sign::headers(&signed, &secrets, &prefix)?;
    app.sender().send(&target, &headers, body.into()).await.map_err(|error| unanswered(&error))
}

/// An address that is refused may be another one when the name is looked up again; a URL or a name stays what it is.
fn unanswered(error: &SendError) -> Refusal {
    let code = match error {
        SendError::Refused { why: Refused::Url(_) | Refused::Name { .. }, .. } => Code::ValidationError,
        SendError::TimedOut { .. } => Code::WebhookTimeout,
        _ => Code::HttpException,
    };
    Refusal::new(code, error)
}
