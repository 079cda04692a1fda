//! SIGN_PASSPORT: the signature over the hash of a version's receipt, compiled anew from what it is of.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Attempt, Completed, Ctx, Job, State, Tx};
use uuid::Uuid;

use crate::app::App;
use crate::code::Refusal;
use crate::halt::Halt;
use crate::inputs::Inputs;
use crate::jobs::generate_qr::{GenerateQr, GenerateQrJob};
use crate::jobs::payload::Payload;
use crate::records::event::{Event, EventType};
use crate::records::version::StoredVersion;
use crate::sign::KeyId;

/// What to sign, and with which key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignPassport {
    /// The version.
    pub passport_version_id: Uuid,
    /// The key.
    pub key_id: String,
}

/// The job.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "SIGN_PASSPORT", queue = "passport", priority = "high", max_attempts = 5, timeout = "1m")]
#[job(backoff = "exponential 1s..1024s by attempts")]
pub struct SignPassportJob(Payload<SignPassport>);

impl From<SignPassport> for SignPassportJob {
    fn from(asked: SignPassport) -> Self {
        Self(Payload::new(asked))
    }
}

/// Signs it. The same key gives the same signature, so a second attempt changes nothing; one that is signed stays so.
pub async fn sign_passport(
    job: SignPassportJob,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Halt> {
    let SignPassport { passport_version_id: id, key_id } = job.0.read()?;
    let (tenant, key_id) = (ctx.tenant().clone(), KeyId::new(key_id)?);
    let Some(version) = StoredVersion::find(app.database(), &tenant, id).await? else {
        return Err(Refusal::invalid(format!("passport version `{id}` is not known to tenant `{tenant}`")).into());
    };
    // Not what the row says: somebody may have written it since it was compiled.
    let compiled = Inputs::find(app.database(), &version.key).await?.compile(&version.key)?;
    version.check(&compiled)?;
    let signature = app.keys().sign(&key_id, compiled.receipt_text.hash())?;
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let mut jobs = Vec::new();
        if StoredVersion::sign(tx, &tenant, id, &key_id, signature)? {
            let payload = json!({"passport_version_id": id, "key_id": key_id.as_str()});
            let event = Event { kind: EventType::PassportSigned, aggregate: id, payload };
            jobs = event.append(tx, ctx.client(), &tenant, Some(&ctx))?;
            let label = GenerateQrJob::from(GenerateQr { passport_version_id: id });
            jobs.push(ctx.client().enqueue(label).unique(id.to_string()).within(tx)?);
        }
        Ok((attempt.complete_in(tx)?, jobs))
    };
    let (completed, jobs) = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(completed)
}
