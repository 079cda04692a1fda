//! [`Inputs`]: what a passport version is made of, as the database has it. Whoever compiles asks for it, whoever signs asks
//! again: a row that somebody wrote in between is not what its inputs make.

use tenure::{Database, TenantName};
use uuid::Uuid;

use crate::code::{Code, Refusal};
use crate::fact::Fact;
use crate::halt::Halt;
use crate::passport::{Compiled, compile};
use crate::records::battery;
use crate::records::document::{fact_rows, read_facts};
use crate::records::rule_package::StoredRules;
use crate::records::snapshot::Snapshot;
use crate::rules::RulePackage;
use crate::subject::Battery;
use crate::version::VersionKey;

/// Battery, facts and rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    battery: Battery,
    facts: Vec<Fact>,
    rules: RulePackage,
}

impl Inputs {
    /// Those of this key: all known to its tenant, the snapshot SEALED, the rules PUBLISHED.
    pub async fn find(database: &Database, key: &VersionKey) -> Result<Self, Halt> {
        let tenant = &key.tenant;
        let unknown =
            |what: &str, id: Uuid| Refusal::invalid(format!("{what} `{id}` is not known to tenant `{tenant}`"));
        let Some(battery) = battery::find(database, tenant, key.passport_id).await? else {
            return Err(unknown("passport", key.passport_id).into());
        };
        let Some(snapshot) = Snapshot::find(database, tenant, key.snapshot_id).await? else {
            return Err(unknown("snapshot", key.snapshot_id).into());
        };
        let Some(rules) = StoredRules::find(database, tenant, key.rules_id).await? else {
            return Err(unknown("rule package", key.rules_id).into());
        };
        Ok(Self { battery, facts: facts(database, tenant, &snapshot).await?, rules: published(&rules)? })
    }

    /// The version that they make.
    pub fn compile(&self, key: &VersionKey) -> Result<Compiled, Refusal> {
        compile(key, &self.battery, &self.facts, &self.rules)
    }
}

/// The facts of a snapshot that is sealed.
async fn facts(database: &Database, tenant: &TenantName, snapshot: &Snapshot) -> Result<Vec<Fact>, Halt> {
    if !snapshot.is_sealed {
        let message = format!("snapshot `{}` is OPEN: seal it, then order the passport again", snapshot.id);
        return Err(Refusal::new(Code::SnapshotNotReady, message).into());
    }
    Ok(read_facts(&fact_rows(database, tenant, snapshot.document).await?)?)
}

/// The rules of a package that is published.
fn published(rules: &StoredRules) -> Result<RulePackage, Refusal> {
    if !rules.is_published {
        let message = format!("rule package `{}` is a DRAFT: publish it, then order the passport again", rules.id);
        return Err(Refusal::new(Code::RulePkgNotPublished, message));
    }
    RulePackage::parse(&rules.text)
}
