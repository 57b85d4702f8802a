//! Where a server is: its address, and how requests to it are spelled.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `http://` or `https://`.
    Tcp {
        /// Speak TLS.
        tls: bool,
        /// Name or address, without the brackets of IPv6.
        host: String,
        /// Port.
        port: u16,
        /// What stands before `/api/v1`, such as `/runvoy` behind a proxy; empty or beginning with `/`.
        base: String,
    },
    /// A Unix socket, where the peer's uid is the credential.
    Unix(PathBuf),
}

/// A text that is not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an endpoint: {why}; expected http://HOST:PORT, https://HOST or unix:/PATH")]
pub struct InvalidEndpoint {
    why: &'static str,
}

impl Endpoint {
    /// What goes into the `Host` header.
    pub(crate) fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp { tls, host, port, .. } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                if *port == default_port(*tls) { host } else { format!("{host}:{port}") }
            }
        }
    }

    /// What stands before `/api/v1` in every path.
    pub(crate) fn base(&self) -> &str {
        match self {
            Self::Unix(_) => "",
            Self::Tcp { base, .. } => base,
        }
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { tls, base, .. } => write!(f, "{}://{}{base}", if *tls { "https" } else { "http" }, self.authority()),
        }
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = |why| InvalidEndpoint { why };
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(invalid("the socket's path is not absolute")) };
        }
        let uri: Uri = text.parse().map_err(|_| invalid("it is not an address"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid("the scheme is missing or unknown")),
        };
        let authority = uri.authority().ok_or(invalid("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("it holds a user or password, and a key is never part of an address"));
        }
        if uri.query().is_some() {
            return Err(invalid("it holds a query"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(invalid("the host is missing"));
        }
        let path = uri.path().trim_end_matches('/');
        let base = path.strip_suffix("/api/v1").unwrap_or(path).trim_end_matches('/').to_owned();
        Ok(Self::Tcp { tls, host, port: authority.port_u16().unwrap_or(default_port(tls)), base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_are_one_endpoint() {
        for (text, shown) in [
            ("http://127.0.0.1:56212", "http://127.0.0.1:56212"),
            ("http://127.0.0.1:56212/", "http://127.0.0.1:56212"),
            (" http://127.0.0.1:56212/api/v1/ ", "http://127.0.0.1:56212"),
            ("https://Runvoy.example.com:443", "https://runvoy.example.com"),
            ("https://example.com/tools/runvoy/", "https://example.com/tools/runvoy"),
            ("http://[::1]:80", "http://[::1]"),
            ("unix:/run/runvoy/sock", "unix:/run/runvoy/sock"),
            ("unix:///run/runvoy/sock", "unix:/run/runvoy/sock"),
        ] {
            assert_eq!(text.parse::<Endpoint>().expect(text).to_string(), shown);
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        for text in ["", "localhost:56212", "ftp://x", "http://", "http://me:key@host", "http://host/?key=1", "unix:sock"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
