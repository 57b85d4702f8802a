//! The output of a container, read from the daemon's stream as it comes: two streams in frames, or one from a terminal.
//!
//! The stream is read here and not through the API client, which takes what a terminal shows for frames where it looks like them. While
//! the worker is busy the stream is not read: the daemon buffers about a megabyte, then the command waits. Once the command has ended, the
//! daemon drops what is not read within two seconds, so the rest is read at once.

use std::io;
use std::path::Path;
use std::time::Duration;

use runvoy_ports::runner::Output;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::task::JoinHandle;

/// How many bytes are read before the reader asks for them.
const BUFFER_BYTES: usize = 64 * 1024;
/// The answer of the daemon before the stream begins.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Before each frame: the stream, three zeros, the length.
const FRAME_HEAD_BYTES: usize = 8;
const STDERR: u8 = 2;
/// How often a command whose output is not taken is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Ctrl-D, and how often it is sent.
const END_OF_INPUT: &[u8] = &[4];
const TYPE_EVERY: Duration = Duration::from_millis(500);
/// What can be left of a command that has ended: two buffers of the daemon.
const MAX_REST_BYTES: u64 = 16 << 20;

/// The stream of a container, before the container starts.
pub(crate) struct Attached {
    stream: UnixStream,
    /// What came with the head of the answer.
    early: Vec<u8>,
}

/// Asks for the output of a container.
pub(crate) async fn attach(socket: &Path, name: &str, terminal: bool) -> io::Result<Attached> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = format!(
        "POST /containers/{name}/attach?stream=1&stdout=1&stderr=1&stdin={} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Length: 0\r\n\r\n",
        u8::from(terminal)
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    let end = loop {
        if let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if head.len() > MAX_HEAD_BYTES || stream.read_buf(&mut head).await? == 0 {
            return Err(io::Error::other("the daemon closed the stream of the output"));
        }
    };
    let early = head.split_off(end);
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    match line.split_ascii_whitespace().nth(1) {
        Some("101" | "200") => Ok(Attached { stream, early }),
        _ => Err(io::Error::other(format!("the daemon gives no output: {line}"))),
    }
}

/// Where the output of a command arrives.
pub(crate) struct Taps {
    stdout: DuplexStream,
    stderr: DuplexStream,
}

/// Makes both ends of the output.
pub(crate) fn taps() -> (Taps, Output, Output) {
    let ((stdout, out), (stderr, err)) = (duplex(BUFFER_BYTES), duplex(BUFFER_BYTES));
    (Taps { stdout, stderr }, Box::new(out), Box::new(err))
}

impl Attached {
    /// Hands the output on until its end. `is_alive` says whether the command may still write.
    pub(crate) async fn forward(self, mut taps: Taps, terminal: bool, is_alive: impl Fn() -> bool + Send + Sync) -> io::Result<()> {
        let (stream, typed) = self.stream.into_split();
        let mut typed = Some(typed);
        // Nobody types: every read of a terminal finds the end of input. Without one nothing is written, and the stream stays open both ways.
        let _typing = typed.take_if(|_| terminal).map(|typed| Typing(tokio::spawn(type_end(typed))));
        let mut source = Source { early: self.early, stream: Box::new(stream) };
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let (tap, length) = if terminal {
                (&mut taps.stdout, u64::MAX)
            } else {
                let mut head = [0; FRAME_HEAD_BYTES];
                if !source.fill(&mut head).await? {
                    return Ok(());
                }
                let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
                (if head[0] == STDERR { &mut taps.stderr } else { &mut taps.stdout }, u64::from(length))
            };
            let mut left = length;
            while left > 0 {
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                let read = source.read(&mut buffer[..most]).await?;
                match read {
                    0 if terminal => return Ok(()),
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => {}
                }
                left -= read as u64;
                if !give(tap, &buffer[..read], &mut source, &is_alive).await? {
                    return Ok(());
                }
            }
        }
    }
}

/// Ends with the output.
struct Typing(JoinHandle<()>);

impl Drop for Typing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn type_end(mut typed: OwnedWriteHalf) {
    while typed.write_all(END_OF_INPUT).await.is_ok() {
        tokio::time::sleep(TYPE_EVERY).await;
    }
}

/// The stream, and what was read of it before.
struct Source {
    early: Vec<u8>,
    stream: Box<dyn AsyncRead + Send + Unpin>,
}

impl Source {
    async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.early.is_empty() {
            return self.stream.read(into).await;
        }
        let length = self.early.len().min(into.len());
        into[..length].copy_from_slice(&self.early[..length]);
        self.early.drain(..length);
        Ok(length)
    }

    /// Fills all of it; `false` at the end of the stream, which is no end in the middle.
    async fn fill(&mut self, into: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read(&mut into[filled..]).await? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        Ok(true)
    }

    /// Reads everything that is left, so that the daemon can let go of it.
    async fn drain(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        let read = (&mut self.stream).take(MAX_REST_BYTES).read_to_end(&mut rest).await?;
        self.early.extend(rest);
        if (read as u64) < MAX_REST_BYTES {
            self.stream = Box::new(tokio::io::empty());
        }
        Ok(())
    }
}

/// Writes all of it; `false` if nobody takes it any more. While that waits, the command may end.
async fn give(
    tap: &mut DuplexStream,
    mut bytes: &[u8],
    source: &mut Source,
    is_alive: &(impl Fn() -> bool + Send + Sync),
) -> io::Result<bool> {
    let mut is_drained = false;
    while !bytes.is_empty() {
        tokio::select! {
            biased;
            written = tap.write(bytes) => match written {
                Ok(0) | Err(_) => return Ok(false),
                Ok(written) => bytes = &bytes[written..],
            },
            () = tokio::time::sleep(LOOK_EVERY), if !is_drained => {
                if !is_alive() {
                    is_drained = true;
                    source.drain().await?;
                }
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).expect("short").to_be_bytes();
        [&[stream, 0, 0, 0][..], &length, text].concat()
    }

    async fn all(mut output: Output) -> Vec<u8> {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).await.expect("bytes");
        bytes
    }

    async fn forwarded(sent: Vec<u8>, terminal: bool) -> (Vec<u8>, Vec<u8>) {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let (taps, stdout, stderr) = taps();
        let early = sent[..5].to_vec();
        let attached = Attached { stream: near, early };
        tokio::spawn(async move { attached.forward(taps, terminal, || true).await });
        tokio::spawn(async move { far.write_all(&sent[5..]).await.expect("it is read") });
        tokio::join!(all(stdout), all(stderr))
    }

    #[tokio::test]
    async fn both_streams_arrive_whole_and_apart() {
        let large = vec![b'x'; 300_000];
        let sent = [frame(1, b"one\n"), frame(2, b"two\n"), frame(1, &large), frame(1, b""), frame(2, b"end")].concat();
        let (stdout, stderr) = forwarded(sent, false).await;
        assert_eq!(stdout, [&b"one\n"[..], &large].concat());
        assert_eq!(stderr, b"two\nend");
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_in_a_frame_is_not_whole() {
        for cut in [3, FRAME_HEAD_BYTES + 2] {
            let (near, far) = UnixStream::pair().expect("a pair");
            let (taps, stdout, _stderr) = taps();
            let attached = Attached { stream: near, early: frame(1, b"all of it")[..cut].to_vec() };
            drop(far);
            let broken = tokio::join!(attached.forward(taps, false, || true), all(stdout)).0;
            assert_eq!(broken.expect_err("half a frame").kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    #[tokio::test]
    async fn what_a_terminal_shows_is_never_taken_for_frames() {
        let sent = b"\x01\0\0\0\xff\xff\xff\xffabc\r\n".to_vec();
        assert_eq!(forwarded(sent.clone(), true).await, (sent, Vec::new()));
    }

    #[tokio::test]
    async fn the_rest_of_an_ended_command_is_read_although_nobody_takes_it() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let (taps, stdout, stderr) = taps();
        let attached = Attached { stream: near, early: Vec::new() };
        tokio::spawn(async move { attached.forward(taps, false, || false).await });
        let text = vec![b'y'; 1_000_000];
        far.write_all(&frame(1, &text)).await.expect("it is read although nobody takes it");
        drop(far);
        assert_eq!(tokio::join!(all(stdout), all(stderr)), (text, Vec::new()));
    }
}
