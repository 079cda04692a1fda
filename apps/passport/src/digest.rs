//! [`Digest`]: a SHA-256, the only hash of the product, in the two spellings it has: hexadecimal in JSON, Base32 on labels.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use tenure::Invalid;
use tenure::core::seal::{from_hex, to_hex};

use crate::base32;

/// 32 bytes of SHA-256. Ordered by its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of `parts`, one behind the other. Parts of no fixed length would need a border between them.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        parts.iter().for_each(|part| hasher.update(part));
        Self(hasher.finalize().into())
    }

    /// Bytes that are a hash already.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        to_hex(&self.0)
    }

    /// Reads 64 lower-case hexadecimal digits; `field` names it in the refusal. A hash has one spelling.
    pub fn from_hex(field: &'static str, text: &str) -> Result<Self, Invalid> {
        let bytes = from_hex(text).filter(|_| !text.bytes().any(|b| b.is_ascii_uppercase()));
        bytes.map(Self).ok_or_else(|| Invalid::new(field, text, "a hash is 64 of 0-9 a-f, the digits of a SHA-256"))
    }

    /// 52 letters of Base32, without padding.
    pub fn to_base32(self) -> String {
        base32::encode(&self.0)
    }

    /// Reads 52 letters of Base32; `field` names it in the refusal.
    pub fn from_base32(field: &'static str, text: &str) -> Result<Self, Invalid> {
        let bytes = base32::decode(field, text)?.try_into();
        bytes.map(Self).map_err(|_| Invalid::new(field, text, "a hash is 52 letters of Base32"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex("hash", &text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), abc);
        assert_eq!(Digest::of_parts(&[b"a", b"", b"bc"]).to_string(), abc);
    }

    #[test]
    fn both_spellings_are_read_back() {
        let hash = Digest::of(b"abc");
        assert_eq!(Digest::from_hex("ph", &hash.to_hex()), Ok(hash));
        assert_eq!(Digest::from_base32("ph", &hash.to_base32()), Ok(hash));
        assert_eq!(hash.to_base32().len(), 52);
    }

    #[test]
    fn other_spellings_are_refused_with_their_field() {
        let hash = Digest::of(b"abc");
        for bad in [String::new(), hash.to_hex().to_uppercase(), format!("{hash}0"), "g".repeat(64), "é".repeat(32)] {
            assert!(Digest::from_hex("ph", &bad).unwrap_err().field == "ph", "{bad}");
        }
        for bad in ["", "MFRGG", &base32::encode(&[7; 31]), &base32::encode(&[7; 33])] {
            assert!(Digest::from_base32("rh", bad).unwrap_err().field == "rh", "{bad}");
        }
    }
}
