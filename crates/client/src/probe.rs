//! What `doctor` asks of a connection, step by step: name, connection, TLS, clock, WebSocket.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::DATE;
use runvoy_wire::Health;
use tokio::time::timeout;

use crate::call::Call;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::query::Target;
use crate::socket::Socket;

const RESOLVE_LIMIT: Duration = Duration::from_secs(5);

/// The server's clock as an answer showed it, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerClock {
    /// Unix seconds.
    pub unix_seconds: i64,
}

impl Client {
    /// The addresses behind the endpoint's name; none for a Unix socket.
    pub async fn probe_name(&self) -> Result<Vec<SocketAddr>, ClientError> {
        let Endpoint::Tcp { host, port, .. } = self.endpoint() else {
            return Ok(Vec::new());
        };
        let connector = self.inner.pool.connector();
        let found = timeout(RESOLVE_LIMIT, tokio::net::lookup_host((host.as_str(), *port)))
            .await
            .map_err(|_| connector.unreachable(false, format!("no answer to the name {host} within {} s", RESOLVE_LIMIT.as_secs())))?
            .map_err(|error| connector.unreachable(false, error))?;
        Ok(found.collect())
    }

    /// A new connection, with TLS where the endpoint has it, and closed again.
    pub async fn probe_connection(&self) -> Result<(), ClientError> {
        self.inner.pool.connector().connect().await.map(drop)
    }

    /// The server's health and its clock.
    pub async fn probe_health(&self) -> Result<(Health, Option<ServerClock>), ClientError> {
        let answer = self.answer(&Call::get(Target::new(&["health"])).once()).await?;
        let clock = answer.headers.get(DATE).and_then(|date| parse_date(date.to_str().ok()?));
        Ok((self.decode(&answer)?, clock))
    }

    /// Asks for an upgrade with a ticket that is none: a refusal by the server itself shows that upgrades reach it.
    pub async fn probe_websocket(&self) -> Result<(), ClientError> {
        let target = Target::new(&["executions", "00000000000000000000000000000000", "stream"]).with("token", "probe");
        match Socket::open(self, &target).await {
            Ok(socket) => {
                socket.close().await;
                Ok(())
            }
            Err(ClientError::Unauthorized(_) | ClientError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn parse_date(text: &str) -> Option<ServerClock> {
    let zoned = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(ServerClock { unix_seconds: zoned.as_second() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_header_is_read() {
        assert_eq!(parse_date("Sat, 03 Jan 2026 14:22:19 GMT"), Some(ServerClock { unix_seconds: 1_767_450_139 }));
        assert_eq!(parse_date("yesterday"), None);
    }
}
