//! [`MasterKeys`]: the operator's keys, by id.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tenure_core::Invalid;
use zeroize::Zeroizing;

/// Longest id of a key, in bytes; it is stored with every secret.
const ID_BYTES_MAX: usize = 32;
const KEY_BYTES: usize = 32;

/// 32 bytes and what they are called. Not shown by `Debug`, and overwritten when dropped.
#[derive(Clone)]
pub struct MasterKey {
    id: String,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

/// At least one key; the first one seals, all of them open.
#[derive(Clone)]
pub struct MasterKeys(Vec<MasterKey>);

impl MasterKey {
    /// What it is called.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }
}

impl MasterKeys {
    /// Refuses an empty list, and two keys of one name.
    pub fn new(keys: Vec<MasterKey>) -> Result<Self, Invalid> {
        if keys.is_empty() {
            return Err(Invalid::new("master keys", "", "there is at least one, as id:key"));
        }
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].iter().any(|before| before.id == key.id) {
                return Err(Invalid::new("master key", &key.id, "each id names one key"));
            }
        }
        Ok(Self(keys))
    }

    pub(super) fn first(&self) -> &MasterKey {
        &self.0[0]
    }

    pub(super) fn find(&self, id: &str) -> Option<&MasterKey> {
        self.0.iter().find(|key| key.id == id)
    }
}

impl FromStr for MasterKey {
    type Err = Invalid;

    /// Reads `id:key`, the key as 64 hexadecimal digits or base64. The refusal repeats at most the id.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let form = "a master key is id:key, the key 32 bytes as 64 hexadecimal digits or base64";
        let (id, key) = text.split_once(':').ok_or_else(|| Invalid::new("master key", "given", form))?;
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(allowed) {
            let limit = format!("the id in front of the colon is 1 to {ID_BYTES_MAX} of a-z A-Z 0-9 . _ -");
            return Err(Invalid::new("master key", "given", limit));
        }
        let bytes = hex(key).or_else(|| base64(key)).ok_or_else(|| Invalid::new("master key", id, form))?;
        Ok(Self { id: id.to_owned(), bytes })
    }
}

impl FromStr for MasterKeys {
    type Err = Invalid;

    /// Reads `id:key,id:key`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let keys = text.split(',').map(str::trim).filter(|key| !key.is_empty());
        Self::new(keys.map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({}: ***)", self.id)
    }
}

impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

fn hex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |b: u8| char::from(b).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

fn base64(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let decoded = Zeroizing::new(STANDARD.decode(text).ok()?);
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    if decoded.len() != KEY_BYTES {
        return None;
    }
    bytes.copy_from_slice(&decoded);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hexadecimal_or_base64() {
        let bytes: Vec<u8> = (0..32).map(|i| i * 8).collect();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        for text in [hex.clone(), hex.to_uppercase(), STANDARD.encode(&bytes)] {
            let key: MasterKey = format!("2026-11:{text}").parse().unwrap();
            assert_eq!((key.id(), key.bytes().as_slice()), ("2026-11", bytes.as_slice()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_and_no_key_is_repeated() {
        let key = "ab".repeat(32);
        for text in [
            String::new(),
            key.clone(),
            format!(":{key}"),
            format!("a b:{key}"),
            format!("{}:{key}", "x".repeat(33)),
            format!("a:{}", &key[1..]),
            format!("a:{key}ab"),
            format!("a:{}", STANDARD.encode([0xab; 31])),
            format!("a:{key},a:{key}"),
        ] {
            let refused = text.parse::<MasterKeys>().unwrap_err().to_string();
            assert!(refused.starts_with("master key"), "{refused}");
            assert!(!refused.contains("abab") && !refused.contains("q6ur"), "{refused}");
        }
    }

    #[test]
    fn debug_shows_ids_and_no_key() {
        let keys: MasterKeys = format!("new:{},old:{}", "ab".repeat(32), "cd".repeat(32)).parse().unwrap();
        assert_eq!(format!("{keys:?}"), "[MasterKey(new: ***), MasterKey(old: ***)]");
    }
}
