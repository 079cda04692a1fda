//! From a label to what is stored of its passport, and to the checks of [`verify`]; and from a fact to its proof.

use tenure::{Database, StoreError};
use uuid::Uuid;

use crate::code::Refusal;
use crate::fact::Fact;
use crate::halt::Halt;
use crate::proof::{ProvenFact, Tree};
use crate::qr::Label;
use crate::records::battery;
use crate::records::document::{fact_rows, read_facts};
use crate::records::rule_package::StoredRules;
use crate::records::snapshot::Snapshot;
use crate::records::version::StoredVersion;
use crate::sign::{KeyId, KeyRing, PublicKey};
use crate::verify::{self, Evidence, Finding};
use crate::version::VersionKey;

/// Keys of facts that a refusal names.
const KEYS_TOLD_MAX: usize = 20;

/// Checks the passport that a label names; `None` when there is no such version. Its signer's public key is the one given,
/// or that of the key of its id in `keys`.
pub async fn check(
    database: &Database,
    keys: &KeyRing,
    public_key: Option<PublicKey>,
    label: &Label,
) -> Result<Option<Vec<Finding>>, Halt> {
    let Some(version) = StoredVersion::find_of_any_tenant(database, label.passport_version_id).await? else {
        return Ok(None);
    };
    let signer = version.key_id.clone().and_then(|id| KeyId::new(id).ok());
    let public_key = public_key.or_else(|| signer.and_then(|id| keys.public(&id).ok()));
    let facts = facts(database, &version).await?;
    let VersionKey { tenant, passport_id, rules_id, .. } = &version.key;
    let battery = battery::find(database, tenant, *passport_id).await?;
    let rules = StoredRules::find(database, tenant, *rules_id).await?;
    let rules = rules.map(|rules| rules.text).unwrap_or_default();
    let StoredVersion { payload, receipt, signature, .. } = version;
    let evidence = Evidence { payload, receipt, battery, facts, rules, signature, public_key };
    Ok(Some(verify::check(label, &evidence)))
}

/// The fact of this key with the proof that a version was made of it; `None` when there is no such version.
pub async fn prove(database: &Database, version: Uuid, fact_key: &str) -> Result<Option<ProvenFact>, Halt> {
    let Some(version) = StoredVersion::find_of_any_tenant(database, version).await? else { return Ok(None) };
    let facts = facts(database, &version).await??;
    let tree = Tree::new(facts.iter().map(Fact::hash).collect::<Result<_, _>>()?)?;
    let Some(fact) = facts.iter().find(|fact| fact.fact_key == fact_key) else {
        let known: Vec<&str> = facts.iter().take(KEYS_TOLD_MAX).map(|fact| fact.fact_key.as_str()).collect();
        let known = known.join(", ");
        return Err(Refusal::invalid(format!("there is no fact `{fact_key}` in it; there are {known}")).into());
    };
    Ok(ProvenFact::new(&tree, fact)?)
}

/// The facts of its snapshot, or why they cannot be read: that is a finding, not a failure.
async fn facts(database: &Database, version: &StoredVersion) -> Result<Result<Vec<Fact>, Refusal>, Halt> {
    let VersionKey { tenant, snapshot_id, .. } = &version.key;
    let snapshot = Snapshot::find(database, tenant, *snapshot_id).await?;
    let snapshot = snapshot.ok_or_else(|| StoreError::Corrupt("a version without its snapshot".into()))?;
    Ok(read_facts(&fact_rows(database, tenant, snapshot.document).await?))
}
