//! A connection that must say soon which HTTP it speaks: a client that opens one and says nothing, or only half of how HTTP/2 begins, would hold it for
//! ever. What comes after that is not its matter.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose first bytes must come soon.
pub(crate) struct Prompt<S> {
    stream: S,
    /// Runs until it is known which HTTP is spoken.
    limit: Option<Pin<Box<Sleep>>>,
    /// So much of how HTTP/2 begins has come.
    matched: usize,
}

impl<S> Prompt<S> {
    /// The stream; it must say within `limit` which HTTP it speaks.
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit: Some(Box::pin(sleep(limit))), matched: 0 }
    }

    fn see(&mut self, bytes: &[u8]) {
        let expected = &PREFACE[self.matched..];
        let so_far = bytes.len().min(expected.len());
        self.matched += so_far;
        if self.matched == PREFACE.len() || bytes[..so_far] != expected[..so_far] {
            self.limit = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prompt<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.limit.is_none() {
            return read;
        }
        if read.is_pending() {
            let late = self.limit.as_mut().is_some_and(|limit| limit.as_mut().poll(context).is_ready());
            let error = || io::Error::new(io::ErrorKind::TimedOut, "the peer does not say which HTTP it speaks");
            return if late { Poll::Ready(Err(error())) } else { Poll::Pending };
        }
        let this = self.as_mut().get_mut();
        this.see(&buffer.filled()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prompt<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    async fn reads_after_a_while(sent: &[u8]) -> bool {
        let (near, mut far) = duplex(64);
        let mut near = Prompt::new(near, LIMIT);
        far.write_all(sent).await.expect("room");
        let mut buffer = vec![0; sent.len()];
        near.read_exact(&mut buffer).await.expect("it came in time");
        tokio::time::timeout(LIMIT * 2, near.read_u8()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_or_half_of_it_is_given_up() {
        assert!(!reads_after_a_while(b"").await);
        assert!(!reads_after_a_while(&PREFACE[..23]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_said_which_http_it_speaks_may_be_silent() {
        assert!(reads_after_a_while(PREFACE).await);
        assert!(reads_after_a_while(b"GET").await);
        assert!(reads_after_a_while(b"PRO").await);
    }
}
