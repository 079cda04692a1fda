//! What kind of address it is, by the registries of special-purpose addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names the class of an address that is not global unicast. Mapped addresses are unwrapped before.
pub(super) fn forbidden_class(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => forbidden_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => forbidden_v4(inner),
            None => forbidden_v6(address),
        },
    }
}

/// First address, bits that count, class; the first line that fits names it.
#[rustfmt::skip] // the columns are the point
const V4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0],         8, "this network"),
    ([10, 0, 0, 0],        8, "private"),
    ([100, 64, 0, 0],     10, "shared by a carrier or an overlay network"),
    ([127, 0, 0, 0],       8, "loopback"),
    ([168, 63, 129, 16],  32, "a cloud platform's own"),
    ([169, 254, 0, 0],    16, "link-local"),
    ([172, 16, 0, 0],     12, "private"),
    ([192, 0, 0, 0],      24, "reserved for protocols"),
    ([192, 0, 2, 0],      24, "for documentation"),
    ([192, 88, 99, 0],    24, "a 6to4 relay"),
    ([192, 168, 0, 0],    16, "private"),
    ([198, 18, 0, 0],     15, "for benchmarks"),
    ([198, 51, 100, 0],   24, "for documentation"),
    ([203, 0, 113, 0],    24, "for documentation"),
    ([224, 0, 0, 0],       4, "multicast"),
    ([255, 255, 255, 255], 32, "broadcast"),
    ([240, 0, 0, 0],       4, "reserved"),
];

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    let fits = |first: &[u8; 4], bits: u32| (address.to_bits() ^ u32::from_be_bytes(*first)) >> (32 - bits) == 0;
    V4.iter().find(|(first, bits, _)| fits(first, *bits)).map(|(_, _, class)| *class)
}

/// The same for IPv6, where all that lies outside of the one global block is refused at the end.
#[rustfmt::skip] // the columns are the point
const V6: &[([u16; 8], u32, &str)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0],               128, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1],               128, "loopback"),
    ([0, 0, 0, 0, 0, 0, 0, 0],                96, "an IPv4 address in an old form"),
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0],        96, "a NAT64 translation"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0],        48, "a NAT64 translation"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0],            64, "discarded"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0],           32, "a Teredo tunnel"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0],           23, "reserved for protocols"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],       32, "for documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0],           16, "a 6to4 tunnel"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0],           20, "for documentation"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0],            7, "unique local"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0],           10, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0],           10, "site-local"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0],            8, "multicast"),
];

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let beyond = |first: &[u16; 8], bits: u32| (address.to_bits() ^ Ipv6Addr::from(*first).to_bits()) >> (128 - bits);
    let class = V6.iter().find(|(first, bits, _)| beyond(first, *bits) == 0).map(|(_, _, class)| *class);
    let outside = || (beyond(&[0x2000, 0, 0, 0, 0, 0, 0, 0], 3) != 0).then_some("outside of global unicast");
    class.or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> Option<&'static str> {
        forbidden_class(text.parse().unwrap())
    }

    #[test]
    fn every_special_range_is_refused_from_its_first_to_its_last_address_and_not_beside_it() {
        // Before, first, last, after; a dash where the neighbour is special as well.
        for (before, first, last, after) in [
            ("-", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
            ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
            ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
            ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
            ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
            ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
            ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
            ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
            ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
            ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
            ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
            ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
            ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
            ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
            ("223.255.255.255", "224.0.0.0", "255.255.255.255", "-"),
            ("-", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"),
            ("2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:1ff:ffff:ffff:ffff::", "2001:200::"),
            ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff::1", "2001:db9::"),
            ("2001:ffff::", "2002::", "2002:ffff:ffff::1", "2003::"),
            ("3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::"),
            ("3fff:ffff::", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"),
        ] {
            for outside in [before, after].into_iter().filter(|text| *text != "-") {
                assert_eq!(class(outside), None, "{outside}");
            }
            assert!(class(first).is_some() && class(last).is_some(), "{first} to {last}");
        }
    }

    #[test]
    fn a_refusal_names_the_class() {
        for (address, named) in [
            ("169.254.169.254", "link-local"),
            ("::ffff:169.254.169.254", "link-local"),
            ("64:ff9b::a9fe:a9fe", "a NAT64 translation"),
            ("64:ff9b:1::a9fe:a9fe", "a NAT64 translation"),
            ("2002:7f00:1::", "a 6to4 tunnel"),
            ("2001:0:7f00:1::", "a Teredo tunnel"),
            ("::127.0.0.1", "an IPv4 address in an old form"),
            ("::ffff:0:127.0.0.1", "outside of global unicast"),
            ("::1", "loopback"),
            ("::", "unspecified"),
            ("100::1", "discarded"),
            ("fd00:ec2::254", "unique local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("240.0.0.1", "reserved"),
            ("168.63.129.16", "a cloud platform's own"),
        ] {
            assert_eq!(class(address), Some(named), "{address}");
        }
        assert_eq!(class("::ffff:93.184.215.14"), None, "a mapped address is what it maps to");
    }
}
