//! From facts and rules to a passport: the pure part of COMPILE_PASSPORT.
//!
//! ```text
//!   facts ──► components ──► what rules may ask ──► outcomes ─┐
//!     │                                                        ├──► payload ──► payload hash ─┐
//!     │           battery, ids ────────────────────────────────┘                              ├──► receipt ──► receipt hash
//!     └──► tree ──► proof root ───────────────────────────────────────────────────────────────┘
//! ```
//!
//! The same inputs give the same bytes, whoever compiles, and whenever.

use serde::Serialize;
use uuid::Uuid;

use crate::bom::{FACT_TYPE, SCHEMA_VERSION};
use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::component::Component;
use crate::digest::Digest;
use crate::fact::Fact;
use crate::proof::Tree;
use crate::receipt::Receipt;
use crate::rules::{Outcome, RulePackage};
use crate::subject::{Battery, Subject};
use crate::value::Value;
use crate::version::VersionKey;

/// What a passport of this shape says it is.
pub const FORMAT: &str = "BPC-PASSPORT-1";

/// A passport version before anybody stored it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The passport.
    pub payload: Canonical,
    /// The proof over its facts.
    pub tree: Tree,
    /// What names both.
    pub receipt: Receipt,
    /// The receipt's text; its hash is what is signed.
    pub receipt_text: Canonical,
}

/// The passport, as others read it.
#[derive(Serialize)]
struct Payload<'a> {
    format: &'a str,
    tenant: &'a str,
    passport_id: Uuid,
    snapshot_id: Uuid,
    rules_id: Uuid,
    rules_hash: Digest,
    battery: &'a Battery,
    mass_total_mg: Option<Value>,
    recycled_bp: Option<Value>,
    components: &'a [Component],
    outcomes: Vec<Outcome>,
}

/// Compiles. The order in which facts come makes no difference.
pub fn compile(key: &VersionKey, battery: &Battery, facts: &[Fact], rules: &RulePackage) -> Result<Compiled, Refusal> {
    let components = components(facts)?;
    let subject = Subject::new(battery, &components)?;
    let tree = Tree::new(facts.iter().map(Fact::hash).collect::<Result<_, _>>()?)?;
    let payload = Payload {
        format: FORMAT,
        tenant: key.tenant.as_str(),
        passport_id: key.passport_id,
        snapshot_id: key.snapshot_id,
        rules_id: key.rules_id,
        rules_hash: rules.hash(),
        battery,
        mass_total_mg: subject.get("mass_total_mg"),
        recycled_bp: subject.get("recycled_bp"),
        components: &components,
        outcomes: rules.run(&subject),
    };
    let payload = Canonical::of("passport", &payload)?;
    let receipt = Receipt {
        passport_version_id: key.version_id()?,
        key: key.clone(),
        payload_hash: payload.hash(),
        proof_root: tree.root(),
        facts: tree.leaves(),
        rules_hash: rules.hash(),
    };
    let receipt_text = receipt.canonical()?;
    Ok(Compiled { payload, tree, receipt, receipt_text })
}

/// What the facts say, by their keys.
fn components(facts: &[Fact]) -> Result<Vec<Component>, Refusal> {
    let mut components = facts.iter().map(component).collect::<Result<Vec<_>, _>>()?;
    components.sort_unstable_by_key(Component::key);
    if let Some(pair) = components.windows(2).find(|pair| pair[0].key() == pair[1].key()) {
        let key = pair[0].key();
        return Err(Refusal::invalid(format!("the snapshot is refused: two facts say something else about `{key}`")));
    }
    Ok(components)
}

fn component(fact: &Fact) -> Result<Component, Refusal> {
    let Fact { fact_type, fact_key, schema_version, payload } = fact;
    let refuse = |why: &str| Refusal::invalid(format!("fact `{fact_type}` `{fact_key}` is refused: {why}"));
    if fact_type != FACT_TYPE || *schema_version != SCHEMA_VERSION {
        return Err(refuse(&format!("facts of type {FACT_TYPE} and version {SCHEMA_VERSION} are compiled")));
    }
    let component: Component = serde_json::from_str(payload.as_str()).map_err(|error| refuse(&error.to_string()))?;
    if component.key() != *fact_key {
        return Err(refuse(&format!("its payload is about `{}`", component.key())));
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bom::{Format, facts};
    use crate::code::Code;

    fn bill() -> Vec<Fact> {
        let bill = "component,material,mass_g,recycled_percent\ncathode,nickel,3,10\nanode,graphite,1,\n";
        facts(Format::Csv, bill.as_bytes()).unwrap()
    }

    fn rules() -> RulePackage {
        let rule = json!({"id": "recycled", "path": "recycled_bp", "op": ">=", "value": 1000});
        RulePackage::parse(&json!({"rules": [rule]}).to_string()).unwrap()
    }

    #[test]
    fn the_same_inputs_give_the_same_bytes_in_any_order() {
        let compiled = compile(&VersionKey::example(), &Battery::example(), &bill(), &rules()).unwrap();
        let mut turned = bill();
        turned.reverse();
        assert_eq!(compile(&VersionKey::example(), &Battery::example(), &turned, &rules()).unwrap(), compiled);
        let payload: serde_json::Value = serde_json::from_str(compiled.payload.as_str()).unwrap();
        assert_eq!(payload["mass_total_mg"], 4_000);
        assert_eq!(
            payload["outcomes"][0],
            json!({"id": "recycled", "path": "recycled_bp", "found": 750, "verdict": "failed"})
        );
        assert_eq!(payload["components"][0]["component"], "anode");
        let receipt = &compiled.receipt;
        assert_eq!((receipt.payload_hash, receipt.proof_root), (compiled.payload.hash(), compiled.tree.root()));
        assert_eq!((receipt.facts, receipt.rules_hash), (2, rules().hash()));
        assert_eq!(Receipt::read(compiled.receipt_text.as_str()).unwrap(), *receipt);
    }

    #[test]
    fn facts_that_do_not_fit_together_are_refused() {
        type Change = fn(&mut Vec<Fact>);
        let changes: [(&str, Change); 5] = [
            ("without facts", |facts| facts.clear()),
            ("facts of type bom.component", |facts| facts[0].fact_type.push('x')),
            ("and version 1", |facts| facts[0].schema_version = 2),
            ("its payload is about `cathode/nickel`", |facts| facts[0].fact_key.push('x')),
            ("two facts say something else about `cathode/nickel`", |facts| {
                let other = r#"{"component":"cathode","hazardous":null,"mass_mg":1,"material":"nickel","origin_country":null,"recycled_bp":null}"#;
                facts.push(Fact { payload: Canonical::read("payload", other).unwrap(), ..facts[0].clone() });
            }),
        ];
        for (why, change) in changes {
            let mut facts = bill();
            change(&mut facts);
            let refused = compile(&VersionKey::example(), &Battery::example(), &facts, &rules()).unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
        }
    }

    /// Shows: S4.30
    #[test]
    fn a_passport_of_too_many_components_is_too_large() {
        let lines: String = (0..12_000).map(|i| format!("part number {i},nickel,1\n")).collect();
        let facts = facts(Format::Csv, format!("component,material,mass_g\n{lines}").as_bytes()).unwrap();
        assert_eq!(
            compile(&VersionKey::example(), &Battery::example(), &facts, &rules()).unwrap_err().code,
            Code::PayloadTooLarge
        );
    }
}
