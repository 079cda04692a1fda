//! Secrets at rest.

use tenure_core::TenantName;
use tenure_webhooks::seal::SealError;
use tenure_webhooks::{MasterKeys, Owner, SealedSecret, Secret};

fn keys(list: &[(&str, u8)]) -> MasterKeys {
    let texts: Vec<String> =
        list.iter().map(|(id, byte)| format!("{id}:{}", format!("{byte:02x}").repeat(32))).collect();
    texts.join(",").parse().unwrap()
}

fn tenant(name: &str) -> TenantName {
    TenantName::new(name).unwrap()
}

#[test]
fn a_sealed_secret_opens_for_its_owner_and_nobody_else() {
    let keys = keys(&[("k1", 1)]);
    let (acme, other) = (tenant("acme"), tenant("other"));
    let owner = Owner { tenant: &acme, endpoint: "ep_1" };
    let secret = Secret::generate();
    let sealed = keys.seal(&secret, owner);
    assert_eq!(keys.open(&sealed, owner).unwrap().text(), secret.text());
    // The last two would be the same bytes without lengths between them.
    let (acmee, p_1) = (tenant("acmee"), "p_1");
    for stranger in [
        Owner { tenant: &other, endpoint: "ep_1" },
        Owner { tenant: &acme, endpoint: "ep_2" },
        Owner { tenant: &acme, endpoint: "" },
        Owner { tenant: &acmee, endpoint: p_1 },
    ] {
        let refused = keys.open(&sealed, stranger).unwrap_err();
        assert_eq!(refused, SealError::Mismatch { key: "k1".to_owned() }, "{stranger:?}");
    }
}

#[test]
fn no_bit_of_what_is_stored_can_be_changed() {
    let keys = keys(&[("k1", 1)]);
    let acme = tenant("acme");
    let owner = Owner { tenant: &acme, endpoint: "ep_1" };
    let bytes = keys.seal(&Secret::generate(), owner).to_bytes();
    assert_eq!(bytes.len(), 2 + 2 + 24 + 32 + 16);
    let open = |bytes: &[u8]| SealedSecret::from_bytes(bytes).and_then(|sealed| keys.open(&sealed, owner));
    assert!(open(&bytes).is_ok());
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&changed).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(open(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(open(&[bytes.as_slice(), b"x"].concat()).is_err());
}

#[test]
fn a_master_key_is_changed_by_putting_a_new_one_in_front() {
    let acme = tenant("acme");
    let owner = Owner { tenant: &acme, endpoint: "ep_1" };
    let (old, both, new) = (keys(&[("k1", 1)]), keys(&[("k2", 2), ("k1", 1)]), keys(&[("k2", 2)]));
    let secret = Secret::generate();
    let sealed = old.seal(&secret, owner);
    assert_eq!(both.open(&sealed, owner).unwrap().text(), secret.text());
    assert!(both.is_stale(&sealed) && !old.is_stale(&sealed));
    assert_eq!(new.open(&sealed, owner).unwrap_err(), SealError::UnknownKey { key: "k1".to_owned() });
    let again = both.seal(&both.open(&sealed, owner).unwrap(), owner);
    assert_eq!((again.key_id(), both.is_stale(&again)), ("k2", false));
    assert_eq!(new.open(&again, owner).unwrap().text(), secret.text());
    let impostor = keys(&[("k1", 9)]);
    assert_eq!(impostor.open(&sealed, owner).unwrap_err(), SealError::Mismatch { key: "k1".to_owned() });
}

#[test]
fn sealing_twice_gives_other_bytes() {
    let (keys, acme) = (keys(&[("k1", 1)]), tenant("acme"));
    let owner = Owner { tenant: &acme, endpoint: "ep_1" };
    let secret = Secret::generate();
    assert_ne!(keys.seal(&secret, owner).to_bytes(), keys.seal(&secret, owner).to_bytes());
}

#[test]
fn debug_shows_nothing() {
    let (keys, acme) = (keys(&[("k1", 0xab)]), tenant("acme"));
    let secret: Secret = format!("whsec_{}", "QUFB".repeat(8)).parse().unwrap();
    assert_eq!(format!("{secret:?} {secret:#?}"), "Secret(***) Secret(***)");
    assert_eq!(format!("{keys:?}"), "[MasterKey(k1: ***)]");
    let sealed = keys.seal(&secret, Owner { tenant: &acme, endpoint: "ep_1" });
    // Sealed bytes may be seen, the secret in them not: AAA is its text, 65 each of its bytes.
    let shown = format!("{sealed:?}");
    assert!(!shown.contains("AAA") && !shown.contains("65, 65, 65"), "{shown}");
}
