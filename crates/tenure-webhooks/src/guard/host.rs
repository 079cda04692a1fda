//! [`HostRule`]: one entry of a list of hosts that may be called.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use tenure_core::Invalid;
use url::Host;

use super::Cidr;

const LIMIT: &str = "it is any, a name such as api.example.com, *.example.com for the names below it, an address or a \
    range such as 10.0.0.0/8";

/// Which hosts of URLs may be called. Addresses that are not global unicast need an [`Address`](Self::Address) entry of
/// their own, also where a listed name leads to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// `any`: every host with a public address.
    Any,
    /// `api.example.com`: this name.
    Name(String),
    /// `*.example.com`: every name below this one.
    Below(String),
    /// `127.0.0.1` or `10.0.0.0/8`: these addresses, public or not.
    Address(Cidr),
}

impl HostRule {
    /// Whether this entry lists the host of a URL.
    pub(super) fn lists(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(listed), Host::Domain(name)) => listed == name,
            (Self::Below(listed), Host::Domain(name)) => {
                name.strip_suffix(listed.as_str()).is_some_and(|before| before.ends_with('.'))
            }
            (Self::Address(range), Host::Ipv4(address)) => range.contains((*address).into()),
            (Self::Address(range), Host::Ipv6(address)) => range.contains(IpAddr::from(*address).to_canonical()),
            _ => false,
        }
    }
}

impl FromStr for HostRule {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "any" {
            return Ok(Self::Any);
        }
        let range = match text.parse::<IpAddr>() {
            Ok(address) if address.is_ipv4() => format!("{address}/32").parse(),
            Ok(address) => format!("{address}/128").parse(),
            Err(_) => text.parse(),
        };
        if let Ok(range) = range {
            return Ok(Self::Address(range));
        }
        let refuse = || Invalid::new("host", text, LIMIT);
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err(refuse());
        }
        // The same reading as a URL's host: lower case, punycode, no port and no path.
        match Host::parse(name).map_err(|_| refuse())? {
            Host::Domain(name) if is_below => Ok(Self::Below(name)),
            Host::Domain(name) => Ok(Self::Name(name)),
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Address(range) => range.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lists_what_it_names_and_nothing_beside_it() {
        for (entry, host, is_listed) in [
            ("any", "anything.example", true),
            ("api.example.com", "api.example.com", true),
            ("API.Example.com", "api.example.com", true),
            ("api.example.com", "x.api.example.com", false),
            ("api.example.com", "api.example.com.evil.example", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "ten.example", false),
            ("localhost", "127.0.0.1", false),
        ] {
            let rule: HostRule = entry.parse().unwrap();
            assert_eq!(rule.lists(&Host::parse(host).unwrap()), is_listed, "{entry} {host}");
            assert_eq!(rule.to_string().parse::<HostRule>().unwrap(), rule, "{entry}");
        }
        for wrong in ["", "*", "*.", "https://a.example", "a.example:80", "a b", "*.127.0.0.1", "a/b"] {
            assert!(wrong.parse::<HostRule>().is_err(), "{wrong:?}");
        }
    }
}
