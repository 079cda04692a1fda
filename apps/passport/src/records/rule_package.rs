//! Rule packages: DRAFT until somebody publishes them, PUBLISHED and unchangeable ever after.

use serde_json::json;
use tenure::store::enqueue::Enqueued;
use tenure::{Client, Database, StoreError, TenantName, Tx, row};
use uuid::Uuid;

use crate::code::Refusal;
use crate::halt::Halt;
use crate::id::derived;
use crate::records::event::{Event, EventType};
use crate::rules::RulePackage;

/// A package as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRules {
    /// Follows from what is in it.
    pub id: Uuid,
    /// Whether it may be used.
    pub is_published: bool,
    /// Its canonical JSON.
    pub text: String,
}

impl StoredRules {
    /// Stores a draft, unless it is there already. It was checked by being read.
    pub fn add(tx: &Tx<'_>, tenant: &TenantName, rules: &RulePackage) -> Result<Uuid, Halt> {
        let id = derived("rules", &[tenant.as_str(), &rules.hash().to_hex()])?;
        if Self::is_there(tx, tenant, id)? {
            return Ok(id);
        }
        let insert = "insert into passport_rule_package (tenant_id, rules_id, status, rules) \
                      values ($1, $2, 'DRAFT', $3) on conflict do nothing";
        tx.execute(insert, row![tenant.as_str(), id.to_string(), rules.canonical().as_str()])?;
        Ok(id)
    }

    /// Publishes it, as a person asked. What is published stays so.
    pub fn publish(tx: &Tx<'_>, client: &Client, tenant: &TenantName, id: Uuid) -> Result<Vec<Enqueued>, Halt> {
        let update = "update passport_rule_package set status = 'PUBLISHED', published_at = $3 \
                      where tenant_id = $1 and rules_id = $2 and status = 'DRAFT'";
        if tx.execute(update, row![tenant.as_str(), id.to_string(), tx.now()?])? == 1 {
            let event = Event { kind: EventType::RulesPublished, aggregate: id, payload: json!({"rules_id": id}) };
            return event.append(tx, client, tenant, None);
        }
        match Self::is_there(tx, tenant, id)? {
            true => Ok(Vec::new()),
            false => Err(Refusal::invalid(format!("rule package `{id}` is not known to tenant `{tenant}`")).into()),
        }
    }

    fn is_there(tx: &Tx<'_>, tenant: &TenantName, id: Uuid) -> Result<bool, StoreError> {
        let select = "select 1 as one from passport_rule_package where tenant_id = $1 and rules_id = $2";
        Ok(tx.query_first(select, row![tenant.as_str(), id.to_string()])?.is_some())
    }

    /// The one of this id, if the tenant has it.
    pub async fn find(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Self>, Halt> {
        let select = "select status = 'PUBLISHED' as is_published, rules from passport_rule_package \
                      where tenant_id = $1 and rules_id = $2";
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        Ok(Some(Self { id, is_published: row.get("is_published")?, text: row.get("rules")? }))
    }
}
