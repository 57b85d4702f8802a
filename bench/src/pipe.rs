//! The limit for log ingest: a pipe that one task reads by lines and throws away.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;

/// A command for `sh -c` that writes `lines` lines of 64 bytes as fast as it can.
pub fn generator(lines: u64) -> String {
    format!("yes {} | head -n {lines}", "x".repeat(63))
}

/// Lines per second.
pub fn measure(lines: u64) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().context("cannot build a runtime")?;
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &generator(lines)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start sh")?;
    let stdout: OwnedFd = child.stdout.take().expect("stdout is piped").into();
    let read = runtime.block_on(read_lines(stdout))?;
    let elapsed = start.elapsed().as_secs_f64();
    let status = child.wait().context("cannot wait for sh")?;
    if !status.success() || read != lines {
        bail!("the generator wrote {read} of {lines} lines and ended with {status}");
    }
    Ok(read as f64 / elapsed)
}

async fn read_lines(stdout: OwnedFd) -> Result<u64> {
    let receiver = Receiver::from_owned_fd(stdout).context("cannot read the pipe")?;
    let mut reader = BufReader::with_capacity(64 * 1024, receiver);
    let mut line = Vec::new();
    let mut count = 0;
    while reader.read_until(b'\n', &mut line).await.context("cannot read the pipe")? > 0 {
        count += 1;
        line.clear();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_writes_lines_of_64_bytes() {
        let output = Command::new("sh").args(["-c", &generator(3)]).output().expect("sh starts");
        assert_eq!(output.stdout.len(), 3 * 64);
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 3);
    }

    #[test]
    fn every_line_is_read() {
        assert!(measure(1_000).expect("the pipe can be read") > 0.0);
    }
}
