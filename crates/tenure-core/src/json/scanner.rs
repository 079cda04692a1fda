//! A recursive-descent check of RFC 8259 with our limits. It builds nothing and counts the bytes that Postgres writes out.

use super::{DEPTH_MAX, NUMBER_DIGITS_MAX};

pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    written_out: usize,
}

type Checked<T = ()> = Result<T, &'static str>;

const MALFORMED_NUMBER: &str = "it is not JSON: a number is malformed";
const TOO_LARGE: &str = "a number lies outside of what a 64-bit float can hold";
const TOO_MANY_DIGITS: &str = "a number has more than 400 digits when it is written without its exponent";
const HALF_PAIR: &str = "half a surrogate pair cannot be stored";

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, written_out: 0 }
    }

    /// Checks the whole text.
    pub(super) fn document(&mut self) -> Checked {
        self.value(1)?;
        self.white();
        if self.at == self.bytes.len() { Ok(()) } else { Err("it is not JSON: there is more text after the value") }
    }

    /// The byte at which the check stands or failed.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Bytes of what was checked, as Postgres writes it: one space after each comma and colon, no other white space,
    /// and numbers without exponents.
    pub(super) fn written_out(&self) -> usize {
        self.written_out
    }

    /// The numbers among an object's own members, with their names.
    pub(super) fn figures(&mut self) -> Checked<Vec<(String, f64)>> {
        let mut figures = Vec::new();
        if !self.took(b'{') || self.took(b'}') {
            return Ok(figures);
        }
        loop {
            self.white();
            let name_at = self.at;
            self.string()?;
            let name = unescaped(&self.bytes[name_at + 1..self.at - 1]);
            if !self.took(b':') {
                return Err("it is not JSON: a colon is expected");
            }
            self.white();
            let value_at = self.at;
            self.value(2)?;
            let value = std::str::from_utf8(&self.bytes[value_at..self.at]).unwrap_or_default();
            if value.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                && let Ok(number) = value.parse()
            {
                figures.push((name, number));
            }
            if !self.took(b',') {
                return Ok(figures);
            }
        }
    }

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
        self.written_out += "{}".len();
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
            self.written_out += ": ".len();
            self.value(depth + 1)?;
            if !self.took(b',') {
                break;
            }
            self.written_out += ", ".len();
        }
        if self.took(b'}') { Ok(()) } else { Err("it is not JSON: an object is not closed") }
    }

    fn array(&mut self, depth: usize) -> Checked {
        self.deeper(depth)?;
        self.written_out += "[]".len();
        if self.took(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.took(b',') {
                break;
            }
            self.written_out += ", ".len();
        }
        if self.took(b']') { Ok(()) } else { Err("it is not JSON: an array is not closed") }
    }

    fn deeper(&mut self, depth: usize) -> Checked {
        const _: () = assert!(DEPTH_MAX == 64, "the sentence below names the limit");
        self.at += 1;
        if depth > DEPTH_MAX { Err("JSON is nested at most 64 deep") } else { Ok(()) }
    }

    /// Strings are counted as sent: Postgres writes no escape that is longer.
    fn string(&mut self) -> Checked {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => {
                    self.written_out += self.at - start;
                    return Ok(());
                }
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
                0xdc00..=0xdfff => Err(HALF_PAIR),
                0xd800..=0xdbff => match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                    (Some(b'\\'), Some(b'u')) => {
                        self.at += 2;
                        if (0xdc00..=0xdfff).contains(&self.hex4()?) { Ok(()) } else { Err(HALF_PAIR) }
                    }
                    _ => Err(HALF_PAIR),
                },
                _ => Ok(()),
            },
            _ => Err("it is not JSON: an escape is unknown"),
        }
    }

    fn hex4(&mut self) -> Checked<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let value =
            digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or("it is not JSON: \\u needs four digits")?;
        self.at += 4;
        Ok(value)
    }

    fn number(&mut self) -> Checked {
        const _: () = assert!(NUMBER_DIGITS_MAX == 400, "`TOO_MANY_DIGITS` names the limit");
        let start = self.at;
        let sign = usize::from(self.took_byte(b'-'));
        let whole = self.digits();
        if whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') {
            return Err(MALFORMED_NUMBER);
        }
        let fraction = if self.took_byte(b'.') { self.digits_needed()? } else { &[] };
        let exponent = self.exponent()?;
        let plain = Plain::new(whole, fraction, exponent).ok_or(TOO_LARGE)?;
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        // Rust reads a number that is too large as infinity, and one that is too small as zero.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && plain.digits() > NUMBER_DIGITS_MAX => Err(TOO_MANY_DIGITS),
            Ok(number) if number.is_finite() && (number != 0.0 || plain.is_zero) => {
                self.written_out += sign + plain.bytes();
                Ok(())
            }
            _ => Err(TOO_LARGE),
        }
    }

    /// The exponent, 0 where none is given. One of more than nine digits is cut: any such number is refused.
    fn exponent(&mut self) -> Checked<i64> {
        if !self.took_byte(b'e') && !self.took_byte(b'E') {
            return Ok(0);
        }
        let negative = !self.took_byte(b'+') && self.took_byte(b'-');
        let digits = self.digits_needed()?;
        let value = digits.iter().fold(0_i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(999_999_999));
        Ok(if negative { -value } else { value })
    }

    fn word(&mut self, word: &[u8]) -> Checked {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            self.written_out += word.len();
            return Ok(());
        }
        Err("it is not JSON: a value is expected")
    }

    fn digits_needed(&mut self) -> Checked<&'a [u8]> {
        let digits = self.digits();
        if digits.is_empty() { Err(MALFORMED_NUMBER) } else { Ok(digits) }
    }

    fn digits(&mut self) -> &'a [u8] {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
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

/// A number without its exponent: how many digits stand before and behind the point.
struct Plain {
    before: usize,
    behind: usize,
    is_zero: bool,
}

impl Plain {
    fn new(whole: &[u8], fraction: &[u8], exponent: i64) -> Option<Self> {
        let length = |digits: &[u8]| i64::try_from(digits.len()).ok();
        let all = || whole.iter().chain(fraction);
        let is_zero = all().all(|digit| *digit == b'0');
        let leading = i64::try_from(all().take_while(|digit| **digit == b'0').count()).ok()?;
        let before = if is_zero { 1 } else { (length(whole)? + exponent - leading).max(1) };
        let behind = (length(fraction)? - exponent).max(0);
        Some(Self { before: usize::try_from(before).ok()?, behind: usize::try_from(behind).ok()?, is_zero })
    }

    fn digits(&self) -> usize {
        self.before + self.behind
    }

    fn bytes(&self) -> usize {
        self.digits() + usize::from(self.behind > 0)
    }
}

/// A checked string without its escapes.
fn unescaped(raw: &[u8]) -> String {
    let raw = std::str::from_utf8(raw).unwrap_or_default();
    let (mut text, mut units, mut chars) = (String::with_capacity(raw.len()), Vec::new(), raw.chars());
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        if escaped == Some('u') {
            let hex: String = chars.by_ref().take(4).collect();
            units.push(u16::from_str_radix(&hex, 16).unwrap_or(0xfffd));
            continue;
        }
        text.push_str(&String::from_utf16_lossy(&units));
        units.clear();
        text.push(match escaped {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => other,
            None => c,
        });
    }
    text.push_str(&String::from_utf16_lossy(&units));
    text
}
