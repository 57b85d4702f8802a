//! Connections that are kept open between requests.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;

use crate::connection::Connector;
use crate::error::ClientError;

/// Sends requests over connections that it reuses. A connection is free again once its last answer was read to the end.
pub(crate) struct Pool {
    connector: Connector,
    senders: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, senders: Mutex::new(Vec::new()) }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends one request. A kept connection that turns out to be closed before anything was sent is replaced silently.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        while let Some(mut sender) = self.take_free() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.keep(sender, response)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.connector.unreachable(true, failed.into_error())),
                },
            }
        }
        let connection = self.connector.connect().await?;
        let (mut sender, driver) = handshake(TokioIo::new(connection)).await.map_err(|error| self.broken(error))?;
        // What the driver has to say also reaches the request that it fails.
        drop(tokio::spawn(driver));
        let response = sender.send_request(request).await.map_err(|error| self.broken(error))?;
        Ok(self.keep(sender, response))
    }

    /// Why a fresh connection failed. What is not HTTP at all is probably TLS.
    fn broken(&self, error: hyper::Error) -> ClientError {
        if error.is_parse() {
            let what = "it is not HTTP; if the server speaks TLS on this port, use https:// in the address".to_owned();
            return ClientError::Protocol { endpoint: self.connector.endpoint().to_string(), what, request_id: String::new() };
        }
        self.connector.unreachable(true, error)
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>, response: Response<Incoming>) -> Response<Incoming> {
        // A server that is leaving says so with such a status, and is as good as gone.
        if !response.status().is_server_error() {
            self.connector.note_answer();
        }
        self.senders.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        response
    }

    fn take_free(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.retain(|sender| !sender.is_closed());
        let free = senders.iter().position(SendRequest::is_ready)?;
        Some(senders.swap_remove(free))
    }
}
