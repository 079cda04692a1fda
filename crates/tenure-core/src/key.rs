//! API keys and worker tokens: what they look like, what they allow, and how little a store keeps of them.
//!
//! ```text
//!   tnk_ k7p2mq4xzc3a _ 5f…32 characters…q  h3x7ab
//!   what  id, public    secret, 160 bits     checksum
//! ```
//!
//! The id is how a credential is looked up and named; the secret is shown once and never stored. A store keeps its
//! SHA-256: it is random, so a slow hash would protect nothing and cost every request. The checksum is
//! for people and scanners: a text that was cut or mistyped is told from one that was revoked, and a leaked one is found
//! by its shape.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::id::WorkerId;
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// Letters and digits that are not mistaken for each other, nor for upper case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters of a key's id: 60 bits.
const ID_CHARS: usize = 12;
/// Characters of a secret: 160 bits.
const SECRET_CHARS: usize = 32;
/// Characters of a checksum: 30 bits.
const CHECK_CHARS: usize = 6;
/// Random bytes that a new key is made of.
pub const KEY_RANDOM_BYTES: usize = 28;
/// Random bytes that a new worker token is made of.
pub const TOKEN_RANDOM_BYTES: usize = 20;

/// The end of a key that takes another one's place: the asked one, or else that of the key before it. `None` as the outer
/// answer: the key before it has ended and hands nothing on. On Postgres `tenure.create_key` decides the same.
pub fn end_of_successor(
    before: Option<Timestamp>,
    asked: Option<Timestamp>,
    now: Timestamp,
) -> Option<Option<Timestamp>> {
    match before {
        Some(end) if end <= now => None,
        before => Some(asked.or(before)),
    }
}

/// Something a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Store jobs.
    Enqueue,
    /// See jobs, runs, schedules and figures.
    Read,
    /// Cancel, requeue, pause, trip, resume.
    Operate,
    /// Claim jobs and report how they ended.
    Worker,
    /// Tenants, keys and webhook endpoints.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [Self::Enqueue, Self::Read, Self::Operate, Self::Worker, Self::Admin];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Worker => "worker",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a key allows; never nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// These.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Result<Self, Invalid> {
        match scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()) {
            0 => Err(Self::refused("")),
            bits => Ok(Self(bits)),
        }
    }

    /// Whether this is among them.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.allow(*scope))
    }

    fn refused(text: &str) -> Invalid {
        Invalid::new("scopes", text, "they are some of enqueue, read, operate, worker and admin, with commas between")
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for Scopes {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let scope = |word: &str| Scope::ALL.into_iter().find(|scope| scope.as_str() == word.trim());
        let scopes: Option<Vec<Scope>> = text.split(',').map(scope).collect();
        Self::new(scopes.ok_or_else(|| Self::refused(text))?)
    }
}

/// The public name of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Box<str>);

impl KeyId {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for KeyId {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() == ID_CHARS && is_in_alphabet(text) {
            return Ok(Self(text.into()));
        }
        Err(Invalid::new(
            "key",
            text,
            "a key's id is 12 characters, such as k7p2mq4xzc3a; `tenure keys list` shows them",
        ))
    }
}

/// What a store keeps of a credential.
pub type SecretHash = [u8; 32];

/// A key or a token in full, on its way to the one who will use it. Prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(Box<str>);

impl Credential {
    /// A new key from random bytes: its id and its text.
    pub fn new_key(random: [u8; KEY_RANDOM_BYTES]) -> (KeyId, Self) {
        let (id, secret) = random.split_at(KEY_RANDOM_BYTES - TOKEN_RANDOM_BYTES);
        let id = KeyId(encode(id, ID_CHARS).into());
        let credential = Self::seal(&format!("tnk_{id}_{}", encode(secret, SECRET_CHARS)));
        (id, credential)
    }

    /// The token of one worker process start, from random bytes.
    pub fn new_token(worker: WorkerId, random: [u8; TOKEN_RANDOM_BYTES]) -> Self {
        Self::seal(&format!("tnw_{worker}_{}", encode(&random, SECRET_CHARS)))
    }

    /// Reads a key as a caller sends it: whose it says to be. It is proven by [`is_of`](Self::is_of).
    pub fn parse_key(text: &str) -> Option<(KeyId, Self)> {
        let id = Self::checked("tnk_", text)?.parse().ok()?;
        Some((id, Self(text.into())))
    }

    /// The same for a worker's token.
    pub fn parse_token(text: &str) -> Option<(WorkerId, Self)> {
        let worker = Self::checked("tnw_", text)?.parse().ok().filter(|worker| *worker > 0)?;
        Some((WorkerId(worker), Self(text.into())))
    }

    /// The text, for the one who will use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What a store keeps: of the secret alone, because a worker's number is only known when its token is stored.
    pub fn hash(&self) -> SecretHash {
        let secret = self.0.rsplit('_').next().unwrap_or_default();
        hash_secret(&secret[..secret.len().min(SECRET_CHARS)])
    }

    /// The hash of the token that will be made of these bytes, whatever the worker's number.
    pub fn token_hash(random: [u8; TOKEN_RANDOM_BYTES]) -> SecretHash {
        hash_secret(&encode(&random, SECRET_CHARS))
    }

    /// Whether a store's hash is of this credential. Takes the same time wherever they differ.
    pub fn is_of(&self, kept: &SecretHash) -> bool {
        self.hash().iter().zip(kept).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    fn seal(text: &str) -> Self {
        Self(format!("{text}{}", checksum(text)).into())
    }

    /// The id of a text that has the right shape and checksum.
    fn checked<'t>(prefix: &str, text: &'t str) -> Option<&'t str> {
        let (id, secret) = text.strip_prefix(prefix)?.split_once('_')?;
        let shaped = secret.len() == SECRET_CHARS + CHECK_CHARS && is_in_alphabet(secret);
        let (said, check) = text.split_at_checked(text.len().checked_sub(CHECK_CHARS)?)?;
        (shaped && checksum(said) == check).then_some(id)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn hash_secret(secret: &str) -> SecretHash {
    Sha256::digest(secret.as_bytes()).into()
}

fn checksum(text: &str) -> String {
    encode(&Sha256::digest(text.as_bytes()), CHECK_CHARS)
}

fn is_in_alphabet(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// The first bits of `bytes`, five to a character.
fn encode(bytes: &[u8], chars: usize) -> String {
    let bit = |n: usize| usize::from(bytes[n / 8] >> (7 - n % 8) & 1);
    let value = |at: usize| (at * 5..at * 5 + 5).fold(0, |value, n| value << 1 | bit(n));
    (0..chars).map(|at| char::from(ALPHABET[value(at)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> [u8; KEY_RANDOM_BYTES] {
        std::array::from_fn(|n| (n * 37 + 11) as u8)
    }

    #[test]
    fn a_key_is_read_back_and_proven() {
        let (id, key) = Credential::new_key(random());
        assert_eq!(key.reveal().len(), 4 + ID_CHARS + 1 + SECRET_CHARS + CHECK_CHARS);
        let (read, again) = Credential::parse_key(key.reveal()).unwrap();
        assert_eq!((&read, &again), (&id, &key));
        assert!(again.is_of(&key.hash()));
        let (_, other) = Credential::new_key([7; KEY_RANDOM_BYTES]);
        assert!(!other.is_of(&key.hash()));
    }

    #[test]
    fn a_token_names_its_worker() {
        let token = Credential::new_token(WorkerId(17), [9; TOKEN_RANDOM_BYTES]);
        let (worker, again) = Credential::parse_token(token.reveal()).unwrap();
        assert_eq!((worker, again), (WorkerId(17), token.clone()));
        assert!(token.is_of(&Credential::token_hash([9; TOKEN_RANDOM_BYTES])));
    }

    #[test]
    fn every_change_of_one_character_is_noticed() {
        let (_, key) = Credential::new_key(random());
        for at in 0..key.reveal().len() {
            let mut text: Vec<u8> = key.reveal().bytes().collect();
            text[at] = if text[at] == b'a' { b'b' } else { b'a' };
            let text = String::from_utf8(text).unwrap();
            assert_eq!(Credential::parse_key(&text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let (_, key) = Credential::new_key(random());
        let token = Credential::new_token(WorkerId(3), [9; TOKEN_RANDOM_BYTES]);
        let cut = &key.reveal()[..key.reveal().len() - 1];
        for text in ["", "tnk_", "tnk__", "x", "tnk_é_é", cut, &format!("{}a", key.reveal()), token.reveal()] {
            assert_eq!(Credential::parse_key(text), None, "{text}");
        }
        for text in ["", "tnw_17_", key.reveal(), &Credential::seal(&format!("tnw_-1_{}", "a".repeat(32))).0] {
            assert_eq!(Credential::parse_token(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let (_, key) = Credential::new_key(random());
        assert_eq!(format!("{key:?}"), "***");
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        let some: Scopes = "worker, read".parse().unwrap();
        assert_eq!(some.to_string(), "read,worker");
        assert!(some.allow(Scope::Worker) && !some.allow(Scope::Admin));
        for bad in ["", "read,", "root", "READ"] {
            assert_eq!(bad.parse::<Scopes>().unwrap_err().field, "scopes", "{bad:?}");
        }
        let all = Scopes::new(Scope::ALL).unwrap();
        assert_eq!(all.to_string().parse(), Ok(all));
    }
}
