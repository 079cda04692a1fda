//! What people ask for: upload, seal, publish, compile. The server, the story and the tests ask here.

use tenure::{JobId, TenantName, Timestamp, Tx};
use uuid::Uuid;

use crate::app::App;
use crate::bom::{DOCUMENT_BYTES_MAX, Format};
use crate::code::{Code, Refusal};
use crate::halt::Halt;
use crate::jobs::{CompilePassport, CompilePassportJob, ParseFacts, ParseFactsJob};
use crate::records::battery;
use crate::records::document::Document;
use crate::records::rule_package::StoredRules;
use crate::records::snapshot::Snapshot;
use crate::rules::RulePackage;
use crate::sign::KeyId;
use crate::subject::Battery;

/// A passport that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Which passport.
    pub passport_id: Uuid,
    /// By which rules.
    pub rules_id: Uuid,
    /// As of when; now unless set. Two orders of one moment are one version.
    pub issued_at: Option<Timestamp>,
    /// Who signs it; the key of the settings unless set.
    pub key_id: Option<String>,
}

/// What became of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uploaded {
    /// The document version.
    pub document_version_id: Uuid,
    /// Its snapshot, OPEN unless it was sealed before.
    pub snapshot_id: Uuid,
    /// The job that reads it.
    pub job_id: JobId,
    /// The version that will come of it, where one was ordered.
    pub passport_version_id: Option<Uuid>,
}

/// Stores a document with an open snapshot of it, and has its facts read. With an order its uploader vouches for it: once
/// read it is sealed and compiled.
pub async fn upload(
    app: &App,
    tenant: &TenantName,
    format: Format,
    content: Vec<u8>,
    order: Option<Order>,
) -> Result<Uploaded, Halt> {
    if content.len() > DOCUMENT_BYTES_MAX {
        let message =
            format!("a document of {} bytes is refused: at most {DOCUMENT_BYTES_MAX} are read", content.len());
        return Err(Refusal::new(Code::PayloadTooLarge, message).into());
    }
    let (inner, tenant) = (app.clone(), tenant.clone());
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let document_version_id = Document::add(tx, &tenant, format, &content)?;
        let snapshot_id = Snapshot::open(tx, &tenant, document_version_id)?;
        let then = order.map(|order| asked(&inner, tx, snapshot_id, &order)).transpose()?;
        let version = then.as_ref().map(|then| then.key(&tenant).and_then(|key| key.version_id())).transpose()?;
        let job = ParseFactsJob::from(ParseFacts { document_version_id, then });
        // With an order it is more than reading: another one is another job.
        let key = version.map_or_else(|| document_version_id.to_string(), |id| format!("{document_version_id}:{id}"));
        let stored = inner.client(&tenant).enqueue(job).unique(key).within(tx)?;
        Ok((Uploaded { document_version_id, snapshot_id, job_id: stored.job(), passport_version_id: version }, stored))
    };
    let (uploaded, stored) = app.database().transaction(work).await?;
    app.say([&stored]);
    Ok(uploaded)
}

/// Vouches for a snapshot whose document was read.
pub async fn seal(app: &App, tenant: &TenantName, snapshot: Uuid) -> Result<(), Halt> {
    let (client, tenant) = (app.client(tenant), tenant.clone());
    let work = move |tx: &Tx<'_>| Snapshot::seal(tx, &client, &tenant, snapshot, None);
    let jobs = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(())
}

/// Stores rules as a draft. Their types are checked here, so that nobody publishes what cannot be run.
pub async fn draft(app: &App, tenant: &TenantName, rules: &str) -> Result<Uuid, Halt> {
    let (rules, tenant) = (RulePackage::parse(rules)?, tenant.clone());
    app.database().transaction(move |tx: &Tx<'_>| StoredRules::add(tx, &tenant, &rules)).await
}

/// Publishes a draft.
pub async fn publish(app: &App, tenant: &TenantName, rules: Uuid) -> Result<(), Halt> {
    let (client, tenant) = (app.client(tenant), tenant.clone());
    let work = move |tx: &Tx<'_>| StoredRules::publish(tx, &client, &tenant, rules);
    let jobs = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(())
}

/// Stores a battery; answers the id of its passport.
pub async fn register(app: &App, tenant: &TenantName, battery: Battery) -> Result<Uuid, Halt> {
    let tenant = tenant.clone();
    app.database().transaction(move |tx: &Tx<'_>| battery::add(tx, &tenant, battery)).await
}

/// Has a passport compiled; answers the id that its version will have, and the job. Ordered again as of the same moment, a
/// version that is not yet signed or labeled goes on from there, with the key of the new order.
pub async fn compile(app: &App, tenant: &TenantName, snapshot: Uuid, order: Order) -> Result<(Uuid, JobId), Halt> {
    let (inner, tenant) = (app.clone(), tenant.clone());
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let asked = asked(&inner, tx, snapshot, &order)?;
        let version = asked.key(&tenant)?.version_id()?;
        let stored = CompilePassportJob::from(asked).enqueue(tx, &inner.client(&tenant), &tenant)?;
        Ok((version, stored))
    };
    let (version, stored) = app.database().transaction(work).await?;
    app.say([&stored]);
    Ok((version, stored.job()))
}

/// An order with everything that it left open.
fn asked(app: &App, tx: &Tx<'_>, snapshot_id: Uuid, order: &Order) -> Result<CompilePassport, Halt> {
    let issued_at = order.issued_at.map_or_else(|| tx.now(), Ok)?;
    // Refused here: signed under no name it would fail when nobody looks any more.
    let key_id = order.key_id.as_deref().map(KeyId::new).transpose()?;
    Ok(CompilePassport {
        passport_id: order.passport_id,
        snapshot_id,
        rules_id: order.rules_id,
        build_id: app.settings().build_id.as_str().to_owned(),
        issued_at: issued_at.to_string(),
        key_id: key_id.as_ref().unwrap_or(&app.settings().key_id).to_string(),
    })
}
