//! [`Cidr`]: a range of addresses, as people write it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use tenure_core::Invalid;

/// A first address and the number of bits that count: `127.0.0.0/8`, `::1/128`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    first: IpAddr,
    bits: u32,
}

impl Cidr {
    /// Whether `address` lies inside. An IPv6 address that maps an IPv4 address is not in a range of IPv4: unwrap it first.
    pub fn contains(&self, address: IpAddr) -> bool {
        beyond(self.first, self.bits).is_some_and(|range| beyond(address, self.bits) == Some(range))
            && self.first.is_ipv4() == address.is_ipv4()
    }
}

/// The bits that count; the rest shifted away.
fn beyond(address: IpAddr, bits: u32) -> Option<u128> {
    match address {
        IpAddr::V4(address) => Some(u128::from(address.to_bits()) >> 32_u32.checked_sub(bits)?),
        IpAddr::V6(address) => Some(address.to_bits().checked_shr(128_u32.checked_sub(bits)?).unwrap_or_default()),
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

impl FromStr for Cidr {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |limit: &str| Invalid::new("address range", text, limit);
        let form = || refuse("it is an address and the bits that count: 127.0.0.0/8 or ::1/128");
        let (first, bits) = text.split_once('/').ok_or_else(form)?;
        let first: IpAddr = first.parse().map_err(|_| form())?;
        if !bits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(form());
        }
        let bits: u32 = bits.parse().map_err(|_| form())?;
        if first.to_canonical() != first {
            return Err(refuse("addresses that map IPv4 are judged as IPv4: write the range as such"));
        }
        let size = if first.is_ipv4() { 32 } else { 128 };
        let kept = beyond(first, bits).ok_or_else(form)?;
        let again = kept.checked_shl(size - bits).unwrap_or_default();
        let whole = match first {
            IpAddr::V4(first) => u128::from(first.to_bits()),
            IpAddr::V6(first) => first.to_bits(),
        };
        if again != whole {
            return Err(refuse("the bits behind those that count are zero: 10.0.0.0/8, not 10.1.2.3/8"));
        }
        Ok(Self { first, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        for (range, inside, outside) in [
            ("127.0.0.0/8", "127.255.255.255", "128.0.0.0"),
            ("127.0.0.1/32", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::1/128", "::1", "::2"),
            ("::/0", "ffff::", "1.2.3.4"),
            ("fd00::/8", "fdff:ffff::1", "fe00::"),
            ("10.0.0.0/15", "10.1.255.255", "10.2.0.0"),
        ] {
            let cidr: Cidr = range.parse().unwrap();
            assert!(cidr.contains(inside.parse().unwrap()), "{inside} is in {range}");
            assert!(!cidr.contains(outside.parse().unwrap()), "{outside} is not in {range}");
            assert_eq!(cidr.to_string(), range);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let texts = ["", "/", "127.0.0.1", "127.0.0.0/33", "127.0.0.0/-1", "127.0.0.0/+8", "127.0.0.0/", "::/129"];
        for text in texts.into_iter().chain(["10.1.2.3/8", "::2/127 ", "fe80::1/64", "::ffff:127.0.0.0/104", "a/8"]) {
            assert_eq!(text.parse::<Cidr>().unwrap_err().field, "address range", "{text}");
        }
    }
}
