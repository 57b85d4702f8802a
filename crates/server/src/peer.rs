//! Who is at the other end of a connection, as the listener saw it. A listener puts a [`Connection`] into every request.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Peer {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over the Unix socket.
    Unix {
        /// The peer's user id, as the kernel tells it.
        uid: u32,
        /// It is the server's own user, or root: that is a credential.
        owner: bool,
    },
    /// The listener does not say.
    #[default]
    Unknown,
}

impl Peer {
    /// Whether the connection itself is the credential of the server's owner.
    pub(crate) const fn is_owner(self) -> bool {
        matches!(self, Self::Unix { owner: true, .. })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => {
                // A dual-stack socket shows IPv4 peers as mapped addresses; logs and audit show the plain form.
                let ip = match address.ip() {
                    IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
                    ip @ IpAddr::V4(_) => ip,
                };
                write!(f, "{ip}")
            }
            Self::Unix { uid, .. } => write!(f, "unix:uid={uid}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connection {
    /// From whom.
    pub peer: Peer,
    /// Over TLS that ended here.
    pub tls: bool,
}

/// The number of a connection. A listener puts it into every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_port_and_in_its_plain_form() {
        assert_eq!(Peer::Tcp("[::ffff:10.0.0.7]:4711".parse().expect("an address")).to_string(), "10.0.0.7");
        assert_eq!(Peer::Tcp("[::1]:4711".parse().expect("an address")).to_string(), "::1");
        assert_eq!(Peer::Unix { uid: 7, owner: false }.to_string(), "unix:uid=7");
    }
}
