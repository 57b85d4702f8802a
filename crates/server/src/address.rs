//! Addresses that answers carry: the page of an execution and its stream. They follow the way the request came in, as the listener or a trusted
//! proxy saw it, unless configuration names a public address.

use http::{HeaderMap, HeaderValue, header};
use runvoy_model::id::ExecutionId;

use crate::app::State;
use crate::peer::{Connection, Peer};
use crate::proxy::{self, Network};

/// How a request reached the server: enough to tell the client an address that works for it too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached {
    /// From whom, past trusted proxies.
    pub(crate) connection: Connection,
    /// The client speaks TLS, to this server or to a trusted proxy.
    tls: bool,
    host: Option<HeaderValue>,
}

impl Reached {
    /// From the request's `Host`, and from what trusted proxies say.
    pub(crate) fn new(connection: Connection, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let outside = proxy::outside(connection.peer, headers, trusted);
        Self {
            connection: Connection { peer: proxy::client(connection.peer, headers, trusted), ..connection },
            tls: outside.tls.unwrap_or(connection.tls),
            host: outside.host.or_else(|| headers.get(header::HOST).cloned()),
        }
    }

    /// Name and port that the client used, where they are sane.
    pub(crate) fn host(&self) -> Option<&str> {
        let text = self.host.as_ref()?.to_str().ok()?;
        let sane = !text.is_empty() && text.len() <= 255 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b));
        sane.then_some(text)
    }

    /// The base address of the server, without a slash at its end.
    pub(crate) fn base(&self, state: &State) -> String {
        if let Some(public) = &state.config.public_url {
            return public.trim_end_matches('/').to_owned();
        }
        // On the Unix socket the host is a word of the client's own.
        let host = if matches!(self.connection.peer, Peer::Tcp(_)) { self.host() } else { None };
        match host {
            Some(host) => format!("{}://{host}", if self.tls { "https" } else { "http" }),
            None => state.config.own_url.trim_end_matches('/').to_owned(),
        }
    }

    /// The web page of an execution.
    pub(crate) fn log_url(&self, state: &State, id: ExecutionId) -> String {
        match state.engine.config().web_url.trim_end_matches('/') {
            "" => format!("{}/logs?execution_id={id}", self.base(state)),
            web => format!("{web}/logs?execution_id={id}"),
        }
    }

    /// Whether there is an address at all that others could open: a server on its Unix socket alone has none.
    pub(crate) fn has_page(&self, state: &State) -> bool {
        !(self.base(state).is_empty() && state.engine.config().web_url.is_empty())
    }

    /// The stream of an execution's log, with a ticket.
    pub(crate) fn stream_url(&self, state: &State, id: ExecutionId, ticket: &str) -> String {
        let base = self.base(state);
        let base = match base.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}"),
            Some((_, rest)) => format!("ws://{rest}"),
            None => base,
        };
        format!("{base}/api/v1/executions/{id}/stream?token={ticket}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_none_is_not_repeated() {
        for (text, expected) in [("runvoy.example.com:8080", true), ("[::1]:80", true), ("a/b", false), ("a\"b", false), ("", false)] {
            let reached = Reached { host: Some(HeaderValue::from_str(text).expect("a header")), ..Reached::default() };
            assert_eq!(reached.host().is_some(), expected, "{text}");
        }
    }
}
