//! COMPILE_PASSPORT: from the facts of a sealed snapshot and a published rule package to a passport version.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::store::enqueue::Enqueued;
use tenure::{Attempt, Client, Completed, Ctx, Job, State, TenantName, Timestamp, Tx};
use uuid::Uuid;

use crate::app::App;
use crate::code::Refusal;
use crate::halt::Halt;
use crate::inputs::Inputs;
use crate::jobs::generate_qr::{GenerateQr, GenerateQrJob};
use crate::jobs::payload::Payload;
use crate::jobs::sign_passport::{SignPassport, SignPassportJob};
use crate::records::event::{Event, EventType};
use crate::records::version::StoredVersion;
use crate::sign::KeyId;
use crate::version::{BuildId, VersionKey};

/// What to compile. Everything that makes a version the one it is comes with the job: a second attempt makes the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompilePassport {
    /// Of which passport.
    pub passport_id: Uuid,
    /// From which facts.
    pub snapshot_id: Uuid,
    /// By which rules.
    pub rules_id: Uuid,
    /// By which build.
    pub build_id: String,
    /// As of when, RFC 3339.
    pub issued_at: String,
    /// Who signs it then.
    pub key_id: String,
}

/// The job.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "COMPILE_PASSPORT", queue = "passport", priority = "high", max_attempts = 5, timeout = "5m")]
#[job(backoff = "exponential 1s..1024s by attempts")]
pub struct CompilePassportJob(Payload<CompilePassport>);

impl From<CompilePassport> for CompilePassportJob {
    fn from(asked: CompilePassport) -> Self {
        Self(Payload::new(asked))
    }
}

impl CompilePassport {
    /// What will be unique about the version.
    pub fn key(&self, tenant: &TenantName) -> Result<VersionKey, Refusal> {
        Ok(VersionKey {
            tenant: tenant.clone(),
            passport_id: self.passport_id,
            snapshot_id: self.snapshot_id,
            rules_id: self.rules_id,
            build_id: BuildId::new(self.build_id.as_str())?,
            issued_at: Timestamp::parse("issued_at", &self.issued_at)?,
        })
    }
}

impl CompilePassportJob {
    /// Orders it, once at a time for a version.
    pub fn enqueue(self, tx: &Tx<'_>, client: &Client, tenant: &TenantName) -> Result<Enqueued, Halt> {
        let id = self.0.clone().read()?.key(tenant)?.version_id()?;
        Ok(client.enqueue(self).unique(id.to_string()).within(tx)?)
    }
}

/// Compiles and stores it. A version that is there already stays, and goes on from where it is.
pub async fn compile_passport(
    job: CompilePassportJob,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Halt> {
    let asked = job.0.read()?;
    let tenant = ctx.tenant().clone();
    let key = asked.key(&tenant)?;
    let key_id = KeyId::new(asked.key_id)?;
    let compiled = Inputs::find(app.database(), &key).await?.compile(&key)?;
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let (id, tenant, client) = (compiled.receipt.passport_version_id, &key.tenant, ctx.client());
        let mut jobs = Vec::new();
        if StoredVersion::add(tx, &compiled)? {
            let receipt = compiled.receipt_text.hash();
            let payload = json!({"passport_version_id": id, "passport_id": key.passport_id, "receipt_hash": receipt});
            let event = Event { kind: EventType::PassportCompiled, aggregate: id, payload };
            jobs = event.append(tx, client, tenant, Some(&ctx))?;
        }
        jobs.extend(follow(tx, client, tenant, id, &key_id)?);
        Ok((attempt.complete_in(tx)?, jobs))
    };
    let (completed, jobs) = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(completed)
}

/// What is still to be done with a version. Ordered again it goes on where its last job failed or was lost; one that waits
/// or runs is found by its key.
fn follow(
    tx: &Tx<'_>,
    client: &Client,
    tenant: &TenantName,
    id: Uuid,
    key_id: &KeyId,
) -> Result<Option<Enqueued>, Halt> {
    let key = id.to_string();
    Ok(match StoredVersion::status(tx, tenant, id)?.as_deref() {
        Some("COMPILED") => {
            let sign = SignPassport { passport_version_id: id, key_id: key_id.to_string() };
            Some(client.enqueue(SignPassportJob::from(sign)).unique(key).within(tx)?)
        }
        Some("SIGNED") => {
            let label = GenerateQr { passport_version_id: id };
            Some(client.enqueue(GenerateQrJob::from(label)).unique(key).within(tx)?)
        }
        _ => None,
    })
}
