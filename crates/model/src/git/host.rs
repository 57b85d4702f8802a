//! The host of a repository's address: its spelling, and whether it names this machine or a private network by number. It looks
//! nothing up.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Reach;
use crate::address::{is_public_v4, is_public_v6};

const PRIVATE: &str = "is on this machine or in a private network (an admin can allow that with git_allow_private)";
const MALFORMED: &str = "has a host that is neither a name nor an address";

/// Names that mean this machine, or the secrets of a cloud machine, wherever they are looked up.
const OWN_NAMES: [&str; 6] =
    ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "metadata", "metadata.google.internal"];

/// Refuses a malformed host, and a private one unless those may be reached.
pub(super) fn check(host: &str, reach: Reach) -> Result<(), &'static str> {
    let private = if let Some(literal) = host.strip_prefix('[') {
        let address: Ipv6Addr = literal.strip_suffix(']').and_then(|inner| inner.parse().ok()).ok_or(MALFORMED)?;
        !is_public_v6(address)
    } else {
        is_private_name(host)?
    };
    if private && reach == Reach::Public { Err(PRIVATE) } else { Ok(()) }
}

fn is_private_name(host: &str) -> Result<bool, &'static str> {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(MALFORMED);
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    // The C library reads whatever ends in a number as an address: 2130706433, 0x7f.1 and 0177.0.0.1 are all 127.0.0.1.
    if last.bytes().all(|b| b.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit())) {
        return name.parse::<Ipv4Addr>().map(|address| !is_public_v4(address)).or_else(|_| numeric(&name).map(|()| true));
    }
    Ok(OWN_NAMES.contains(&name.as_str()) || name.ends_with(".localhost"))
}

/// An address in a spelling that people do not use: it is taken for private, whatever it is.
fn numeric(name: &str) -> Result<(), &'static str> {
    let is_number = |part: &str| match part.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => part.bytes().all(|b| b.is_ascii_digit()),
    };
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() <= 4 && parts.into_iter().all(is_number) { Ok(()) } else { Err(MALFORMED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "169.254.170.2",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::7f00:1]",
            "[fe80::1]",
            "[fd00::1]",
            "[2002:7f00:1::]",
            "localhost",
            "LocalHost.",
            "a.localhost",
            "metadata.google.internal",
        ] {
            assert_eq!(check(host, Reach::Public), Err(PRIVATE), "{host}");
            assert_eq!(check(host, Reach::Private), Ok(()), "{host}");
        }
    }

    #[test]
    fn public_hosts_pass() {
        for host in ["example.com", "git.example.co.uk", "8.8.8.8", "100.128.0.1", "172.32.0.1", "[2606:4700::1]", "x1", "a.1x"] {
            assert_eq!(check(host, Reach::Public), Ok(()), "{host}");
        }
    }

    #[test]
    fn malformed_hosts_pass_nowhere() {
        for host in ["", ".", "a..b", "-a.com", "a-.com", "a b", "a/b", "[::1", "[::g]", "::1", "1.2.3.4.5", "a.1", "%61.com", "ü.de"] {
            assert_eq!(check(host, Reach::Private), Err(MALFORMED), "{host}");
        }
    }
}
