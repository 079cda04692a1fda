//! For receivers: whether a delivery is genuine.
//!
//! Signatures are compared in constant time. A genuine delivery may still come twice: keep the ids of the last
//! [`TOLERANCE`] and drop what was seen.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use tenure_core::Timestamp;

use crate::secret::Secret;
use crate::sign;

/// How far a timestamp may lie in the past or in the future.
pub const TOLERANCE: Duration = Duration::from_secs(300);
/// Most signatures of one delivery that are looked at.
const SIGNATURES_MAX: usize = 16;

/// A delivery as it came: three headers and the raw body.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signature: &'a str,
    /// The body before anything parsed it.
    pub body: &'a [u8],
}

/// Why a delivery is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotGenuine {
    /// The timestamp is not a number of seconds.
    #[error("webhook-timestamp is not a number of seconds since 1970")]
    Timestamp,
    /// It is older than the tolerance: somebody may be playing it again.
    #[error("webhook-timestamp lies more than 5 minutes in the past")]
    TooOld,
    /// It is from the future: one of the clocks is wrong.
    #[error("webhook-timestamp lies more than 5 minutes in the future")]
    TooNew,
    /// No signature was made with one of the secrets over this body.
    #[error("no signature fits: the secret or the body is another")]
    Signature,
}

/// Checks the Standard Webhooks headers against any of the secrets, the newest and the one before it for instance.
pub fn verify(secrets: &[Secret], received: &Received<'_>, now: Timestamp) -> Result<(), NotGenuine> {
    if received.timestamp.is_empty() || !received.timestamp.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NotGenuine::Timestamp);
    }
    let seconds: i64 = received.timestamp.parse().map_err(|_| NotGenuine::Timestamp)?;
    let age = now.as_micros().div_euclid(1_000_000).saturating_sub(seconds);
    if age > TOLERANCE.as_secs().cast_signed() {
        return Err(NotGenuine::TooOld);
    }
    if age < -TOLERANCE.as_secs().cast_signed() {
        return Err(NotGenuine::TooNew);
    }
    let given = received.signature.split(' ').take(SIGNATURES_MAX).filter_map(|part| part.strip_prefix("v1,"));
    let given: Vec<Vec<u8>> = given.filter_map(|encoded| STANDARD.decode(encoded).ok()).collect();
    let fits = secrets.iter().any(|secret| {
        let mac = sign::standard_mac(secret, received.id, received.timestamp, received.body);
        given.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    });
    if fits { Ok(()) } else { Err(NotGenuine::Signature) }
}

/// Checks a `sha256=<hex>` signature of the body alone. It says nothing about when the delivery was sent.
pub fn verify_body(secrets: &[Secret], signature: &str, body: &[u8]) -> Result<(), NotGenuine> {
    let given = signature.strip_prefix("sha256=").and_then(hex).ok_or(NotGenuine::Signature)?;
    let fits = secrets.iter().any(|secret| sign::body_mac(secret, body).verify_slice(&given).is_ok());
    if fits { Ok(()) } else { Err(NotGenuine::Signature) }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    if digits.len() != 64 {
        return None;
    }
    let digit = |b: u8| char::from(b).to_digit(16);
    digits.as_bytes().chunks(2).map(|pair| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()).collect()
}
