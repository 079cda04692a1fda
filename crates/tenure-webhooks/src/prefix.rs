//! [`Prefix`]: how an endpoint's own headers begin.

use std::fmt;
use std::str::FromStr;

use tenure_core::Invalid;

/// Beginnings that mean something to HTTP, to a proxy, or to Standard Webhooks.
const TAKEN: &[&str] = &[
    "accept-",
    "access-control-",
    "authorization-",
    "cache-",
    "connection-",
    "content-",
    "cookie-",
    "expect-",
    "forwarded-",
    "host-",
    "if-",
    "keep-",
    "proxy-",
    "sec-",
    "set-",
    "te-",
    "trailer-",
    "transfer-",
    "upgrade-",
    "via-",
    "webhook-",
    "x-forwarded-",
];

/// `X-Tenure-`, or what the endpoint's receiver expects instead: `X-BPC-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("X-Tenure-".to_owned())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Prefix {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        check_prefix(text)?;
        Ok(Self(text.to_owned()))
    }
}

/// Refuses what would not make a header, or would make somebody else's.
pub fn check_prefix(text: &str) -> Result<(), Invalid> {
    let refuse = |limit: &str| Err(Invalid::new("header prefix", text, limit));
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let begins = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if !(3..=40).contains(&text.len()) || !begins || !text.ends_with('-') || !text.bytes().all(allowed) {
        return refuse("it is 3 to 40 of a-z A-Z 0-9 -, a letter first and a - last: X-Tenure-");
    }
    let lower = text.to_ascii_lowercase();
    if TAKEN.iter().any(|taken| lower.starts_with(taken)) {
        return refuse(
            "headers that begin like this belong to HTTP, to proxies or to Standard Webhooks: take X-Yours-",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_words_of_their_own() {
        for good in ["X-Tenure-", "X-BPC-", "Ab-", "acme2-", &format!("{}-", "x".repeat(39))] {
            assert_eq!(good.parse::<Prefix>().unwrap().as_str(), good);
        }
        let long = format!("{}-", "x".repeat(40));
        for bad in [
            "",
            "-",
            "X-",
            "--X-",
            "X-BPC",
            "X BPC-",
            "X_BPC-",
            "X-\r\n-",
            "X-Ü-",
            "9X-",
            "X:-",
            &long,
            "Webhook-",
            "wEbHoOk-",
            "Proxy-",
            "Content-",
            "X-Forwarded-",
            "Transfer-X-",
            "Sec-Fetch-",
            "Keep-",
            "If-",
        ] {
            assert_eq!(check_prefix(bad).unwrap_err().field, "header prefix", "{bad:?}");
        }
    }
}
