//! Checking a passport from its label: every hash is computed anew from what is stored, and compared with what is
//! printed; the passport itself is compiled anew, since a hash fits whatever was hashed. What does not fit is named.

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;
use crate::fact::Fact;
use crate::passport::{Compiled, compile};
use crate::proof::Tree;
use crate::qr::Label;
use crate::receipt::Receipt;
use crate::rules::RulePackage;
use crate::sign::{PublicKey, Signature};
use crate::subject::Battery;

/// What is stored of a passport version.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The passport's text.
    pub payload: String,
    /// The receipt's text.
    pub receipt: String,
    /// The battery that it is of, if it is known.
    pub battery: Option<Battery>,
    /// The facts of its snapshot, or why they cannot be read.
    pub facts: Result<Vec<Fact>, Refusal>,
    /// The text of its rule package.
    pub rules: String,
    /// Its signature, as it is stored.
    pub signature: Option<String>,
    /// Who should have made that.
    pub public_key: Option<PublicKey>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub what: &'static str,
    /// Why it does not hold; `None`: it does.
    pub wrong: Option<String>,
}

/// All checks, in their order. The passport is genuine when none of them is wrong.
pub fn check(label: &Label, evidence: &Evidence) -> Vec<Finding> {
    let Evidence { payload, receipt, facts, rules, signature, public_key, .. } = evidence;
    let hashes = |facts: Vec<Fact>| facts.iter().map(Fact::hash).collect::<Result<_, _>>();
    let root = facts.clone().and_then(hashes).and_then(Tree::new);
    let named = Receipt::read(receipt);
    let receipt_hash = Digest::of(receipt.as_bytes());
    vec![
        compared("payload hash", label.payload_hash, Digest::of(payload.as_bytes())),
        match &root {
            Ok(tree) => compared("proof root", label.proof_root, tree.root()),
            Err(refusal) => wrong("proof root", &refusal.message),
        },
        compared("receipt hash", label.receipt_hash, receipt_hash),
        match &named {
            Ok(receipt) => names(label, receipt, root.as_ref().ok().map(Tree::leaves)),
            Err(refusal) => wrong("receipt", &refusal.message),
        },
        match (&named, Canonical::read("rule package", rules)) {
            (Ok(receipt), Ok(rules)) => compared("rules hash", receipt.rules_hash, rules.hash()),
            (Err(_), _) => wrong("rules hash", "the receipt that names it cannot be read"),
            (_, Err(refusal)) => wrong("rules hash", &refusal.message),
        },
        match named.and_then(|receipt| made(&receipt, evidence)) {
            Ok(made) if made.payload.as_str() == payload => Finding { what: "payload", wrong: None },
            Ok(made) => {
                wrong("payload", &format!("facts and rules make another one, with the hash {}", made.payload.hash()))
            }
            Err(refusal) => wrong("payload", &format!("it cannot be compiled anew: {}", refusal.message)),
        },
        // Over what is printed: a receipt that was exchanged with its hash has another.
        signed(label.receipt_hash, signature.as_deref(), public_key.as_ref()),
    ]
}

/// What its facts and rules make, whoever signed something else.
fn made(receipt: &Receipt, evidence: &Evidence) -> Result<Compiled, Refusal> {
    let Evidence { battery, facts, rules, .. } = evidence;
    let battery = battery.as_ref().ok_or_else(|| Refusal::invalid("its battery is not known here"))?;
    let facts = facts.as_ref().map_err(Refusal::clone)?;
    compile(&receipt.key, battery, facts, &RulePackage::parse(rules)?)
}

/// Whether the receipt is about this label, and about as many facts as there are where they can be read.
fn names(label: &Label, receipt: &Receipt, facts: Option<usize>) -> Finding {
    let what = "receipt";
    if receipt.passport_version_id != label.passport_version_id {
        return wrong(what, &format!("it is of version {}", receipt.passport_version_id));
    }
    if let Some(facts) = facts.filter(|facts| receipt.facts != *facts) {
        return wrong(what, &format!("it is about {} facts, there are {facts}", receipt.facts));
    }
    match (receipt.payload_hash == label.payload_hash, receipt.proof_root == label.proof_root) {
        (true, true) => Finding { what, wrong: None },
        (false, _) => wrong(what, &format!("it names the payload hash {}", receipt.payload_hash)),
        (_, false) => wrong(what, &format!("it names the proof root {}", receipt.proof_root)),
    }
}

fn signed(receipt_hash: Digest, signature: Option<&str>, public_key: Option<&PublicKey>) -> Finding {
    let what = "signature";
    let (Some(signature), Some(key)) = (signature, public_key) else {
        let missing =
            if signature.is_none() { "it is not signed" } else { "the public key of its signer is not known here" };
        return wrong(what, missing);
    };
    match Signature::from_hex(signature) {
        Ok(signature) if key.verify(receipt_hash, &signature) => Finding { what, wrong: None },
        Ok(_) => wrong(what, &format!("it was not made by {} over this receipt hash", key.to_hex())),
        Err(invalid) => wrong(what, &invalid.to_string()),
    }
}

fn compared(what: &'static str, printed: Digest, computed: Digest) -> Finding {
    if printed == computed {
        return Finding { what, wrong: None };
    }
    wrong(what, &format!("expected {printed}, computed {computed}"))
}

fn wrong(what: &'static str, why: &str) -> Finding {
    Finding { what, wrong: Some(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::bom::{Format, facts};
    use crate::sign::{KeyId, KeyRing};
    use crate::version::VersionKey;

    /// A genuine passport.
    fn genuine() -> (Label, Evidence) {
        signed_with(|_| ())
    }

    /// A passport whose text was changed before it was signed.
    fn signed_with(change: fn(&mut String)) -> (Label, Evidence) {
        let text = str::to_owned;
        let facts = facts(Format::Csv, b"component,material,mass_g\ncathode,nickel,3\nanode,graphite,1\n").unwrap();
        let rules = RulePackage::parse(r#"{"rules":[]}"#).unwrap();
        let mut compiled = compile(&VersionKey::example(), &Battery::example(), &facts, &rules).unwrap();
        let mut payload = text(compiled.payload.as_str());
        change(&mut payload);
        compiled.payload = Canonical::read("payload", &payload).unwrap();
        compiled.receipt.payload_hash = compiled.payload.hash();
        compiled.receipt_text = compiled.receipt.canonical().unwrap();
        let (ring, id) = (KeyRing::parse(&format!("k={}", "07".repeat(32))).unwrap(), KeyId::new("k").unwrap());
        let receipt_hash = compiled.receipt_text.hash();
        let label = Label {
            passport_version_id: compiled.receipt.passport_version_id,
            payload_hash: compiled.payload.hash(),
            proof_root: compiled.tree.root(),
            receipt_hash,
        };
        let evidence = Evidence {
            payload: text(compiled.payload.as_str()),
            receipt: text(compiled.receipt_text.as_str()),
            battery: Some(Battery::example()),
            facts: Ok(facts),
            rules: text(rules.canonical().as_str()),
            signature: Some(ring.sign(&id, receipt_hash).unwrap().to_hex()),
            public_key: Some(ring.public(&id).unwrap()),
        };
        (label, evidence)
    }

    fn wrong(label: &Label, evidence: &Evidence) -> Vec<&'static str> {
        check(label, evidence).iter().filter(|finding| finding.wrong.is_some()).map(|finding| finding.what).collect()
    }

    #[test]
    fn a_genuine_passport_has_nothing_wrong() {
        let (label, evidence) = genuine();
        assert_eq!(wrong(&label, &evidence), [""; 0]);
        assert_eq!(check(&label, &evidence).len(), 7);
    }

    #[test]
    fn whatever_was_changed_is_named() {
        type Change = fn(&mut Label, &mut Evidence);
        let changes: [(&[&str], Change); 13] = [
            (&["payload hash", "payload"], |_, evidence| evidence.payload = evidence.payload.replace("3000", "3001")),
            (&["proof root", "receipt", "payload"], |_, evidence| {
                evidence.facts = evidence.facts.clone().map(|f| f[..1].to_vec());
            }),
            (&["proof root", "payload"], |_, evidence| {
                let facts = evidence.facts.as_mut().unwrap();
                facts[0].payload = Canonical::of("payload", &1).unwrap();
            }),
            (&["proof root", "payload"], |_, evidence| evidence.facts = Err(Refusal::invalid("changed"))),
            (&["receipt hash", "receipt", "rules hash", "payload"], |_, evidence| evidence.receipt.push(' ')),
            (&["receipt hash", "receipt"], |_, evidence| {
                let (was, is) = (Digest::of(evidence.payload.as_bytes()).to_hex(), Digest::of(b"another").to_hex());
                evidence.receipt = evidence.receipt.replace(&was, &is);
            }),
            (&["rules hash", "payload"], |_, evidence| evidence.rules = r#"{"rules":[1]}"#.to_owned()),
            (&["payload"], |_, evidence| evidence.battery = None),
            (&["signature"], |_, evidence| evidence.signature = None),
            (&["signature"], |_, evidence| evidence.signature = Some("00".repeat(64))),
            (&["signature"], |_, evidence| evidence.public_key = None),
            (&["receipt"], |label, _| label.passport_version_id = Uuid::from_u128(9)),
            (&["receipt hash", "signature"], |label, _| label.receipt_hash = Digest::of(b"another")),
        ];
        for (expected, change) in changes {
            let (mut label, mut evidence) = genuine();
            change(&mut label, &mut evidence);
            assert_eq!(wrong(&label, &evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn what_was_changed_before_it_was_signed_is_named() {
        let (label, evidence) = signed_with(|payload| *payload = payload.replace("3000", "3001"));
        assert_eq!(wrong(&label, &evidence), ["payload"], "every hash fits, and the signature too");
    }
}
