//! The memory for bodies, in two pots, with a share of each for one caller.
//!
//! Large bodies, and those of unknown length, share one pot. Small ones (a renewal, a report, most jobs) share another, so
//! that large bodies which are held back stop no small call. A tenant, an operator's key, or an address without a key
//! holds at most a quarter of a pot: a caller that sends slowly stops itself. Tenants and addresses together hold at most
//! three quarters, so that operators' keys, which workers use, always find room.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::KeyId;
use tenure_core::name::TenantName;

use crate::caller::Caller;
use crate::problem::{BUSY, Problem};

/// Announced bodies up to this size are small.
pub(crate) const SMALL_BYTES_MAX: usize = 64 << 10;
/// One caller's part of a pot is this fraction of it.
const SHARES: usize = 4;

/// Both pots.
pub(crate) struct Bodies {
    large: Arc<Pot>,
    small: Arc<Pot>,
}

/// The party that a body is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// All keys of a tenant together.
    Tenant(TenantName),
    /// An operator's key.
    Key(KeyId),
    /// A peer without a key, where its address is known.
    Address(Option<IpAddr>),
}

/// The address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A part of a pot, given back when it is dropped.
pub(crate) struct Held {
    pot: Arc<Pot>,
    holder: Holder,
    bytes: usize,
}

struct Pot {
    bytes: usize,
    share: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    all: usize,
    /// Of tenants and addresses.
    outside: usize,
    by: HashMap<Holder, usize>,
}

impl Bodies {
    /// `bytes` for large bodies, and a quarter more for small ones. A share holds one body of the largest size at least.
    pub(crate) fn new(bytes: usize, body_bytes_max: usize) -> Self {
        let pot = |bytes: usize, one: usize| {
            Arc::new(Pot { bytes, share: (bytes / SHARES).max(one), used: Mutex::default() })
        };
        Self { large: pot(bytes, body_bytes_max), small: pot((bytes / 4).max(SMALL_BYTES_MAX), SMALL_BYTES_MAX) }
    }

    /// Nothing yet, of the pot for bodies of this announced size.
    pub(crate) fn begin(&self, announced: Option<usize>, holder: Holder) -> Held {
        let is_small = announced.is_some_and(|bytes| bytes <= SMALL_BYTES_MAX);
        let pot = Arc::clone(if is_small { &self.small } else { &self.large });
        Held { pot, holder, bytes: 0 }
    }
}

impl Holder {
    /// The tenant or the key of a known caller, else the address of the peer.
    pub(crate) fn of(caller: Option<&Caller>, peer: Option<Peer>) -> Self {
        match caller {
            Some(Caller { tenant: Some(tenant), .. }) => Self::Tenant(tenant.clone()),
            Some(Caller { key: Some(key), .. }) => Self::Key(key.clone()),
            _ => Self::Address(peer.map(|Peer(address)| address.to_canonical())),
        }
    }
}

impl Holder {
    fn is_outside(&self) -> bool {
        !matches!(self, Self::Key(_))
    }
}

impl Held {
    /// Takes as much as the body has needed so far; refuses what the pot or the holder's share cannot hold.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let mut used = self.pot.used();
        let own = used.by.get(&self.holder).copied().unwrap_or_default();
        if own + more > self.pot.share {
            return Err(Problem::new(BUSY, "this caller sends as many bodies at once as it may: end some first"));
        }
        let is_outside = self.holder.is_outside();
        if used.all + more > self.pot.bytes || (is_outside && used.outside + more > self.pot.outside_bytes()) {
            return Err(Problem::new(BUSY, "the server has as many bodies to read as it can hold"));
        }
        used.all += more;
        used.outside += if is_outside { more } else { 0 };
        *used.by.entry(self.holder.clone()).or_default() += more;
        drop(used);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.pot.used();
        used.all = used.all.saturating_sub(self.bytes);
        if self.holder.is_outside() {
            used.outside = used.outside.saturating_sub(self.bytes);
        }
        if let Entry::Occupied(mut own) = used.by.entry(self.holder.clone()) {
            *own.get_mut() = own.get().saturating_sub(self.bytes);
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

impl Pot {
    /// Most bytes of tenants and addresses together. One body of the largest size fits.
    fn outside_bytes(&self) -> usize {
        (self.bytes / SHARES * (SHARES - 1)).max(self.share)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    fn address(last: u8) -> Holder {
        Holder::Address(Some([192, 0, 2, last].into()))
    }

    #[test]
    fn one_caller_holds_a_quarter_and_others_the_rest() {
        let bodies = Bodies::new(4_000 * KIB, 500 * KIB);
        let mut own: Vec<Held> = (0..10).map(|_| bodies.begin(None, address(1))).collect();
        let taken = own.iter_mut().filter_map(|held| held.grow_to(500 * KIB).ok()).count();
        assert_eq!(taken, 2, "a quarter");
        let mut other = bodies.begin(Some(500 * KIB), address(2));
        other.grow_to(500 * KIB).expect("another caller has a share of its own");
        drop(own);
        bodies.begin(None, address(1)).grow_to(500 * KIB).expect("what was given back is there again");
        drop(other);
        assert_eq!(bodies.large.used().all, 0);
        assert!(bodies.large.used().by.is_empty(), "nothing is remembered of callers that hold nothing");
    }

    #[test]
    fn many_tenants_together_leave_room_for_operators_keys() {
        let bodies = Bodies::new(4_000 * KIB, 500 * KIB);
        let mut held: Vec<Held> = (0..8).map(|n| bodies.begin(Some(SMALL_BYTES_MAX), address(n))).collect();
        let taken = held.iter_mut().filter_map(|held| held.grow_to(SMALL_BYTES_MAX).ok()).count();
        held.extend((8..50).map(|n| bodies.begin(Some(SMALL_BYTES_MAX), address(n))));
        let more = held[8..].iter_mut().filter_map(|held| held.grow_to(SMALL_BYTES_MAX).ok()).count();
        assert_eq!(taken + more, 11, "three quarters of 1,000 KiB");
        let key = Holder::Key("aaaaaaaaaaaa".parse().expect("an id"));
        bodies.begin(Some(SMALL_BYTES_MAX), key).grow_to(SMALL_BYTES_MAX).expect("a worker's report");
        drop(held);
        assert_eq!(bodies.small.used().outside, 0);
    }

    #[test]
    fn small_bodies_have_a_pot_of_their_own() {
        let bodies = Bodies::new(1_000 * KIB, 1_000 * KIB);
        let mut large = bodies.begin(None, address(1));
        large.grow_to(1_000 * KIB).expect("the whole pot");
        assert!(bodies.begin(Some(SMALL_BYTES_MAX + 1), address(2)).grow_to(1).is_err());
        bodies.begin(Some(2), address(1)).grow_to(2).expect("a small one, also of the same caller");
    }

    #[test]
    fn keys_of_one_tenant_share() {
        let caller = |key: &str| Caller {
            key: Some(key.parse().expect("an id")),
            tenant: Some("acme".parse().expect("a name")),
            scopes: tenure_core::Scopes::new(Scope::ALL).expect("scopes"),
            via: "api",
        };
        use tenure_core::Scope;
        let (one, two) = (caller("aaaaaaaaaaaa"), caller("bbbbbbbbbbbb"));
        assert_eq!(Holder::of(Some(&one), None), Holder::of(Some(&two), None));
        let operators = |key: &str| Holder::of(Some(&Caller { tenant: None, ..caller(key) }), None);
        assert_ne!(operators("aaaaaaaaaaaa"), operators("bbbbbbbbbbbb"));
    }
}
