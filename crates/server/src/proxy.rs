//! Whose word about a client is taken, where it is and how it came: that of configured proxies and of nobody else. What others write into
//! `X-Forwarded-For`, `-Proto` and `-Host` is ignored.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::peer::Peer;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// A network: `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address such as 10.0.0.7, or a network such as 10.0.0.0/8")]
pub struct InvalidNetwork;

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| InvalidNetwork)?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| InvalidNetwork)?;
        if bits <= most { Ok(Self { base, bits }) } else { Err(InvalidNetwork) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    /// Whether an address is in it.
    pub(crate) fn holds(self, ip: IpAddr) -> bool {
        match (self.base, ip.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => {
                let differing = base.to_bits() ^ ip.to_bits();
                differing.checked_shr(32 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(ip)) => {
                let differing = base.to_bits() ^ ip.to_bits();
                differing.checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Who is at the far end: the peer, or whom a trusted proxy says it speaks for. Each proxy appends what it saw, so the last that is no proxy of
/// ours is the client; what stands before that is the client's own word.
pub(crate) fn client(peer: Peer, headers: &HeaderMap, trusted: &[Network]) -> Peer {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.holds(ip));
    let Peer::Tcp(address) = peer else { return peer };
    let mut seen = address.ip();
    if !is_trusted(seen) {
        return peer;
    }
    let said: Vec<&str> = headers.get_all(FORWARDED_FOR).iter().flat_map(|value| value.to_str().unwrap_or("?").split(',')).collect();
    for word in said.into_iter().rev() {
        let Some(ip) = ip_of(word.trim()) else { break };
        seen = ip;
        if !is_trusted(ip) {
            break;
        }
    }
    Peer::Tcp(SocketAddr::new(seen, 0))
}

/// How a client came to the proxies in front.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside {
    /// Over TLS or not.
    pub(crate) tls: Option<bool>,
    /// The name and port that it used.
    pub(crate) host: Option<HeaderValue>,
}

/// What a trusted proxy says of how its client came; nothing where the peer is none. The outermost of several stands first.
pub(crate) fn outside(peer: Peer, headers: &HeaderMap, trusted: &[Network]) -> Outside {
    let is_trusted = |address: SocketAddr| trusted.iter().any(|network| network.holds(address.ip()));
    if !matches!(peer, Peer::Tcp(address) if is_trusted(address)) {
        return Outside::default();
    }
    let first = |name: HeaderName| headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim);
    let tls = first(FORWARDED_PROTO).and_then(|scheme| match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    });
    let host = first(FORWARDED_HOST).filter(|host| !host.is_empty()).and_then(|host| HeaderValue::from_str(host).ok());
    Outside { tls, host }
}

/// An address, with or without its port.
fn ip_of(text: &str) -> Option<IpAddr> {
    let plain = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    plain.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn seen(peer: &str, said: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in said {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(value).expect("a header"));
        }
        let trusted: Vec<Network> = trusted.iter().map(|text| text.parse().expect("a network")).collect();
        let peer = Peer::Tcp(SocketAddr::new(peer.parse().expect("an address"), 9));
        client(peer, &headers, &trusted).to_string()
    }

    #[test]
    fn security_03_only_a_trusted_proxy_says_who_the_client_is() {
        assert_eq!(seen("9.9.9.9", &["1.2.3.4"], &[]), "9.9.9.9");
        assert_eq!(seen("9.9.9.9", &["1.2.3.4"], &["10.0.0.0/8"]), "9.9.9.9");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
        assert_eq!(seen("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"], &["10.0.0.0/8"]), "1.2.3.4", "the client's own word stands first");
        assert_eq!(seen("10.0.0.1", &["6.6.6.6", "1.2.3.4:5555"], &["10.0.0.1"]), "1.2.3.4");
        assert_eq!(seen("::1", &["[2001:db8::7]:443"], &["::1"]), "2001:db8::7");
        assert_eq!(seen("10.0.0.1", &["1.2.3.4, nonsense"], &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(seen("10.0.0.1", &[], &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(seen("::ffff:10.0.0.1", &["1.2.3.4"], &["10.0.0.0/8"]), "1.2.3.4");
    }

    #[test]
    fn only_a_trusted_proxy_says_how_the_client_came() {
        let came = |peer: &str, said: &[(HeaderName, &str)]| {
            let headers: HeaderMap =
                said.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a header"))).collect();
            let peer = Peer::Tcp(SocketAddr::new(peer.parse().expect("an address"), 9));
            let Outside { tls, host } = outside(peer, &headers, &["10.0.0.1".parse().expect("a network")]);
            (tls, host.map(|host| host.to_str().expect("text").to_owned()))
        };
        let said = [(FORWARDED_PROTO, "https"), (FORWARDED_HOST, "run.example.com")];
        assert_eq!(came("10.0.0.1", &said), (Some(true), Some("run.example.com".to_owned())));
        assert_eq!(came("10.0.0.2", &said), (None, None), "a stranger's word");
        assert_eq!(came("10.0.0.1", &[]), (None, None));
        let chain = [(FORWARDED_PROTO, "HTTPS, http"), (FORWARDED_HOST, "run.example.com, inner:8080")];
        assert_eq!(came("10.0.0.1", &chain), (Some(true), Some("run.example.com".to_owned())), "the outermost stands first");
        assert_eq!(came("10.0.0.1", &[(FORWARDED_PROTO, "gopher"), (FORWARDED_HOST, " ")]), (None, None));
        assert_eq!(came("10.0.0.1", &[(FORWARDED_PROTO, "http")]).0, Some(false));
        assert_eq!(outside(Peer::Unknown, &HeaderMap::new(), &[]), Outside::default());
    }

    #[test]
    fn networks_are_read_and_hold_what_they_should() {
        let all: Network = "0.0.0.0/0".parse().expect("a network");
        assert!(all.holds("1.2.3.4".parse().expect("an address")));
        assert!(!all.holds("::2".parse().expect("an address")));
        let eight: Network = "fd00::/8".parse().expect("a network");
        assert!(eight.holds("fd12::1".parse().expect("an address")));
        assert!(!eight.holds("fe80::1".parse().expect("an address")));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "example.com", "::/129", "10.0.0.0/x"] {
            assert_eq!(bad.parse::<Network>(), Err(InvalidNetwork), "{bad}");
        }
    }
}
