//! Signatures: Ed25519 (RFC 8032) over the 32 bytes of the receipt hash.
//!
//! The same key gives the same hash the same signature, so that signing twice is signing once. Keys are found by id: an
//! old passport names the key that signed it, however many came later. A key is given by its seed, 64 hexadecimal digits;
//! nothing here shows it again.

use std::collections::BTreeMap;
use std::fmt;

use ed25519_dalek::{Signature as Bytes, Signer, SigningKey, VerifyingKey};
use tenure::Invalid;
use tenure::core::seal::{from_hex, to_hex};

use crate::code::{Code, Refusal};
use crate::digest::Digest;

/// Most keys at one time.
pub const KEYS_MAX: usize = 100;
/// Longest id of a key, in bytes.
const KEY_ID_BYTES_MAX: usize = 100;

/// Names a key: 1 to 100 of `a-z A-Z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(String);

/// The keys that can sign, by id.
#[derive(Clone, Default)]
pub struct KeyRing(BTreeMap<KeyId, SigningKey>);

/// What checks signatures; public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// Over one receipt hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature(Bytes);

impl KeyRing {
    /// Reads `id=seed` pairs with commas between: `dev-key-1=9d61…7f60,dev-key-2=…`. An empty text is an empty ring.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut keys = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            // The value is not repeated in the refusal: it may be a seed.
            let Some((id, seed)) = pair.split_once('=') else {
                return Err(Refusal::invalid("signing keys are refused: one is not written as id=seed"));
            };
            let id = KeyId::new(id.trim())?;
            let Some(seed) = from_hex(seed.trim()) else {
                let limit = "a seed is 64 hexadecimal digits, such as `openssl rand -hex 32` makes";
                return Err(Refusal::invalid(format!("the seed of key `{id}` is refused: {limit}")));
            };
            if keys.contains_key(&id) {
                return Err(Refusal::invalid(format!("key `{id}` is refused: it is there twice, keep one of them")));
            }
            if keys.len() == KEYS_MAX {
                return Err(Refusal::invalid(format!("signing keys are refused: at most {KEYS_MAX} are kept")));
            }
            keys.insert(id, SigningKey::from_bytes(&seed));
        }
        Ok(Self(keys))
    }

    /// Signs with the key of this id; `SIGNING_KEY_MISSING` when there is none.
    pub fn sign(&self, id: &KeyId, receipt_hash: Digest) -> Result<Signature, Refusal> {
        Ok(Signature(self.key(id)?.sign(receipt_hash.as_bytes())))
    }

    /// The public half of the key of this id.
    pub fn public(&self, id: &KeyId) -> Result<PublicKey, Refusal> {
        Ok(PublicKey(self.key(id)?.verifying_key()))
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.keys()
    }

    fn key(&self, id: &KeyId) -> Result<&SigningKey, Refusal> {
        self.0.get(id).ok_or_else(|| {
            let known: Vec<&str> = self.ids().map(KeyId::as_str).collect();
            let known =
                if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
            let message =
                format!("there is no signing key `{id}`, {known}: add it to BPC_SIGNING_KEYS and requeue the job");
            Refusal::new(Code::SigningKeyMissing, message)
        })
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.ids()).finish()
    }
}

impl KeyId {
    /// Checks `id` and keeps it.
    pub fn new(id: impl Into<String>) -> Result<Self, Invalid> {
        let id = id.into();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if id.is_empty() || id.len() > KEY_ID_BYTES_MAX || !id.bytes().all(allowed) {
            let limit = format!("it is 1 to {KEY_ID_BYTES_MAX} of a-z A-Z 0-9 . _ -, such as dev-key-1");
            return Err(Invalid::new("key_id", id, limit));
        }
        Ok(Self(id))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PublicKey {
    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, Invalid> {
        let key = from_hex(text).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        key.map(Self).ok_or_else(|| Invalid::new("public key", text, "it is 64 hexadecimal digits of an Ed25519 key"))
    }

    /// 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        to_hex(self.0.as_bytes())
    }

    /// Whether this key made `signature` over `receipt_hash`. Strict: keys and signatures that fit more than one message
    /// are refused.
    pub fn verify(&self, receipt_hash: Digest, signature: &Signature) -> bool {
        self.0.verify_strict(receipt_hash.as_bytes(), &signature.0).is_ok()
    }
}

impl Signature {
    /// Reads 128 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("signature", text, "it is 128 hexadecimal digits");
        let (r, s) = text.split_at_checked(64).ok_or_else(refuse)?;
        let (r, s) = from_hex(r).zip(from_hex(s)).ok_or_else(refuse)?;
        Ok(Self(Bytes::from_components(r, s)))
    }

    /// 128 hexadecimal digits.
    pub fn to_hex(self) -> String {
        to_hex(self.0.r_bytes()) + &to_hex(self.0.s_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first secret key of RFC 8032, section 7.1, and its public key.
    const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    /// Over the SHA-256 of `receipt`, by that key; made with another library.
    const KNOWN: &str = "111a534105592e5910c7c09052e4c4ad3c9432361bb05f9f451196098c6da021\
                         949bbc3c27896ba5b2b9de86f1f41be60fa9ecefdc52b9e1a95c25a3311c0c08";

    fn ring() -> KeyRing {
        KeyRing::parse(&format!("dev-key-1={SEED}, dev-key-2={}", "07".repeat(32))).unwrap()
    }

    fn id(id: &str) -> KeyId {
        KeyId::new(id).unwrap()
    }

    /// Shows: S4.55
    #[test]
    fn the_same_hash_has_the_same_signature() {
        let hash = Digest::of(b"receipt");
        let signature = ring().sign(&id("dev-key-1"), hash).unwrap();
        assert_eq!(ring().sign(&id("dev-key-1"), hash).unwrap(), signature);
        assert_ne!(ring().sign(&id("dev-key-2"), hash).unwrap(), signature);
        assert_eq!(Signature::from_hex(&signature.to_hex()), Ok(signature));
        assert_eq!(signature.to_hex(), KNOWN);
    }

    #[test]
    fn a_signature_fits_its_key_and_its_hash_only() {
        let (ring, hash) = (ring(), Digest::of(b"receipt"));
        let signature = ring.sign(&id("dev-key-1"), hash).unwrap();
        let public = ring.public(&id("dev-key-1")).unwrap();
        assert_eq!(public.to_hex(), PUBLIC);
        assert!(PublicKey::from_hex(PUBLIC).unwrap().verify(hash, &signature));
        assert!(!public.verify(Digest::of(b"another"), &signature));
        assert!(!ring.public(&id("dev-key-2")).unwrap().verify(hash, &signature));
        let mut digits = signature.to_hex().into_bytes();
        digits[0] ^= 1; // 0 and 1, 2 and 3, … are neighbours
        let other = Signature::from_hex(std::str::from_utf8(&digits).unwrap()).unwrap();
        assert!(!public.verify(hash, &other));
    }

    /// Shows: S4.31
    #[test]
    fn a_missing_key_is_named_with_those_there_are() {
        let refused = ring().sign(&id("prod-1"), Digest::of(b"receipt")).unwrap_err();
        assert_eq!(refused.code, Code::SigningKeyMissing);
        assert!(refused.message.contains("`prod-1`, there are dev-key-1, dev-key-2"), "{refused}");
        let refused = KeyRing::parse("").unwrap().sign(&id("prod-1"), Digest::of(b"receipt")).unwrap_err();
        assert!(refused.message.contains("there is none"), "{refused}");
    }

    #[test]
    fn malformed_keys_are_refused_without_showing_them() {
        let twice = format!("a={SEED},a={SEED}");
        let many: String = (0..=KEYS_MAX).map(|i| format!("k{i}={SEED},")).collect();
        let not_hex = SEED.replace('9', "g");
        for (bad, why) in [
            (SEED, "id=seed"),
            (&format!("a b={SEED}"), "key_id `a b`"),
            (&format!("a={}", &SEED[..63]), "64 hexadecimal digits"),
            (&format!("a={not_hex}"), "64 hexadecimal digits"),
            (&twice, "twice"),
            (&many, "at most 100"),
        ] {
            let refused = KeyRing::parse(bad).unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
            assert!(!refused.message.contains(&SEED[..8]) && !refused.message.contains("b1gd"), "{refused}");
        }
        assert_eq!(format!("{:?}", ring()), "{KeyId(\"dev-key-1\"), KeyId(\"dev-key-2\")}");
    }

    #[test]
    fn malformed_signatures_and_public_keys_are_refused() {
        for bad in ["", "00", &"g".repeat(128), &"0".repeat(127), &"0".repeat(129), &"é".repeat(64)] {
            assert_eq!(Signature::from_hex(bad).unwrap_err().field, "signature", "{bad}");
            assert_eq!(PublicKey::from_hex(bad).unwrap_err().field, "public key", "{bad}");
        }
    }
}
