//! Canonical JSON (RFC 8785): one value has one text, so that whoever holds the value can compute its hash.
//!
//! Members are sorted by their UTF-16 code units, there is no white space, strings are escaped in one way. Numbers are
//! what ECMAScript makes of them, and it has 64-bit floats only: a number beyond 2^53 would silently become another one,
//! and is refused. Amounts are whole numbers of small units or decimals in text, never floats.

use serde::Serialize;
use serde_json::Value;

use crate::code::{Code, Refusal};
use crate::digest::Digest;

/// Largest canonical text, in bytes.
pub const BYTES_MAX: usize = 1 << 20;
/// Largest whole number: every one up to it has a float of its own.
pub const INTEGER_MAX: u64 = 1 << 53;

/// A value as its canonical text, with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    text: String,
    hash: Digest,
}

impl Canonical {
    /// Writes `value`; `what` names it in the refusal: `VALIDATION_ERROR` for a number beyond 2^53, `PAYLOAD_TOO_LARGE`
    /// for more than [`BYTES_MAX`] bytes.
    pub fn of(what: &str, value: &impl Serialize) -> Result<Self, Refusal> {
        let refuse = |error: serde_json::Error| Refusal::invalid(format!("{what} is refused: {error}"));
        let value = serde_json::to_value(value).map_err(refuse)?;
        check_numbers(what, &value)?;
        let text = serde_json_canonicalizer::to_string(&value).map_err(refuse)?;
        check_bytes(what, text.len())?;
        Ok(Self { hash: Digest::of(text.as_bytes()), text })
    }

    /// Takes a text that is canonical already, and refuses any other: white space, another order, a member twice.
    pub fn read(what: &str, text: &str) -> Result<Self, Refusal> {
        check_bytes(what, text.len())?;
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Refusal::invalid(format!("{what} is refused: it is not JSON: {error}")))?;
        let canonical = Self::of(what, &value)?;
        if canonical.text != text {
            let at = canonical.text.bytes().zip(text.bytes()).take_while(|(wanted, got)| wanted == got).count();
            let why = format!("from byte {at} on it differs from the canonical JSON (RFC 8785) of the same value");
            return Err(Refusal::invalid(format!("{what} is refused: {why}")));
        }
        Ok(canonical)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the text.
    pub const fn hash(&self) -> Digest {
        self.hash
    }
}

fn check_bytes(what: &str, bytes: usize) -> Result<(), Refusal> {
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    let message = format!("{what} of {bytes} bytes is refused: at most {BYTES_MAX} bytes of canonical JSON are kept");
    Err(Refusal::new(Code::PayloadTooLarge, message))
}

fn check_numbers(what: &str, value: &Value) -> Result<(), Refusal> {
    match value {
        Value::Number(number) => {
            // Whole numbers are compared exactly; a float beyond 2^53 is whole as well.
            let fits = match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => whole.unsigned_abs() <= INTEGER_MAX,
                (None, Some(_)) => false,
                (None, None) => number.as_f64().is_some_and(|float| float.abs() <= INTEGER_MAX as f64),
            };
            if fits {
                return Ok(());
            }
            Err(Refusal::invalid(format!(
                "{what} is refused: the number {number} is beyond 2^53 and would become another one: write it as text"
            )))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_numbers(what, item)),
        Value::Object(members) => members.values().try_for_each(|member| check_numbers(what, member)),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        Canonical::of("payload", value).unwrap().as_str().to_owned()
    }

    #[test]
    fn members_are_sorted_by_utf_16_and_written_without_white_space() {
        // The keys of RFC 8785, section 3.2.3: the pair of surrogates of an emoji sorts before U+FB33.
        let value = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        let keys = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}";
        assert_eq!(text(&value), keys);
    }

    #[test]
    fn strings_and_numbers_have_one_spelling() {
        let value: Value = serde_json::from_str(
            "{\"numbers\": [333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001, -0, 1E2],
              \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"}",
        )
        .unwrap();
        let expected = r#"{"numbers":[333333333.3333333,4.5,0.002,1e-27,0,100],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn a_number_beyond_two_to_the_53_is_refused() {
        let limit = i64::try_from(INTEGER_MAX).unwrap();
        for good in [json!(limit), json!(-limit), json!(9_007_199_254_740_992.0)] {
            assert!(Canonical::of("payload", &json!([{"n": good}])).is_ok(), "{good}");
        }
        for bad in [json!(limit + 1), json!(-limit - 1), json!(u64::MAX), json!(i64::MIN), json!(1e17), json!(-1e300)] {
            let refused = Canonical::of("payload", &json!([{"n": bad}])).unwrap_err();
            assert_eq!(refused.code, Code::ValidationError, "{bad}");
            assert!(refused.message.contains(&bad.to_string()) && refused.message.contains("2^53"), "{refused}");
        }
    }

    /// Shows: S4.30
    #[test]
    fn what_is_too_large_is_refused_as_such() {
        let fits = Canonical::of("payload", &"x".repeat(BYTES_MAX - 2)).unwrap();
        assert_eq!(Canonical::read("payload", fits.as_str()), Ok(fits));
        let refused = Canonical::of("payload", &"x".repeat(BYTES_MAX - 1)).unwrap_err();
        assert_eq!(refused.code, Code::PayloadTooLarge);
        assert!(
            refused.message.contains("of 1048577 bytes") && refused.message.contains("at most 1048576"),
            "{refused}"
        );
        assert_eq!(Canonical::read("payload", &" ".repeat(BYTES_MAX + 1)).unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn a_text_that_is_not_canonical_is_not_read() {
        assert!(Canonical::read("payload", r#"{"a":1,"b":[true,null]}"#).is_ok());
        for bad in ["{\"a\": 1}", r#"{"b":1,"a":2}"#, r#"{"a":1,"a":1}"#, "1.0", r#""\u0041""#, "{}\n", "", "{"] {
            let refused = Canonical::read("payload", bad).unwrap_err();
            assert_eq!(refused.code, Code::ValidationError, "{bad:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(Canonical::read("payload", &deep).is_err(), "nesting without end is an error, not a crash");
    }

    proptest! {
        #[test]
        fn the_same_members_in_any_order_have_one_hash(
            members in proptest::collection::btree_map("\\PC{0,6}", -1_000_000_i64..1_000_000, 0..12),
        ) {
            let write = |members: &mut dyn Iterator<Item = (&String, &i64)>| {
                let written: Vec<String> = members.map(|(key, n)| format!("{} : {n}", json!(key))).collect();
                let value: Value = serde_json::from_str(&format!("{{{}}}", written.join(" , "))).unwrap();
                Canonical::of("payload", &value).unwrap()
            };
            let (forth, back) = (write(&mut members.iter()), write(&mut members.iter().rev()));
            prop_assert_eq!(forth.hash(), back.hash());
            prop_assert_eq!(Canonical::read("payload", forth.as_str()).unwrap(), back);
        }
    }
}
