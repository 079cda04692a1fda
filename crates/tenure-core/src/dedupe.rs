//! The key by which the same thing is met again when it is collected twice.
//!
//! A source that names its things has given the key: [`DedupeKey::external`] is `ext_<id>`, the id as it came. Anything
//! else is recognised by its looks: [`DedupeKey::hashed`] is `hash_` and the first 16 hexadecimal digits of the SHA-256 of
//! these lines, in UTF-8, joined by one line feed each and none at the end. No line can hold a line feed, so no two
//! different lists of parts give the same text. In Python:
//! `"hash_" + hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]`.
//!
//! | line | part | rule |
//! |---|---|---|
//! | 1 | URL | white space around it is cut off; an empty one stays empty; any other is `scheme://host…` |
//! | | | cut before the first `?` or `#`: no query, no fragment |
//! | | | scheme and host: ASCII letters are lower-cased; letters of other scripts, `www.` and `user@` are left alone |
//! | | | port: an empty one is dropped, so is 80 of `http` and `ws`, 443 of `https` and `wss`, 21 of `ftp`; no leading zeros |
//! | | | path: all slashes at its end are dropped, so that `/` is no path; letters, dots and doubled slashes stay |
//! | | | percent-encoding is left alone: `%7E` and `~` differ, and so do `%2f` and `%2F` |
//! | | | white space and control characters inside are refused |
//! | 2 | title | lower-cased by Unicode, as Python's `lower()`; no other normalisation: composed and decomposed letters differ |
//! | | | white space folded as Python's `" ".join(title.split())`: none around it, one space for each run inside |
//! | 3 | price | whole cents in decimal, no sign but `-` |
//! | 4 | day | the date in UTC, `YYYY-MM-DD` |
//! | 5 | type | 1 to 500 bytes as they came, without control characters |
//! | 6 | currency | three ASCII letters, upper-cased; without a currency there is no such line, as in the oldest keys |
//!
//! 16 digits are 64 bits: among a million keys the odds that two different things meet are about 1 to 37 million. Where
//! a query tells things apart (`?item=42`), take the external id.

use std::fmt;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::invalid::Invalid;
use crate::name::check_text;
use crate::time::Timestamp;

/// `ext_<id>` or `hash_<16 digits>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DedupeKey(String);

/// What a thing without an id is recognised by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Where it was found; may be empty.
    pub url: &'a str,
    /// What it is called there.
    pub title: &'a str,
    /// Its price in cents.
    pub cents: i64,
    /// The day of the price.
    pub day: Day,
    /// What kind of price: `sold`, `ask`, `bid`.
    pub kind: &'a str,
    /// Such as `EUR`, where a source has several.
    pub currency: Option<&'a str>,
}

/// A date, in UTC. Sales of 1890 have one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day(Date);

impl DedupeKey {
    /// The key of a thing that its source has named.
    pub fn external(id: &str) -> Result<Self, Invalid> {
        check_text("external id", id)?;
        Ok(Self(format!("ext_{id}")))
    }

    /// The key of a thing that is known by its looks only.
    pub fn hashed(parts: &Parts<'_>) -> Result<Self, Invalid> {
        let hash = Sha256::digest(parts.normalised()?.as_bytes());
        let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("hash_{digits}")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<DedupeKey> for String {
    fn from(key: DedupeKey) -> Self {
        key.0
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Parts<'_> {
    /// The text that is hashed: to see why two things have one key, or have not.
    pub fn normalised(&self) -> Result<String, Invalid> {
        check_text("type", self.kind)?;
        let (url, title) = (normalise_url(self.url)?, normalise_title(self.title));
        let mut text = format!("{url}\n{title}\n{}\n{}\n{}", self.cents, self.day, self.kind);
        if let Some(currency) = self.currency {
            if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_alphabetic()) {
                return Err(Invalid::new("currency", currency, "it is three letters, such as EUR"));
            }
            text.push('\n');
            text.push_str(&currency.to_ascii_uppercase());
        }
        Ok(text)
    }
}

impl Day {
    /// The date of a moment, in UTC.
    pub fn of(at: Timestamp) -> Self {
        let day_micros = 86_400_000_000;
        let days = i32::try_from(at.as_micros().div_euclid(day_micros)).unwrap_or(i32::MAX);
        Self(Date::constant(1970, 1, 1).saturating_add(jiff::Span::new().days(days)))
    }

    /// Reads `YYYY-MM-DD`, from year 1 to 9999.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("day", text, "a day is a date such as 2026-11-15");
        if text.len() != 10 {
            return Err(refuse()); // jiff reads `20261115` and times of the day as well
        }
        match text.parse::<Date>() {
            Ok(date) if date.year() > 0 => Ok(Self(date)),
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), self.0.month(), self.0.day())
    }
}

/// Line 1.
fn normalise_url(url: &str) -> Result<String, Invalid> {
    let refuse = |limit: &str| Invalid::new("url", url, limit);
    let trimmed = url.trim_matches(is_space);
    if trimmed.is_empty() {
        return Ok(String::new());
    }
    if trimmed.chars().any(|c| is_space(c) || c.is_control()) {
        return Err(refuse("it has no white space and no control characters inside"));
    }
    let place = trimmed.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = place.split_once("://").ok_or_else(|| refuse("it is scheme://host/path"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    // A colon inside of brackets belongs to an IPv6 address.
    let port_at = host.rfind(':').filter(|at| Some(*at) > host.rfind(']'));
    let (host, port) = host.split_at(port_at.unwrap_or(host.len()));
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if host.is_empty() || !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(is_scheme) {
        return Err(refuse("it is scheme://host/path"));
    }
    let scheme = scheme.to_ascii_lowercase();
    let port = match port.trim_start_matches(':') {
        "" => None,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse::<u16>().map_err(|_| refuse("a port is 0 to 65535"))?)
        }
        _ => return Err(refuse("a port is 0 to 65535")),
    };
    let usual = match scheme.as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        _ => None,
    };
    let port = port.filter(|port| Some(*port) != usual).map(|port| format!(":{port}")).unwrap_or_default();
    Ok(format!("{scheme}://{user}{}{port}{}", host.to_ascii_lowercase(), path.trim_end_matches('/')))
}

/// Line 2.
fn normalise_title(title: &str) -> String {
    let lower = title.to_lowercase();
    let words: Vec<&str> = lower.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// White space as Python has it: that of Unicode, and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
