//! Which URLs and addresses may be called.
//!
//! An endpoint's URL is the wish of somebody outside; the server that calls it stands inside, beside databases, metadata
//! services and other people's machines. The rule is about addresses, because a name can be made to resolve to anything:
//!
//! 1. A URL is read once, by one parser, into a [`Target`]; nothing reads its text again. What parsers disagree about
//!    (backslashes, line breaks, user names, a trailing dot) is refused instead of interpreted.
//! 2. An address is called only if it is global unicast, or on the operator's `allow` list. Mapped addresses are judged
//!    as what they map to; addresses that carry another one inside (NAT64, 6to4, Teredo) are refused altogether.
//! 3. A name is judged by **every** address that it resolves to, at the moment it is called: one that is refused refuses
//!    all, so that an answer of two addresses cannot hide one behind the other. Who checks a name when it is registered
//!    and again when it is called has still checked nothing in between; only the addresses that are connected to count.
//! 4. Names that mean something inside (`localhost`, `*.local`, `*.internal`, `home.arpa`, a single label) are refused by
//!    name, which says more than a failed lookup. Where the `allow` list has an entry they are judged by their addresses
//!    like any other: a developer allows `127.0.0.0/8` and calls `localhost`.

mod address;
mod cidr;
mod host;
mod target;

use std::net::IpAddr;

use tenure_core::Invalid;
use url::Host;

pub use cidr::Cidr;
pub use host::HostRule;
pub use target::{Target, URL_BYTES_MAX};

/// What is called without asking, and what is not.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// Refuses `http://`. True, but for development.
    pub https_only: bool,
    /// Ports that may be called; none in the list: any.
    pub ports: Vec<u16>,
    /// Addresses that may be called although they are not global unicast.
    pub allow: Vec<Cidr>,
}

impl Default for GuardOptions {
    fn default() -> Self {
        Self { https_only: true, ports: vec![80, 443], allow: Vec::new() }
    }
}

/// Decides what may be called; see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Guard {
    options: GuardOptions,
    /// The only hosts that may be called; none: every host.
    hosts: Option<Vec<HostRule>>,
}

/// Something that must not be called. The texts name a host or a class of addresses and never an address that a name
/// resolved to: whoever registered the endpoint reads them, and is not to learn the network from us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The URL itself.
    #[error(transparent)]
    Url(#[from] Invalid),
    /// A name of the inside.
    #[error("host `{host}` is refused: it is a name inside of a network, call one that everybody can resolve")]
    Name {
        /// The name.
        host: String,
    },
    /// A host that an operator has not listed.
    #[error("host `{host}` is not one of those that an operator allows here")]
    NotListed {
        /// The name or address.
        host: String,
    },
    /// An address, written in the URL or found behind a name.
    #[error("its address is refused: it is {class}, and only global unicast addresses or those allowed are called")]
    Address {
        /// The address. Not in the text.
        address: IpAddr,
        /// What kind it is: `loopback`, `private`, …
        class: &'static str,
    },
    /// A name without any address.
    #[error("it has no address")]
    NoAddress,
}

impl Guard {
    /// Decides by these options.
    pub fn new(options: GuardOptions) -> Self {
        Self { options, hosts: None }
    }

    /// The same guard for these hosts alone. Their [`HostRule::Address`] entries may be called although they are not
    /// global unicast.
    #[must_use]
    pub fn only(mut self, hosts: Vec<HostRule>) -> Self {
        self.options.allow.extend(hosts.iter().filter_map(|rule| match rule {
            HostRule::Address(range) => Some(*range),
            _ => None,
        }));
        self.hosts = Some(hosts);
        self
    }

    /// Reads a URL and refuses what can be refused before a name is resolved.
    pub fn check_url(&self, url: &str) -> Result<Target, Refused> {
        let target = Target::parse(url)?;
        self.check_target(&target)?;
        Ok(target)
    }

    /// The rules that depend on the options; a sender asks them again, as its guard may not be the one of registration.
    pub(crate) fn check_target(&self, target: &Target) -> Result<(), Refused> {
        if self.options.https_only && !target.is_https() {
            return Err(Invalid::new("url scheme", "http", "endpoints are called by https://").into());
        }
        if !self.options.ports.is_empty() && !self.options.ports.contains(&target.port()) {
            let ports: Vec<String> = self.options.ports.iter().map(u16::to_string).collect();
            return Err(Invalid::new("url port", target.port(), format!("it is one of {}", ports.join(", "))).into());
        }
        let host = target.host();
        if self.hosts.as_ref().is_some_and(|hosts| !hosts.iter().any(|rule| rule.lists(host))) {
            return Err(Refused::NotListed { host: host.to_string() });
        }
        match host {
            Host::Ipv4(address) => self.check_address((*address).into()),
            Host::Ipv6(address) => self.check_address((*address).into()),
            Host::Domain(name) if self.options.allow.is_empty() && target::is_inside(name) => {
                Err(Refused::Name { host: name.clone() })
            }
            Host::Domain(_) => Ok(()),
        }
    }

    /// Refuses all if any of them is refused, or if there is none.
    pub fn check_addresses(&self, addresses: &[IpAddr]) -> Result<(), Refused> {
        if addresses.is_empty() {
            return Err(Refused::NoAddress);
        }
        addresses.iter().try_for_each(|address| self.check_address(*address))
    }

    fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        let meant = address.to_canonical();
        match address::forbidden_class(meant) {
            Some(class) if !self.options.allow.iter().any(|cidr| cidr.contains(meant)) => {
                Err(Refused::Address { address, class })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_forbidden_address_refuses_all() {
        let guard = Guard::default();
        let [public, private] = ["93.184.215.14", "10.0.0.1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(guard.check_addresses(&[public]), Ok(()));
        for order in [[public, private], [private, public]] {
            let refused = guard.check_addresses(&order).unwrap_err();
            assert_eq!(refused, Refused::Address { address: private, class: "private" });
        }
        assert_eq!(guard.check_addresses(&[]), Err(Refused::NoAddress));
    }

    #[test]
    fn what_is_allowed_is_called_and_nothing_beside_it() {
        let guard = Guard::new(GuardOptions { allow: vec!["127.0.0.2/32".parse().unwrap()], ..Default::default() });
        let check = |text: &str| guard.check_addresses(&[text.parse().unwrap()]);
        assert_eq!(check("127.0.0.2"), Ok(()));
        assert_eq!(check("::ffff:127.0.0.2"), Ok(()), "a mapped address is what it maps to");
        assert!(check("127.0.0.1").is_err());
        assert!(check("::ffff:127.0.0.1").is_err());
        assert!(guard.check_url("https://localhost/").is_ok(), "judged by what it resolves to");
        assert!(guard.check_url("https://127.0.0.1/").is_err());
    }

    #[test]
    fn a_refusal_does_not_tell_what_a_name_resolves_to() {
        let refused = Guard::default().check_addresses(&["10.20.30.40".parse().unwrap()]).unwrap_err();
        assert!(refused.to_string().contains("private") && !refused.to_string().contains("10.20"), "{refused}");
    }
}
