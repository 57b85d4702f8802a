//! A thread that owns stdout and stderr while a log is followed. A pipe that nobody reads blocks the thread and nothing else, so that
//! Ctrl-C still works; what waits to be written is bounded, so that memory stays flat. A reader that leaves is noticed at once, and not
//! only by the next write, which may be long in coming.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

/// Where output is handed in.
pub(crate) struct Sink {
    pieces: mpsc::Sender<Out>,
    done: oneshot::Receiver<io::Result<()>>,
    /// Stdout once more, only to be watched; `None` where it is no pipe, and so has no reader that could leave.
    watched: Option<pipe::Sender>,
}

impl Sink {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let ((pieces, waiting), (finished, done)) = (mpsc::channel(16), oneshot::channel());
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            // The command may be over before the output is: then there is nobody to tell.
            let _ = finished.send(write_all(waiting));
        })?;
        Ok(Self { pieces, done, watched: watched_stdout().ok() })
    }

    /// Hands in a piece; `false` once stdout can take no more, and [`Sink::finish`] then says why.
    pub(crate) async fn write(&self, piece: Out) -> bool {
        self.pieces.send(piece).await.is_ok()
    }

    /// Waits until whoever read stdout has left, or a write failed.
    pub(crate) async fn abandoned(&self) {
        let has_left = async {
            if let Some(pipe) = &self.watched
                && pipe.ready(Interest::ERROR).await.is_ok_and(|ready| ready.is_error())
            {
                return;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = has_left => {}
            () = self.pieces.closed() => {}
        }
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        self.done.await.unwrap_or(Ok(()))
    }
}

/// Nothing is ever written through it, so that stdout can stay blocking, for its thread and for whoever shares it.
fn watched_stdout() -> io::Result<pipe::Sender> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if !stdout.metadata()?.file_type().is_fifo() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    pipe::Sender::from_file_unchecked(stdout)
}

fn write_all(mut waiting: mpsc::Receiver<Out>) -> io::Result<()> {
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr());
    while let Some(piece) = waiting.blocking_recv() {
        match piece {
            Out::Stdout(bytes) => stdout.write_all(&bytes)?,
            Out::Stderr(bytes) => {
                // What stdout got first is seen first.
                stdout.flush()?;
                // A closed stderr must not stop the data.
                let _ = stderr.write_all(&bytes);
            }
        }
        if waiting.is_empty() {
            stdout.flush()?;
        }
    }
    stdout.flush()
}
