//! How an endpoint's secret is kept in a database: sealed with a key that is not in it.
//!
//! A [`MasterKeys`] list comes from the operator's configuration, `2026-11:<key>,2025-03:<key>`: the first key seals, all
//! of them open, so a key is changed by putting a new one in front and sealing again what names an old one. A sealed
//! secret belongs to one tenant and one endpoint: both are authenticated with it, and a row that was copied to another
//! endpoint does not open. XChaCha20-Poly1305; its nonce is long enough to be drawn at random without counting.
//!
//! ```text
//!   1 byte   1 byte   n bytes   24 bytes   secret + 16 bytes
//!   version  n        key id    nonce      ciphertext and tag
//! ```

mod key;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use tenure_core::TenantName;
use zeroize::Zeroizing;

use crate::secret::{Secret, random};

pub use key::{MasterKey, MasterKeys};

/// First byte of everything sealed in this way.
const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// Whose secret it is.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The endpoint's tenant.
    pub tenant: &'a TenantName,
    /// The endpoint's id, as it is stored.
    pub endpoint: &'a str,
}

/// A secret that only the holder of a master key can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    key: String,
    nonce: [u8; NONCE_BYTES],
    ciphertext: Vec<u8>,
}

/// Why a sealed secret does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The bytes are not a sealed secret.
    #[error("these {bytes} bytes are no sealed secret: {why}")]
    Corrupt {
        /// How many there are.
        bytes: usize,
        /// What is wrong with them.
        why: &'static str,
    },
    /// It was sealed with a key that is not configured any more.
    #[error("the secret is sealed with master key `{key}`, which is not configured: add it behind the first")]
    UnknownKey {
        /// The key's id.
        key: String,
    },
    /// Another key of that id, another owner, or changed bytes: which of them cannot be told.
    #[error("the sealed secret does not open with master key `{key}`: the key, its owner or its bytes are others")]
    Mismatch {
        /// The key's id.
        key: String,
    },
}

impl MasterKeys {
    /// Seals with the first key.
    pub fn seal(&self, secret: &Secret, owner: Owner<'_>) -> SealedSecret {
        let key = self.first();
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce);
        let payload = Payload { msg: secret.bytes(), aad: &owned(key.id(), owner) };
        // It fails for messages of 256 GB only.
        let ciphertext = cipher(key).encrypt(&XNonce::from(nonce), payload).expect("a secret is short");
        SealedSecret { key: key.id().to_owned(), nonce, ciphertext }
    }

    /// Opens what was sealed with any of the keys for this owner.
    pub fn open(&self, sealed: &SealedSecret, owner: Owner<'_>) -> Result<Secret, SealError> {
        let unknown = || SealError::UnknownKey { key: sealed.key.clone() };
        let key = self.find(&sealed.key).ok_or_else(unknown)?;
        let payload = Payload { msg: &sealed.ciphertext, aad: &owned(key.id(), owner) };
        let opened = cipher(key).decrypt(&XNonce::from(sealed.nonce), payload);
        let opened = opened.map_err(|_| SealError::Mismatch { key: sealed.key.clone() })?;
        let corrupt = |_| SealError::Corrupt { bytes: sealed.ciphertext.len(), why: "no secret has that length" };
        Secret::from_bytes(Zeroizing::new(opened)).map_err(corrupt)
    }

    /// Whether it was sealed with a key that is no longer the first, and should be sealed again.
    pub fn is_stale(&self, sealed: &SealedSecret) -> bool {
        sealed.key != self.first().id()
    }
}

impl SealedSecret {
    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Ids are 32 bytes at most: checked when the key was read, and by the length byte when this was.
        let length = u8::try_from(self.key.len()).unwrap_or(u8::MAX);
        let mut bytes = vec![VERSION, length];
        bytes.extend_from_slice(self.key.as_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.ciphertext);
        bytes
    }

    /// Reads what was stored; nothing is opened yet.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SealError> {
        let corrupt = |why| SealError::Corrupt { bytes: bytes.len(), why };
        let (&version, rest) = bytes.split_first().ok_or_else(|| corrupt("there are none"))?;
        if version != VERSION {
            return Err(corrupt("they begin with another version"));
        }
        let (&length, rest) = rest.split_first().ok_or_else(|| corrupt("they end too early"))?;
        let (key, rest) = rest.split_at_checked(length.into()).ok_or_else(|| corrupt("they end too early"))?;
        let (nonce, ciphertext) = rest.split_first_chunk().ok_or_else(|| corrupt("they end too early"))?;
        if ciphertext.len() <= TAG_BYTES {
            return Err(corrupt("they end too early"));
        }
        let key = std::str::from_utf8(key).map_err(|_| corrupt("their key id is no text"))?;
        Ok(Self { key: key.to_owned(), nonce: *nonce, ciphertext: ciphertext.to_owned() })
    }

    /// Which key it was sealed with.
    pub fn key_id(&self) -> &str {
        &self.key
    }
}

fn cipher(key: &MasterKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.bytes().into())
}

/// What is authenticated beside the secret. Each part has its length in front: no two owners give the same bytes.
fn owned(key: &str, owner: Owner<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in ["tenure webhook secret 1", key, owner.tenant.as_str(), owner.endpoint] {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}
