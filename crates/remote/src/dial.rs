//! Opens connections to the server, plain or over TLS, in bounded time. A connection speaks HTTP/1.1, which every proxy in between understands.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::link::{Explain, Trust};

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Dial {
    tls: Option<(TlsConnector, Explain)>,
    within: Duration,
}

impl Dial {
    /// Plain connections, or such that the configuration trusts.
    pub(crate) fn new(tls: Option<&Trust>, within: Duration) -> Self {
        let over_http = |trust: &Trust| {
            let mut config = rustls::ClientConfig::clone(&trust.config);
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            (TlsConnector::from(Arc::new(config)), trust.explain)
        };
        Self { tls: tls.map(over_http), within }
    }

    async fn connect(self, uri: Uri) -> io::Result<Wire> {
        let host = uri.host().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the address has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Duplex> = match self.tls {
            None => Box::new(stream),
            Some((tls, explain)) => {
                let name = ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Box::new(tls.connect(name, stream).await.map_err(|error| io::Error::new(error.kind(), explain(&error)))?)
            }
        };
        Ok(Wire(TokioIo::new(stream)))
    }
}

impl tower::Service<Uri> for Dial {
    type Response = Wire;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (dial, within) = (self.clone(), self.within);
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {} ms", within.as_millis()));
            timeout(within, dial.connect(uri)).await.map_err(late)?
        })
    }
}

/// An open connection.
pub(crate) struct Wire(TokioIo<Box<dyn Duplex>>);

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
