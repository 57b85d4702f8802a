//! Paths and queries of requests, encoded.

use std::fmt::{Display, Write as _};

/// A path below `/api/v1` with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target(String);

impl Target {
    /// The path made of these segments, each encoded.
    pub(crate) fn new(segments: &[&str]) -> Self {
        let mut path = String::from("/api/v1");
        for segment in segments {
            path.push('/');
            encode(segment, &mut path);
        }
        Self(path)
    }

    /// With one more parameter.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        encode(&value.to_string(), &mut self.0);
        self
    }

    /// With one more parameter, where there is a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The path and query of a WebSocket address that the server gave, from `/api/v1` on: host and scheme are those of the connection
/// that is in use, which a server behind a proxy cannot know.
pub(crate) fn stream_target(url: &str) -> Option<Target> {
    url.find("/api/v1/").map(|at| Target(url[at..].to_owned()))
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").expect("a String takes everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let target = Target::new(&["locks", "a/../b?c d"]).with("q", "x&y=é").with_some("none", None::<u8>).with("n", 1);
        assert_eq!(target.as_str(), "/api/v1/locks/a%2F..%2Fb%3Fc%20d?q=x%26y%3D%C3%A9&n=1");
    }

    #[test]
    fn a_stream_address_is_reached_where_the_server_was_reached() {
        let target = stream_target("wss://public.example.com/base/api/v1/executions/0192/stream?token=t").expect("a stream");
        assert_eq!(target.with("batch", 1).as_str(), "/api/v1/executions/0192/stream?token=t&batch=1");
        assert_eq!(stream_target("wss://elsewhere/"), None);
    }
}
