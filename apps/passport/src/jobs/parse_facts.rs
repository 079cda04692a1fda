//! PARSE_FACTS: from a document to facts.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Attempt, Completed, Ctx, Job, State};
use uuid::Uuid;

use crate::app::App;
use crate::bom;
use crate::code::Refusal;
use crate::halt::Halt;
use crate::jobs::compile_passport::{CompilePassport, CompilePassportJob};
use crate::jobs::payload::Payload;
use crate::records::document::{Document, store_facts};
use crate::records::event::{Event, EventType};
use crate::records::snapshot::Snapshot;

/// Which document to read, and what to do with its facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParseFacts {
    /// The document version.
    pub document_version_id: Uuid,
    /// Where its snapshot is to be sealed and compiled at once, because whoever uploaded it vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<CompilePassport>,
}

/// The job.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "PARSE_FACTS", queue = "passport", priority = "normal", max_attempts = 5, timeout = "5m")]
#[job(backoff = "exponential 1s..1024s by attempts")]
pub struct ParseFactsJob(Payload<ParseFacts>);

impl From<ParseFacts> for ParseFactsJob {
    fn from(asked: ParseFacts) -> Self {
        Self(Payload::new(asked))
    }
}

/// Reads the document and stores its facts. One that was read before is not read again: its snapshot may be sealed.
pub async fn parse_facts(
    job: ParseFactsJob,
    State(app): State<App>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Halt> {
    let ParseFacts { document_version_id: id, then } = job.0.read()?;
    let tenant = ctx.tenant().clone();
    let Some(document) = Document::find(app.database(), &tenant, id).await? else {
        return Err(Refusal::invalid(format!("document version `{id}` is not known to tenant `{tenant}`")).into());
    };
    let facts = if document.is_parsed { Vec::new() } else { bom::facts(document.format, &document.content)? };
    let work = move |tx: &tenure::Tx<'_>| -> Result<_, Halt> {
        let mut jobs = Vec::new();
        if let Some(new) = store_facts(tx, &tenant, id, &facts)? {
            let payload = json!({"document_version_id": id, "facts": facts.len(), "new": new});
            let event = Event { kind: EventType::FactsParsed, aggregate: id, payload };
            jobs = event.append(tx, ctx.client(), &tenant, Some(&ctx))?;
        }
        if let Some(then) = then {
            jobs.extend(Snapshot::seal(tx, ctx.client(), &tenant, then.snapshot_id, Some(&ctx))?);
            jobs.push(CompilePassportJob::from(then).enqueue(tx, ctx.client(), &tenant)?);
        }
        Ok((attempt.complete_in(tx)?, jobs))
    };
    let (completed, jobs) = app.database().transaction(work).await?;
    app.say(&jobs);
    Ok(completed)
}
