//! JSON that both databases can hold and give back: checked text, not a tree.
//!
//! Payloads, results and errors pass through as text, so nothing is parsed twice on the hot path. What is refused here
//! has stopped other queues: a NUL or a lone surrogate that `jsonb` cannot store leaves a job running for ever, nesting
//! without end exhausts a stack, and `1e100000` is ten bytes that read back as a hundred thousand.

use std::fmt;

use crate::invalid::Invalid;

/// Largest payload, in bytes of text.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 64;

/// A checked JSON document, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// Checks `text`; `field` names it in the refusal.
    pub fn parse(field: &'static str, text: impl Into<Box<str>>) -> Result<Self, Invalid> {
        let text = text.into();
        let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
        let checked = scanner.value(1).and_then(|()| {
            scanner.white();
            if scanner.at == scanner.bytes.len() { Ok(()) } else { Err("it goes on after its end") }
        });
        match checked {
            Ok(()) => Ok(Self(text)),
            Err(why) => Err(Invalid::new(field, &text, format!("{why} (at byte {})", scanner.at))),
        }
    }

    /// Takes text as it came from a store, unchecked: it was checked on its way in.
    pub fn from_store(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refuses a document of more than `max` bytes.
    pub fn check_bytes(&self, field: &'static str, max: usize) -> Result<(), Invalid> {
        if self.0.len() <= max {
            return Ok(());
        }
        Err(Invalid::new(field, format!("of {} bytes", self.0.len()), format!("it is at most {max} bytes of JSON")))
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

/// A recursive-descent check of RFC 8259 with our limits; builds nothing.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Checked = Result<(), &'static str>;

impl Scanner<'_> {
    fn value(&mut self, depth: usize) -> Checked {
        self.white();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err("it is not JSON: a value is expected"),
        }
    }

    fn object(&mut self, depth: usize) -> Checked {
        self.deeper(depth)?;
        if self.took(b'}') {
            return Ok(());
        }
        loop {
            self.white();
            if self.peek() != Some(b'"') {
                return Err("it is not JSON: a member's name is expected");
            }
            self.string()?;
            if !self.took(b':') {
                return Err("it is not JSON: a colon is expected");
            }
            self.value(depth + 1)?;
            if !self.took(b',') {
                break;
            }
        }
        if self.took(b'}') { Ok(()) } else { Err("it is not JSON: an object is not closed") }
    }

    fn array(&mut self, depth: usize) -> Checked {
        self.deeper(depth)?;
        if self.took(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.took(b',') {
                break;
            }
        }
        if self.took(b']') { Ok(()) } else { Err("it is not JSON: an array is not closed") }
    }

    fn deeper(&mut self, depth: usize) -> Checked {
        const _: () = assert!(DEPTH_MAX == 64, "the sentence below names the limit");
        self.at += 1;
        if depth > DEPTH_MAX { Err("JSON is nested at most 64 deep") } else { Ok(()) }
    }

    fn string(&mut self) -> Checked {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                0..=0x1f => return Err("it is not JSON: a control character in a string is not escaped"),
                _ => {}
            }
        }
        Err("it is not JSON: a string is not closed")
    }

    fn escape(&mut self) -> Checked {
        let byte = self.peek();
        self.at += 1;
        match byte {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => match self.hex4()? {
                0 => Err("the NUL character cannot be stored"),
                0xdc00..=0xdfff => Err("half a surrogate pair cannot be stored"),
                0xd800..=0xdbff => match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                    (Some(b'\\'), Some(b'u')) => {
                        self.at += 2;
                        if (0xdc00..=0xdfff).contains(&self.hex4()?) {
                            Ok(())
                        } else {
                            Err("half a surrogate pair cannot be stored")
                        }
                    }
                    _ => Err("half a surrogate pair cannot be stored"),
                },
                _ => Ok(()),
            },
            _ => Err("it is not JSON: an escape is unknown"),
        }
    }

    fn hex4(&mut self) -> Result<u32, &'static str> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let value =
            digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or("it is not JSON: \\u needs four digits")?;
        self.at += 4;
        Ok(value)
    }

    fn number(&mut self) -> Checked {
        let start = self.at;
        self.took_byte(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err("it is not JSON: a number is malformed");
        }
        if self.took_byte(b'.') && self.digits() == 0 {
            return Err("it is not JSON: a number is malformed");
        }
        if self.took_byte(b'e') || self.took_byte(b'E') {
            let _ = self.took_byte(b'+') || self.took_byte(b'-');
            if self.digits() == 0 {
                return Err("it is not JSON: a number is malformed");
            }
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        // Rust reads what is too large as infinity; Postgres would spell all its digits out.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(()),
            _ => Err("a number lies outside of what a 64-bit float can hold"),
        }
    }

    fn word(&mut self, word: &[u8]) -> Checked {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err("it is not JSON: a value is expected")
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn took(&mut self, byte: u8) -> bool {
        self.white();
        self.took_byte(byte)
    }

    fn took_byte(&mut self, byte: u8) -> bool {
        let took = self.peek() == Some(byte);
        self.at += usize::from(took);
        took
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
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
            "-1.5E-400",
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
}
