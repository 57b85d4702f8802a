//! The terminal of one command. The command has its far end; what it writes there is passed on into a pipe, so that whoever reads output
//! reads a pipe here too, with the same end and the same waiting where nobody reads.
//!
//! Nobody types, and a command that reads finds the end of its input, as it would in `/dev/null`. On a terminal an end is read once, and a
//! prompt for a password throws away what was typed before it: so the end is typed again and again.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::unix::pipe;
use tokio::time::{MissedTickBehavior, interval};

use super::kernel;
use super::socket;

/// Where the environment says nothing else.
const COLUMNS: u16 = 80;
const LINES: u16 = 24;
/// What ends input: Ctrl-D. Also what a program that reads single keys takes for the end.
const END: &[u8] = b"\x04";
const TYPE_EVERY: Duration = Duration::from_millis(500);
/// The kernel hands out no more at once.
const READ_BYTES: usize = 4096;

/// A terminal that nobody uses yet.
pub(crate) struct Terminal {
    near: OwnedFd,
    /// The command's end. Once nobody has it any more, nothing more can be read.
    pub(crate) far: OwnedFd,
}

impl Terminal {
    /// Makes one of the size that the environment names.
    pub(crate) fn open(env: &BTreeMap<String, String>) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        // Where it is mounted so, the group of all terminals may write to it.
        fchmod(&far, Mode::RUSR | Mode::WUSR)?;
        let mut modes = tcgetattr(&far)?;
        // A line ends as the command ended it, and what nobody typed is not shown.
        modes.output_modes.remove(OutputModes::ONLCR);
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&far, OptionalActions::Now, &modes)?;
        tcsetwinsize(&far, size(env))?;
        kernel::set_nonblocking(near.as_fd())?;
        Ok(Self { near, far })
    }

    /// Passes on what is written to it, until nobody can write any more or nobody reads. Returns the command's end.
    pub(crate) fn forward(self, into: OwnedFd) -> io::Result<OwnedFd> {
        let (near, into) = (socket::register(self.near)?, pipe::Sender::from_owned_fd(into)?);
        tokio::spawn(async move {
            match pass_on(near, into).await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => tracing::warn!(%error, "the terminal of a command could not be read to its end"),
            }
        });
        Ok(self.far)
    }
}

async fn pass_on(near: AsyncFd<OwnedFd>, mut into: pipe::Sender) -> io::Result<()> {
    let mut typing = interval(TYPE_EVERY);
    typing.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        tokio::select! {
            biased;
            // Somebody else may hold the far end, and the command be long gone.
            ready = into.ready(Interest::ERROR) => {
                if ready?.is_error() {
                    return Ok(());
                }
            }
            read = near.async_io(Interest::READABLE, |near| kernel::read(near.as_fd(), &mut buffer)) => match read {
                Ok(0) => return Ok(()),
                Ok(length) => into.write_all(&buffer[..length]).await?,
                // So the kernel says that nobody has the far end any more; what was written before has been read.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(()),
                Err(error) => return Err(error),
            },
            _ = typing.tick() => {
                // Where there is no room, there are ends enough.
                let _ = rustix::io::write(near.get_ref(), END);
            }
        }
    }
}

fn size(env: &BTreeMap<String, String>) -> Winsize {
    let said = |name: &str| env.get(name).and_then(|text| text.parse::<u16>().ok()).filter(|size| *size > 0);
    let (ws_row, ws_col) = (said("LINES").unwrap_or(LINES), said("COLUMNS").unwrap_or(COLUMNS));
    Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_environment_names_the_size_and_nonsense_is_no_size() {
        let sizes = |columns: &str, lines: &str| {
            let size = size(&[("COLUMNS", columns), ("LINES", lines)].map(|(name, value)| (name.to_owned(), value.to_owned())).into());
            (size.ws_col, size.ws_row)
        };
        assert_eq!(sizes("200", "50"), (200, 50));
        assert_eq!(sizes("0", "-1"), (80, 24));
        assert_eq!(sizes("wide", "70000"), (80, 24));
        assert_eq!((size(&BTreeMap::new()).ws_col, size(&BTreeMap::new()).ws_row), (80, 24));
    }

    #[tokio::test]
    async fn what_is_written_comes_out_of_the_pipe_and_ends_with_the_last_holder() {
        let (mut reader, writer) = io::pipe().unwrap();
        let far = Terminal::open(&BTreeMap::new()).unwrap().forward(writer.into()).unwrap();
        let second = far.try_clone().unwrap();
        File::from(far).write_all(b"one\n").unwrap();
        File::from(second).write_all(b"two").unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        assert_eq!(read.await.unwrap().unwrap(), "one\ntwo");
    }

    #[tokio::test]
    async fn every_read_finds_the_end_of_input() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut far = File::from(Terminal::open(&BTreeMap::new()).unwrap().forward(writer.into()).unwrap());
        let read = tokio::task::spawn_blocking(move || [0; 3].map(|_: u8| far.read(&mut [0; 16]).unwrap()));
        assert_eq!(read.await.unwrap(), [0, 0, 0]);
    }

    #[tokio::test]
    async fn a_terminal_that_somebody_holds_is_let_go_of_when_nobody_reads() {
        let terminal = Terminal::open(&BTreeMap::new()).unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let into = pipe::Sender::from_owned_fd(writer.into()).unwrap();
        let passing = tokio::spawn(pass_on(socket::register(terminal.near).unwrap(), into));
        drop(reader);
        passing.await.unwrap().unwrap();
        let mut far = File::from(terminal.far);
        assert_eq!(far.write(b"x").unwrap_err().raw_os_error(), Some(libc::EIO), "it is hung up");
    }
}
