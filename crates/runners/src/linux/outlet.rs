//! Where a command writes, and where that is read: two pipes, or a terminal.

use std::io;
use std::os::fd::OwnedFd;

use runvoy_ports::runner::{Start, StartError};

use super::terminal::Terminal;

/// The ends of what a command writes to. They are pipes for whoever reads.
pub(crate) struct Outlet {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// What the command gets for both; on a terminal twice the same.
    pub(crate) given: [OwnedFd; 2],
}

impl Outlet {
    /// Makes what a command asks for. Must be called in a tokio runtime.
    pub(crate) fn open(start: &Start) -> Result<Self, StartError> {
        let (stdout, stdout_writer) = pipe()?;
        let (stderr, stderr_writer) = pipe()?;
        if !start.terminal {
            return Ok(Self { stdout, stderr, given: [stdout_writer, stderr_writer] });
        }
        // Nothing is written to the second pipe: it ends here.
        drop(stderr_writer);
        let given = terminal(start, stdout_writer).map_err(|error| StartError {
            message: format!("no terminal could be made: {error} (the worker needs /dev/ptmx and a /dev/pts that is not used up)"),
            exit_code: None,
        })?;
        Ok(Self { stdout, stderr, given })
    }
}

fn terminal(start: &Start, into: OwnedFd) -> io::Result<[OwnedFd; 2]> {
    let far = Terminal::open(&start.env)?.forward(into)?;
    Ok([far.try_clone()?, far])
}

fn pipe() -> Result<(OwnedFd, OwnedFd), StartError> {
    let (reader, writer) = io::pipe().map_err(|error| StartError {
        message: format!("no pipe for the command's output could be made: {error} (raise the worker's limit of open files)"),
        exit_code: None,
    })?;
    Ok((reader.into(), writer.into()))
}
