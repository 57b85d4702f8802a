//! The address of a server, written in one way however it was given, so that two addresses of one server are equal.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// `http://HOST:PORT` or `https://HOST`, perhaps with a path: scheme and host in small letters, no port that the scheme implies, no slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(String);

/// What is no address of a server, without what may be a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not http://HOST:PORT or https://HOST")]
pub struct InvalidAddress(String);

impl Address {
    /// It is spoken to over TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// It as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(without_password(text));
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let scheme = uri.scheme_str().map(str::to_ascii_lowercase).ok_or_else(invalid)?;
        let implied = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(invalid()),
        };
        let host = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase()).ok_or_else(invalid)?;
        if host.contains('@') || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(invalid());
        }
        let host = host.strip_suffix(implied).unwrap_or(&host);
        Ok(Self(format!("{scheme}://{host}{}", uri.path().trim_end_matches('/'))))
    }
}

/// A text with nothing of what stands before its last `@` but the scheme: what is no address may have its password anywhere there.
fn without_password(text: &str) -> String {
    match text.rsplit_once('@') {
        None => text.to_owned(),
        Some((before, after)) => {
            let scheme = ["http://", "https://"].into_iter().find(|scheme| before.starts_with(scheme)).unwrap_or_default();
            format!("{scheme}***@{after}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().expect(text)
    }

    #[test]
    fn one_server_has_one_address_however_it_is_written() {
        for (text, written) in [
            ("http://h:1", "http://h:1"),
            ("http://h:1/", "http://h:1"),
            ("HTTP://H:1//", "http://h:1"),
            ("http://h:80", "http://h"),
            ("https://Example.COM:443/", "https://example.com"),
            ("https://h:80/Base/", "https://h:80/Base"),
            ("http://[::1]:80", "http://[::1]"),
            ("http://[::80]", "http://[::80]"),
        ] {
            assert_eq!(address(text).as_str(), written, "{text}");
            assert_eq!(address(written), address(text));
        }
        assert_ne!(address("http://h:1"), address("http://h:2"));
        assert_ne!(address("http://h"), address("https://h"));
        assert!(address("https://h").is_tls() && !address("http://h").is_tls());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "h:1",
            "/path",
            "ftp://h",
            "unix:///run/sock",
            "http://",
            "http://:80",
            "https://:1",
            "http://user@h",
            "http://h?a=b",
            "http://h h",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        for (text, said) in [
            ("https://ana:s3cret@h", "https://***@h"),
            ("https://ana:s3c@ret@h", "https://***@h"),
            ("ana:s3cret@h", "***@h"),
            ("HTTPS://ana:s3/cret@h h", "***@h h"),
            ("ftp://h", "ftp://h"),
        ] {
            let refused = text.parse::<Address>().expect_err(text);
            assert_eq!(refused.to_string(), format!("`{said}` is not http://HOST:PORT or https://HOST"));
            assert!(!format!("{refused:?}").contains("ret@"), "{text}");
        }
    }
}
