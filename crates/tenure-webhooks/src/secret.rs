//! [`Secret`]: what an endpoint's deliveries are signed with.
//!
//! It is shown to its owner once, as `whsec_` and base64, the form that verifying libraries take; after that only sealed
//! bytes leave a process (see [`seal`](mod@crate::seal)). Memory that held it is overwritten.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tenure_core::Invalid;
use zeroize::Zeroizing;

/// How a secret begins when it is shown; scanners for leaked secrets know it too.
pub const SECRET_PREFIX: &str = "whsec_";
/// Bytes of a secret that is made here.
const BYTES: usize = 32;
/// Bytes of a secret that was made elsewhere, as Standard Webhooks allows them.
const BYTES_TAKEN: std::ops::RangeInclusive<usize> = 24..=64;

/// An endpoint's secret. Not shown by `Debug`, and overwritten when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A new one, of 32 random bytes.
    pub fn generate() -> Self {
        let mut bytes = Zeroizing::new(vec![0; BYTES]);
        random(&mut bytes);
        Self(bytes)
    }

    /// As its owner sees it: `whsec_` and base64.
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(SECRET_PREFIX.len() + self.0.len().div_ceil(3) * 4));
        text.push_str(SECRET_PREFIX);
        STANDARD.encode_string(&*self.0, &mut text);
        text
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Result<Self, Invalid> {
        if BYTES_TAKEN.contains(&bytes.len()) {
            return Ok(Self(bytes));
        }
        let limit = format!("it is {} to {} bytes, as base64", BYTES_TAKEN.start(), BYTES_TAKEN.end());
        Err(Invalid::new("secret", format!("of {} bytes", bytes.len()), limit))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl FromStr for Secret {
    type Err = Invalid;

    /// Takes a secret that was made elsewhere; the refusal does not repeat it.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("secret", "given", format!("it is {SECRET_PREFIX} and base64 with padding"));
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or_else(refuse)?;
        Self::from_bytes(Zeroizing::new(STANDARD.decode(encoded).map_err(|_| refuse())?))
    }
}

pub(crate) fn random(bytes: &mut [u8]) {
    // The system's source fails only where there is none at all, and then nothing on the machine works.
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_writing_and_reading_and_no_two_are_alike() {
        let secret = Secret::generate();
        assert_eq!(secret.text().len(), "whsec_".len() + 44);
        assert_eq!(secret.text().parse::<Secret>().unwrap().bytes(), secret.bytes());
        assert_ne!(Secret::generate().bytes(), secret.bytes());
    }

    #[test]
    fn other_texts_are_refused_and_not_repeated() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        let loose = STANDARD.encode([7; 32]);
        let unpadded = format!("whsec_{}", loose.trim_end_matches('='));
        for text in ["", "whsec_", "whsec_?", &short, &long, &loose, &unpadded] {
            let refused = text.parse::<Secret>().unwrap_err();
            assert_eq!(refused.field, "secret", "{text}");
            assert!(!refused.to_string().contains("Bwc"), "{refused}");
        }
        assert!(format!("whsec_{}", STANDARD.encode([7; 24])).parse::<Secret>().is_ok());
    }
}
