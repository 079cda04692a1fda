//! The rule package: typed comparisons whose outcomes stand in the passport.
//!
//! ```json
//! {"rules": [
//!   {"id": "mass-limit",  "path": "mass_total_mg",           "op": "<=", "value": 500000000},
//!   {"id": "cobalt-2031", "path": "material.cobalt.recycled_bp", "op": ">=", "value": 1600},
//!   {"id": "category",    "path": "battery.category",        "op": "in", "value": ["EV", "LMT", "industrial"]}]}
//! ```
//!
//! What a path holds has a type ([`subject`](crate::subject)); a rule must compare it with the same. All rules are
//! checked before any is run: `RULE_TYPE_ERROR` names the rule, the type that is expected and the one that was found. A
//! package that was read cannot fail any more. A rule that does not hold is an outcome, not an error: it is what the
//! passport is there to tell.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::canonical::Canonical;
use crate::code::{Code, Refusal};
use crate::digest::Digest;
use crate::op::Op;
use crate::subject::{Subject, paths, type_of};
use crate::value::{Type, Value, found};

/// Most rules of a package.
pub const RULES_MAX: usize = 500;
/// Most values of one `in`.
pub const LIST_MAX: usize = 200;
/// Longest id of a rule, in bytes.
const ID_BYTES_MAX: usize = 100;

/// Rules that were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePackage {
    rules: Vec<Rule>,
    canonical: Canonical,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    id: String,
    path: String,
    op: Op,
    /// One, or those of an `in`; all of the path's type.
    values: Vec<Value>,
}

/// What a rule says about a battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// There is nothing that it is about.
    NotApplicable,
}

/// A rule with its verdict, as it stands in a passport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Which rule.
    pub id: String,
    /// What it asked for.
    pub path: String,
    /// What stood there.
    pub found: Option<Value>,
    /// What it says.
    pub verdict: Verdict,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    rules: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    id: String,
    path: String,
    op: String,
    value: Json,
}

impl RulePackage {
    /// Reads and checks a package. What is malformed is a `VALIDATION_ERROR`, what cannot be compared a `RULE_TYPE_ERROR`,
    /// what is too long `PAYLOAD_TOO_LARGE`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |why: &dyn std::fmt::Display| Refusal::invalid(format!("the rule package is refused: {why}"));
        let document: Document = serde_json::from_str(text).map_err(|error| refuse(&error))?;
        let value: Json = serde_json::from_str(text).map_err(|error| refuse(&error))?;
        if document.rules.len() > RULES_MAX {
            let message =
                format!("a package of {} rules is refused: at most {RULES_MAX} are read", document.rules.len());
            return Err(Refusal::new(Code::PayloadTooLarge, message));
        }
        // The types first: a number beyond 2^53 is told with the name of its rule.
        let rules = document.rules.iter().map(Rule::check).collect::<Result<Vec<_>, _>>()?;
        for (i, rule) in rules.iter().enumerate() {
            if rules[..i].iter().any(|other| other.id == rule.id) {
                return Err(refuse(&format!("there are two rules `{}`: give each an id of its own", rule.id)));
            }
        }
        Ok(Self { rules, canonical: Canonical::of("rule package", &value)? })
    }

    /// The SHA-256 of its canonical JSON: white space and order of members do not matter.
    pub const fn hash(&self) -> Digest {
        self.canonical.hash()
    }

    /// Its canonical JSON.
    pub const fn canonical(&self) -> &Canonical {
        &self.canonical
    }

    /// What each rule says, in their order.
    pub fn run(&self, subject: &Subject) -> Vec<Outcome> {
        self.rules.iter().map(|rule| rule.run(subject)).collect()
    }
}

impl Rule {
    fn check(text: &RuleText) -> Result<Self, Refusal> {
        let RuleText { id, path, op, value } = text;
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(allowed) {
            let limit = format!("it is 1 to {ID_BYTES_MAX} of a-z A-Z 0-9 . _ -");
            return Err(tenure::Invalid::new("rule id", id, limit).into());
        }
        let wrong = |why: String| Refusal::new(Code::RuleTypeError, format!("rule `{id}` is refused: {why}"));
        let op = Op::parse(op).ok_or_else(|| {
            let invalid = tenure::Invalid::new("op", op, format!("it is one of {}", Op::ALL.map(Op::as_str).join(" ")));
            Refusal::invalid(format!("rule `{id}`, {invalid}"))
        })?;
        let kind = type_of(path).ok_or_else(|| {
            let invalid = tenure::Invalid::new("path", path, format!("nothing stands there; there are {}", paths()));
            wrong(invalid.to_string())
        })?;
        if op.needs_order() && !kind.is_ordered() {
            let out = "use =, != or in";
            return Err(wrong(format!(
                "`{}` expects int, decimal or date, found {kind} at `{path}`: {out}",
                op.as_str()
            )));
        }
        let one = |json: &Json| kind.read(json).ok_or_else(|| wrong(mismatch(kind, path, json)));
        let values = match (op, value) {
            (Op::In, Json::Array(items)) if (1..=LIST_MAX).contains(&items.len()) => {
                items.iter().map(one).collect::<Result<Vec<_>, _>>()?
            }
            (Op::In, other) => {
                let found = found(other);
                return Err(wrong(format!(
                    "`in` expects a list of 1 to {LIST_MAX} {kind}, found {found}: write [ … ]"
                )));
            }
            (_, value) => vec![one(value)?],
        };
        Ok(Self { id: id.clone(), path: path.clone(), op, values })
    }

    fn run(&self, subject: &Subject) -> Outcome {
        let found = subject.get(&self.path);
        let verdict = match &found {
            None => Verdict::NotApplicable,
            Some(found) if self.op.holds(found, &self.values) => Verdict::Passed,
            Some(_) => Verdict::Failed,
        };
        Outcome { id: self.id.clone(), path: self.path.clone(), found, verdict }
    }
}

/// What was expected, what was found, and how it is written right.
fn mismatch(expected: Type, path: &str, json: &Json) -> String {
    let shown = tenure::Invalid::new("value", json, "").value;
    format!("`{path}` expects {expected}, found {} {shown}: write {}", found(json), expected.example())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bom::{Format, components};
    use crate::subject::Battery;

    fn subject() -> Subject {
        let bill = "component,material,mass_mg\ncathode,nickel,2000\n";
        Subject::new(&Battery::example(), &components(Format::Csv, bill.as_bytes()).unwrap()).unwrap()
    }

    fn package(path: &str, op: &str, value: &Json) -> Result<RulePackage, Refusal> {
        RulePackage::parse(&json!({"rules": [{"id": "r1", "path": path, "op": op, "value": value}]}).to_string())
    }

    fn verdict(path: &str, op: &str, value: &Json) -> Verdict {
        package(path, op, value).unwrap().run(&subject())[0].verdict
    }

    #[test]
    fn every_operator_compares_as_it_says() {
        use Verdict::{Failed, Passed};
        for (op, below, same, above) in [
            ("=", Failed, Passed, Failed),
            ("!=", Passed, Failed, Passed),
            ("<", Failed, Failed, Passed),
            ("<=", Failed, Passed, Passed),
            (">", Passed, Failed, Failed),
            (">=", Passed, Passed, Failed),
        ] {
            for (path, values) in [
                ("mass_total_mg", [json!(1_999), json!(2_000), json!(2_001)]),
                ("battery.capacity_ah", [json!("94.499999"), json!("94.5"), json!(95)]),
                ("battery.manufactured_on", [json!("2026-11-14"), json!("2026-11-15"), json!("2026-11-16")]),
            ] {
                assert_eq!(values.map(|value| verdict(path, op, &value)), [below, same, above], "{path} {op}");
            }
        }
        assert_eq!(verdict("battery.category", "in", &json!(["LMT", "EV"])), Passed);
        assert_eq!(verdict("battery.category", "in", &json!(["LMT", "ev"])), Failed);
        assert_eq!(verdict("hazardous", "=", &json!(false)), Passed);
        assert_eq!(verdict("battery.model", "!=", &json!("P-90")), Failed);
    }

    #[test]
    fn a_rule_about_nothing_is_not_applicable() {
        assert_eq!(verdict("material.cobalt.recycled_bp", ">=", &json!(1600)), Verdict::NotApplicable);
        assert_eq!(verdict("material.cobalt.mass_mg", "<=", &json!(0)), Verdict::Passed);
    }

    /// Shows: S4.29
    #[test]
    fn a_type_error_names_the_rule_the_expected_and_the_found_type() {
        for (path, op, value, why) in [
            (
                "mass_total_mg",
                "<=",
                json!("heavy"),
                "`mass_total_mg` expects int, found text `\"heavy\"`: write a whole",
            ),
            ("mass_total_mg", "<=", json!(1.5), "expects int, found a number with a fraction `1.5`"),
            ("mass_total_mg", "<=", json!(u64::MAX), "expects int, found a number beyond 2^53"),
            (
                "battery.capacity_ah",
                ">",
                json!(94.5),
                "expects decimal, found a number with a fraction `94.5`: write a",
            ),
            ("battery.manufactured_on", "<", json!("soon"), "expects date, found text `\"soon\"`: write a day"),
            ("hazardous", "=", json!("false"), "expects bool, found text"),
            ("battery.model", "=", json!(90), "expects text, found int `90`"),
            (
                "battery.model",
                "<",
                json!("Q"),
                "`<` expects int, decimal or date, found text at `battery.model`: use =",
            ),
            ("hazardous", ">=", json!(true), "`>=` expects int, decimal or date, found bool"),
            ("battery.category", "in", json!("EV"), "`in` expects a list of 1 to 200 text, found text"),
            ("battery.category", "in", json!([]), "`in` expects a list of 1 to 200 text, found a list"),
            ("battery.category", "in", json!(["EV", 7]), "expects text, found int `7`"),
            ("components", "=", json!([1]), "expects int, found a list"),
            ("components", "=", json!(null), "expects int, found null"),
            (
                "mass_totl_mg",
                "=",
                json!(1),
                "path `mass_totl_mg` is refused: nothing stands there; there are components,",
            ),
        ] {
            let refused = package(path, op, &value).unwrap_err();
            assert_eq!(refused.code, Code::RuleTypeError, "{refused}");
            assert!(
                refused.message.starts_with("rule `r1` is refused: ") && refused.message.contains(why),
                "{refused}"
            );
        }
    }

    #[test]
    fn all_rules_are_checked_before_one_is_run() {
        let rules = json!({"rules": [
            {"id": "good", "path": "components", "op": "=", "value": 1},
            {"id": "bad", "path": "components", "op": "=", "value": "1"}]});
        assert!(RulePackage::parse(&rules.to_string()).unwrap_err().message.contains("rule `bad`"));
    }

    #[test]
    fn a_malformed_package_is_refused() {
        let rule = |id: &str, op: &str| json!({"id": id, "path": "components", "op": op, "value": 1});
        for (bad, why) in [
            (json!({"rules": [rule("r1", "==")]}), "rule `r1`, op `==` is refused: it is one of = != < <= > >= in"),
            (json!({"rules": [rule("a b", "=")]}), "rule id `a b` is refused"),
            (json!({"rules": [rule("r1", "="), rule("r1", "<")]}), "two rules `r1`"),
            (json!({"rules": [{"id": "r1"}]}), "missing field"),
            (json!({"rules": [], "more": 1}), "unknown field `more`"),
            (json!([]), "the rule package is refused"),
        ] {
            let refused = RulePackage::parse(&bad.to_string()).unwrap_err();
            assert_eq!(refused.code, Code::ValidationError);
            assert!(refused.message.contains(why), "{refused}");
        }
        let many: Vec<Json> = (0..=RULES_MAX).map(|i| rule(&format!("r{i}"), "=")).collect();
        assert_eq!(RulePackage::parse(&json!({"rules": many}).to_string()).unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn the_hash_is_that_of_the_rules_and_not_of_their_spelling() {
        let [a, b] = [r#"{"rules":[]}"#, "{ \"rules\" :\n[] }"].map(|text| RulePackage::parse(text).unwrap().hash());
        assert_eq!(a, b);
        assert_ne!(a, package("components", "=", &json!(1)).unwrap().hash());
    }
}
