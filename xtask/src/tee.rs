//! Runs a command, passes its stdout and stderr on as they come, and shows every line to a reader on the way.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};

use crate::tool;

/// Runs `command` to its end; `read` sees each line of both streams, without its newline and in order per stream.
pub fn run(command: &mut Command, mut read: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().with_context(|| format!("cannot start `{}`", tool::line(command)))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let stderr = child.stderr.take().expect("stderr is piped");
    let (sender, lines) = mpsc::channel();
    let copies = [copy(stdout, std::io::stdout(), sender.clone()), copy(stderr, std::io::stderr(), sender)];
    for line in lines {
        read(&line);
    }
    for copy in copies {
        copy.join().expect("the copying thread does not panic");
    }
    child.wait().with_context(|| format!("cannot wait for `{}`", tool::line(command)))
}

fn copy(from: impl Read + Send + 'static, mut to: impl Write + Send + 'static, lines: mpsc::Sender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            // Our own output may be a closed pipe; the command still has to be read to its end.
            let _ = to.write_all(&line);
            let _ = lines.send(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
            line.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_and_the_exit_code_are_seen() {
        let mut seen = Vec::new();
        let status = run(Command::new("sh").args(["-c", "echo out; echo err >&2; printf tail; exit 3"]), |line| seen.push(line.to_owned()))
            .expect("sh starts");
        seen.sort();
        assert_eq!(seen, ["err", "out", "tail"]);
        assert_eq!(status.code(), Some(3));
    }
}
