//! GENERATE_QR: a version's label, as text and as a picture.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Attempt, Completed, Ctx, Job, State, Tx};
use uuid::Uuid;

use crate::app::App;
use crate::code::Refusal;
use crate::halt::Halt;
use crate::jobs::payload::Payload;
use crate::qr::{self, Label};
use crate::records::event::{Event, EventType};
use crate::records::version::StoredVersion;

/// What to make a label for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerateQr {
    /// The version.
    pub passport_version_id: Uuid,
}

/// The job.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "GENERATE_QR", queue = "passport", priority = "normal", max_attempts = 5, timeout = "1m")]
#[job(backoff = "exponential 1s..1024s by attempts")]
pub struct GenerateQrJob(Payload<GenerateQr>);

impl From<GenerateQr> for GenerateQrJob {
    fn from(asked: GenerateQr) -> Self {
        Self(Payload::new(asked))
    }
}

/// Makes it. A version that is not signed has none; one that has its label keeps it.
pub async fn generate_qr(
    job: GenerateQrJob,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Halt> {
    let GenerateQr { passport_version_id: id } = job.0.read()?;
    let tenant = ctx.tenant().clone();
    let Some(version) = StoredVersion::find(app.database(), &tenant, id).await? else {
        return Err(Refusal::invalid(format!("passport version `{id}` is not known to tenant `{tenant}`")).into());
    };
    if version.signature.is_none() {
        return Err(Refusal::invalid(format!("passport version `{id}` is not signed: a label is for what is")).into());
    }
    let (receipt, receipt_hash) = version.checked_receipt()?;
    let (payload_hash, proof_root) = (receipt.payload_hash, receipt.proof_root);
    let text = Label { passport_version_id: id, payload_hash, proof_root, receipt_hash }.to_string();
    let png = qr::png(&text)?;
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let mut jobs = Vec::new();
        if StoredVersion::label(tx, &tenant, id, &text, png)? {
            let payload = json!({"passport_version_id": id, "qr_text": text});
            let event = Event { kind: EventType::QrGenerated, aggregate: id, payload };
            jobs = event.append(tx, ctx.client(), &tenant, Some(&ctx))?;
        }
        Ok((attempt.complete_in(tx)?, jobs))
    };
    let (completed, jobs) = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(completed)
}
