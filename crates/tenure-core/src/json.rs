//! JSON that both databases can hold and give back: checked text, not a tree.
//!
//! Payloads, results and errors pass through as text, so nothing is parsed twice on the hot path. Refused is what has
//! stopped other queues: a NUL or a lone surrogate that `jsonb` cannot store leaves a job running for ever, nesting
//! without end exhausts a stack, and `1e-16383` is eight bytes that Postgres writes out as sixteen thousand.
//!
//! Postgres stores numbers as decimals and writes them without an exponent, so a document grows between the request
//! and every later read. All limits are therefore checked against the *written-out size*: the bytes of the text that
//! Postgres gives back.

mod scanner;

use std::fmt;

use crate::invalid::Invalid;
use scanner::Scanner;

/// Largest payload, in bytes of text, as sent and as written out.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 64;
/// Most digits of a number without its exponent. The shortest text of any 64-bit float needs at most 341.
pub const NUMBER_DIGITS_MAX: usize = 400;

/// A checked JSON document, as text.
#[derive(Debug, Clone)]
pub struct Json {
    text: Box<str>,
    written_out: usize,
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

impl Json {
    /// Checks `text`; `field` names it in the refusal.
    pub fn parse(field: &'static str, text: impl Into<Box<str>>) -> Result<Self, Invalid> {
        let text = text.into();
        let mut scanner = Scanner::new(&text);
        match scanner.document() {
            Ok(()) => {
                let written_out = scanner.written_out();
                Ok(Self { text, written_out })
            }
            Err(why) => Err(Invalid::new(field, &text, format!("{why} (at byte {})", scanner.at()))),
        }
    }

    /// Takes text as it came from a store, unchecked: it was checked on its way in.
    pub fn from_store(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        Self { written_out: text.len(), text }
    }

    /// `null`.
    pub fn null() -> Self {
        Self::from_store("null")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Bytes of the longer of both texts: the one that was sent and the one that Postgres writes out.
    pub fn bytes(&self) -> usize {
        self.text.len().max(self.written_out)
    }

    /// Refuses a document of more than `max` bytes, as sent or as written out.
    pub fn check_bytes(&self, field: &'static str, max: usize) -> Result<(), Invalid> {
        if self.bytes() <= max {
            return Ok(());
        }
        Err(Invalid::new(field, format!("of {} bytes", self.bytes()), format!("it is at most {max} bytes of JSON")))
    }

    /// Names and numbers of the members of an object whose values are numbers. Empty for any other document.
    pub fn figures(&self) -> Vec<(String, f64)> {
        Scanner::new(&self.text).figures().unwrap_or_default()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Writes `text` as a JSON string. Control characters are escaped; NUL, which no database takes, becomes U+FFFD.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\0' => quoted.push(char::REPLACEMENT_CHARACTER),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_kept_as_it_was_written() {
        for good in [
            "null",
            " true ",
            "-0",
            "0.5",
            "1e308",
            "-1.5E-300",
            "5e-324",
            "4.9406564584124654e-324",
            r#""""#,
            r#""\u00e9 \ud83d\ude00 \\ \/""#,
            "[]",
            "{ }",
            r#"{"a":[1,{"b":null}],"a":2}"#,
            "9007199254740993",
        ] {
            assert_eq!(Json::parse("payload", good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn what_a_database_could_not_hold_is_refused() {
        for (bad, why) in [
            (r#""\u0000""#, "NUL"),
            (r#""\ud800""#, "surrogate"),
            (r#""\ud800\u0041""#, "surrogate"),
            (r#""\udc00""#, "surrogate"),
            ("1e309", "64-bit float"),
            ("[1e100000]", "64-bit float"),
            ("1e99999999999999999999", "64-bit float"),
            ("1e-399", "64-bit float"),
            ("1e-16383", "400 digits"),
            ("0e-16383", "400 digits"),
            (&format!("0.{}", "1".repeat(400)), "400 digits"),
            (&format!("1{}", "0".repeat(400)), "64-bit float"),
            (&format!("{}{}", "[".repeat(65), "]".repeat(65)), "64 deep"),
            (&"[".repeat(1_000_000), "64 deep"),
        ] {
            let refused = Json::parse("payload", bad).unwrap_err();
            assert!(refused.limit.contains(why), "{bad:.40}: {refused}");
        }
        assert!(Json::parse("payload", format!("{}{}", "[".repeat(64), "]".repeat(64))).is_ok());
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for bad in [
            "",
            "nul",
            "{",
            "[1,]",
            "[1 2]",
            r#"{"a"}"#,
            r#"{a:1}"#,
            r#"{"a":1,}"#,
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "--1",
            "\"\n\"",
            r#""\x""#,
            r#""\u12g4""#,
            r#"""#,
            "1 2",
            "NaN",
            "'a'",
            "\u{feff}1",
        ] {
            let refused = Json::parse("payload", bad).unwrap_err();
            assert!(refused.field == "payload" && refused.limit.contains("at byte"), "{bad:?}");
        }
    }

    #[test]
    fn any_text_can_be_quoted() {
        let hostile = "a\"b\\c\n\r\t\u{1}\0é😀";
        let quoted = quote(hostile);
        assert!(Json::parse("error", quoted.as_str()).is_ok(), "{quoted}");
        assert!(!quoted.contains('\0'));
    }

    #[test]
    fn size_is_checked_in_bytes() {
        let json = Json::parse("payload", format!("\"{}\"", "x".repeat(98))).unwrap();
        assert_eq!(json.check_bytes("payload", 100), Ok(()));
        assert_eq!(json.check_bytes("payload", 99).unwrap_err().value, "`of 100 bytes`");
    }

    /// What PostgreSQL 15 answers to `select $1::jsonb::text`.
    #[test]
    fn the_written_out_size_is_that_of_the_text_postgres_gives_back() {
        for (sent, written) in [
            ("[1,2,  3]", "[1, 2, 3]"),
            (r#"{"a":1,"b":[],"c":{}}"#, r#"{"a": 1, "b": [], "c": {}}"#),
            ("1e3", "1000"),
            ("-1.5e-3", "-0.0015"),
            ("0.001e5", "100"),
            ("12.3400", "12.3400"),
            ("0e5", "0"),
            ("0.00e-2", "0.0000"),
            ("1E+2", "100"),
            ("123e-2", "1.23"),
            ("[true,false,null,\"x\"]", "[true, false, null, \"x\"]"),
        ] {
            let json = Json::parse("payload", sent).unwrap();
            assert_eq!(json.written_out, written.len(), "{sent}");
        }
        assert_eq!(Json::parse("payload", "1e308").unwrap().bytes(), 309);
        let many = Json::parse("payload", format!("[{}1]", "1e308,".repeat(4_000))).unwrap();
        assert!(many.check_bytes("payload", PAYLOAD_BYTES_MAX).is_err(), "{} bytes", many.bytes());
    }

    #[test]
    fn figures_are_the_numbers_of_an_object_by_their_names() {
        let figures = |text: &str| Json::parse("usage", text).unwrap().figures();
        assert_eq!(
            figures(r#"{"a": 1, "b": [2], "\u00e4\ud83d\ude00\n": -2.5e1, "c": "3", "": 0}"#),
            [("a".to_owned(), 1.0), ("ä😀\n".to_owned(), -25.0), (String::new(), 0.0)]
        );
        assert!(figures("[1]").is_empty() && figures("{}").is_empty() && figures("1").is_empty());
    }
}
