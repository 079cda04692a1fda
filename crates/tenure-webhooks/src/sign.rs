//! The headers of a delivery: two families, so that old receivers and new libraries both find theirs.
//!
//! **Standard Webhooks**: `webhook-id`, `webhook-timestamp` and `webhook-signature: v1,<base64>`, an HMAC-SHA256 keyed
//! with the decoded bytes of the secret over `{id}.{timestamp}.{body}`. While a secret is being changed there is a
//! signature for each valid one, with a space between; a receiver takes any.
//!
//! **The endpoint's own**, under its [`Prefix`]: `X-Tenure-Event-Type`, `X-Tenure-Delivery-Id` and
//! `X-Tenure-Signature: sha256=<hex>`, an HMAC-SHA256 over the raw body, keyed with the secret's text as its owner sees
//! it (`whsec_…`, every character): such receivers pass the string they were given. It has no place for two signatures:
//! the newest secret alone signs, and a receiver accepts both during the change. It covers neither id nor time, so
//! there is no header that would suggest so: who wants to refuse replays checks the first family.
//!
//! A delivery is signed when it is sent, each attempt anew; its body was frozen before.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{HeaderName, HeaderValue};
use sha2::Sha256;
use tenure_core::{Invalid, Timestamp};

use crate::prefix::Prefix;
use crate::secret::Secret;

/// Most secrets that are valid at one time.
pub const SECRETS_MAX: usize = 5;
/// Longest id or type of an event, in bytes.
const WORD_BYTES_MAX: usize = 200;

/// What is sent, once.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Names the event to its receiver, who drops what it has seen: the same in every attempt.
    pub id: &'a str,
    /// Names this delivery of it in the sender's log.
    pub delivery_id: &'a str,
    /// What happened: `job.succeeded`, `PASSPORT_SIGNED`.
    pub event_type: &'a str,
    /// The moment of this attempt.
    pub at: Timestamp,
    /// The raw body, byte for byte as it is sent.
    pub body: &'a [u8],
}

/// The headers of both families. `secrets` are the valid ones, newest first.
pub fn headers(
    delivery: &Delivery<'_>,
    secrets: &[Secret],
    prefix: &Prefix,
) -> Result<Vec<(HeaderName, HeaderValue)>, Invalid> {
    check_word("event id", delivery.id, "_-")?;
    check_word("delivery id", delivery.delivery_id, "_-")?;
    check_word("event type", delivery.event_type, "_-.:/")?;
    let Some(newest) = secrets.first().filter(|_| secrets.len() <= SECRETS_MAX) else {
        let limit = format!("1 to {SECRETS_MAX} secrets sign a delivery");
        return Err(Invalid::new("secrets", secrets.len(), limit));
    };
    let timestamp = delivery.at.as_micros().div_euclid(1_000_000).to_string();
    let mac = |secret| standard_mac(secret, delivery.id, &timestamp, delivery.body).finalize().into_bytes();
    let signatures: Vec<String> = secrets.iter().map(|secret| format!("v1,{}", STANDARD.encode(mac(secret)))).collect();
    let own = |name: &str| format!("{prefix}{name}");
    [
        ("webhook-id".to_owned(), delivery.id.to_owned()),
        ("webhook-timestamp".to_owned(), timestamp.clone()),
        ("webhook-signature".to_owned(), signatures.join(" ")),
        (own("Event-Type"), delivery.event_type.to_owned()),
        (own("Delivery-Id"), delivery.delivery_id.to_owned()),
        (own("Signature"), body_signature(newest, delivery.body)),
    ]
    .into_iter()
    .map(|(name, value)| header(&name, &value))
    .collect()
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Invalid> {
    let refuse = || Invalid::new("header", name, "its name and its value are visible ASCII");
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
    Ok((name, HeaderValue::from_str(value).map_err(|_| refuse())?))
}

/// An id with a dot could move the border between id and timestamp under the signature.
fn check_word(field: &'static str, word: &str, marks: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    if word.is_empty() || word.len() > WORD_BYTES_MAX || !word.chars().all(allowed) {
        let marks: Vec<String> = marks.chars().map(String::from).collect();
        let limit = format!("it is 1 to {WORD_BYTES_MAX} of a-z A-Z 0-9 {}", marks.join(" "));
        return Err(Invalid::new(field, word, limit));
    }
    Ok(())
}

/// `sha256=` and the HMAC of the body in hexadecimal digits.
pub(crate) fn body_signature(secret: &Secret, body: &[u8]) -> String {
    let mac = body_mac(secret, body).finalize().into_bytes();
    let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

pub(crate) fn body_mac(secret: &Secret, body: &[u8]) -> Hmac<Sha256> {
    keyed(secret.text().as_bytes()).chain_update(body)
}

pub(crate) fn standard_mac(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    keyed(secret.bytes()).chain_update(format!("{id}.{timestamp}.")).chain_update(body)
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
