//! Documents as they were uploaded, and the facts that were read from them.

use tenure::sink::{Sink, Type};
use tenure::{Database, Record, StoreError, TenantName, Tx, row};
use uuid::Uuid;

use crate::bom::Format;
use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;
use crate::fact::Fact;
use crate::halt::Halt;
use crate::id::derived;

/// A document version: it never changes, another text is another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Follows from what is in it.
    pub id: Uuid,
    /// How it is written.
    pub format: Format,
    /// As it came.
    pub content: Vec<u8>,
    /// Whether its facts are stored.
    pub is_parsed: bool,
}

impl Document {
    /// Stores it, unless it is there already.
    pub fn add(tx: &Tx<'_>, tenant: &TenantName, format: Format, content: &[u8]) -> Result<Uuid, Halt> {
        let id = derived("document", &[tenant.as_str(), format.as_str(), &Digest::of(content).to_hex()])?;
        let insert = "insert into passport_document_version (tenant_id, document_version_id, format, content, uploaded_at) \
                      values ($1, $2, $3, $4, $5) on conflict do nothing";
        let row = row![tenant.as_str(), id.to_string(), format.as_str(), content.to_vec(), tx.now()?];
        tx.execute(insert, row)?;
        Ok(id)
    }

    /// The one of this id, if the tenant has it.
    pub async fn find(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Self>, Halt> {
        let select = "select format, content, parsed_at is not null as is_parsed from passport_document_version \
                      where tenant_id = $1 and document_version_id = $2";
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let format = Format::parse(&row.get::<String>("format")?)?;
        Ok(Some(Self { id, format, content: row.get("content")?, is_parsed: row.get("is_parsed")? }))
    }
}

/// Stores what a document says, once: it may have been sealed since. Facts that another document stated before stay as they
/// are. Answers how many are new; `None`: it was read before, and nothing is stored.
pub fn store_facts(tx: &Tx<'_>, tenant: &TenantName, document: Uuid, facts: &[Fact]) -> Result<Option<u64>, Halt> {
    // First: two who read it at once wait for each other here.
    let parsed = "update passport_document_version set parsed_at = $3 \
                  where tenant_id = $1 and document_version_id = $2 and parsed_at is null";
    if tx.execute(parsed, row![tenant.as_str(), document.to_string(), tx.now()?])? == 0 {
        return Ok(None);
    }
    let named = |sink: tenure::sink::SinkBuilder| {
        sink.key("fact_type", Type::Text)
            .key("fact_key", Type::Text)
            .key("schema_version", Type::Int)
            .key("payload_hash", Type::Text)
    };
    let known = named(Sink::table("passport_fact").key("tenant_id", Type::Text)).value("payload", Type::Text);
    let said =
        Sink::table("passport_document_fact").key("tenant_id", Type::Text).key("document_version_id", Type::Text);
    let said = named(said).value("line", Type::Int);
    let name = |fact: &Fact| (fact.fact_type.clone(), fact.fact_key.clone(), fact.payload_hash().to_hex());
    let rows = facts.iter().map(|fact| {
        let (fact_type, key, hash) = name(fact);
        row![tenant.as_str(), fact_type, key, fact.schema_version, hash, fact.payload.as_str()]
    });
    let new = known.overwrite()?.upsert(tx, rows.collect())?.inserted;
    let rows = (1_i64..).zip(facts).map(|(line, fact)| {
        let (fact_type, key, hash) = name(fact);
        row![tenant.as_str(), document.to_string(), fact_type, key, fact.schema_version, hash, line]
    });
    said.overwrite()?.upsert(tx, rows.collect())?;
    Ok(Some(new))
}

/// The facts of a document, as they are stored.
pub async fn fact_rows(database: &Database, tenant: &TenantName, document: Uuid) -> Result<Vec<Record>, StoreError> {
    let select = include_str!("../sql/find_facts.sql");
    database.query(select, row![tenant.as_str(), document.to_string()]).await
}

/// Facts from their rows. One that was changed since it was stored is refused.
pub fn read_facts(rows: &[Record]) -> Result<Vec<Fact>, Refusal> {
    rows.iter().map(read_fact).collect()
}

fn read_fact(row: &Record) -> Result<Fact, Refusal> {
    let corrupt = |error: StoreError| Refusal::invalid(format!("a fact cannot be read: {error}"));
    let text = |column| row.get::<String>(column).map_err(corrupt);
    let (fact_type, fact_key, stored) = (text("fact_type")?, text("fact_key")?, text("payload_hash")?);
    let payload = Canonical::read("fact", &text("payload")?)?;
    if payload.hash().to_hex() != stored {
        let why = format!("its payload has the hash {}, and was stored with {stored}", payload.hash());
        return Err(Refusal::invalid(format!("fact `{fact_type}` `{fact_key}` was changed: {why}")));
    }
    Ok(Fact { fact_type, fact_key, schema_version: row.get("schema_version").map_err(corrupt)?, payload })
}
