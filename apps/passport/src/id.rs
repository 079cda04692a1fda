//! Ids that follow from what they name: whoever asks twice for the same thing names the same row, and finds it there.

use uuid::Uuid;

use crate::canonical::Canonical;
use crate::code::Refusal;
use crate::digest::Digest;

/// The id of what these parts name, among things of one kind: the first 16 bytes of the SHA-256 of the canonical JSON
/// `["kind","part",…]`, marked as a UUID of version 8.
pub fn derived(kind: &str, parts: &[&str]) -> Result<Uuid, Refusal> {
    let names: Vec<&str> = std::iter::once(kind).chain(parts.iter().copied()).collect();
    Ok(of_digest(Canonical::of("name", &names)?.hash()))
}

/// The id of what this hash is of.
pub fn of_digest(hash: Digest) -> Uuid {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Reads an id; `field` names it in the refusal.
pub fn parse(field: &'static str, text: &str) -> Result<Uuid, Refusal> {
    let limit = "it is a UUID, such as 550e8400-e29b-41d4-a716-446655440000";
    text.parse().map_err(|_| tenure::Invalid::new(field, text, limit).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_parts_have_the_same_id_and_others_another() {
        let id = derived("event", &["acme", "a"]).unwrap();
        assert_eq!(derived("event", &["acme", "a"]).unwrap(), id);
        assert_eq!(id.get_version_num(), 8);
        for (kind, parts) in [("events", ["acme", "a"]), ("event", ["acm", "ea"]), ("event", ["a", "acme"])] {
            assert_ne!(derived(kind, &parts).unwrap(), id, "{kind} {parts:?}");
        }
    }
}
