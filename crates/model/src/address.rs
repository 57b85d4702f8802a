//! Which addresses are out in the world, and which are this machine, a private network or the secrets of a cloud machine. It looks nothing up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// See [`is_public`].
pub fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = a == 0 || a >= 224 || (a == 100 && b & 0xc0 == 64) || (a, b, c) == (192, 0, 0) || (a, b & 0xfe) == (198, 18);
    !(address.is_loopback() || address.is_private() || address.is_link_local() || address.is_documentation() || reserved)
}

/// See [`is_public`].
pub fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let embeds_v4 = first == 0x2002 || (first, second) == (0x2001, 0);
    let documentation = (first, second) == (0x2001, 0xdb8);
    // Global unicast and nothing else: loopback, mapped, local, NAT64 and multicast addresses are all outside of 2000::/3.
    first & 0xe000 == 0x2000 && !embeds_v4 && !documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_out_in_the_world_is_public() {
        for private in
            ["127.0.0.1", "10.0.0.1", "169.254.169.254", "169.254.170.2", "::1", "::ffff:127.0.0.1", "fe80::1", "fd00::1", "0.0.0.0"]
        {
            assert!(!is_public(private.parse().expect("an address")), "{private}");
        }
        for public in ["8.8.8.8", "2606:4700::1"] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
    }
}
