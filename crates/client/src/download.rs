//! An answer that is read as it comes, and NDJSON lines cut out of it.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::ClientError;

/// The longest silence within an answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// The body of an answer. One that breaks off is an error, never a short success.
pub struct Download {
    client: Client,
    body: Incoming,
}

impl Download {
    pub(crate) fn new(client: Client, response: Response<Incoming>) -> Self {
        Self { client, body: response.into_body() }
    }

    /// The next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let frame = timeout(SILENCE_LIMIT, self.body.frame()).await.map_err(|_| self.client.timed_out(SILENCE_LIMIT))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.client.inner.pool.connector().unreachable(true, error)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }
}

/// Values out of an NDJSON download, one a line.
pub(crate) struct Lines<T> {
    download: Download,
    buffer: BytesMut,
    searched: usize,
    ended: bool,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Lines<T> {
    pub(crate) fn new(download: Download) -> Self {
        Self { download, buffer: BytesMut::new(), searched: 0, ended: false, value: PhantomData }
    }

    /// The next value; `None` at the end of a whole answer.
    pub(crate) async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            if let Some(value) = self.buffered()? {
                return Ok(Some(value));
            }
            if self.ended {
                return Ok(None);
            }
            match self.download.chunk().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => {
                    self.ended = true;
                    if !self.buffer.is_empty() {
                        self.buffer.extend_from_slice(b"\n");
                    }
                }
            }
        }
    }

    /// The next value, if it has already arrived.
    pub(crate) fn buffered(&mut self) -> Result<Option<T>, ClientError> {
        while let Some(found) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + found);
            self.buffer.advance(1);
            self.searched = 0;
            if !line.is_empty() {
                let value = serde_json::from_slice(&line).map_err(|error| self.download.client.protocol(format!("a line: {error}"), ""))?;
                return Ok(Some(value));
            }
        }
        self.searched = self.buffer.len();
        Ok(None)
    }
}
