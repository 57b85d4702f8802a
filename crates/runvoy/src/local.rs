//! Finds the server of a data directory, or starts one that leaves by itself: what makes `runvoy run` work with nothing set up.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use runvoy_cli::LocalServer;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::data_check::check_owner;
use crate::data_dir::DataDir;
use crate::detach::detach;
use crate::serve::not_by_itself;

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What local servers said is begun anew above this size.
const LONGEST_LOG: u64 = 1 << 20;

/// Starts servers from this very binary.
pub struct OwnBinary;

#[async_trait]
impl LocalServer for OwnBinary {
    async fn ensure(&self, data_dir: &Path) -> Result<PathBuf, String> {
        // The server works in another directory.
        let path = std::path::absolute(data_dir).map_err(|error| format!("{} is not a path: {error}", data_dir.display()))?;
        let data = DataDir::new(path);
        data.check_length().map_err(|error| error.to_string())?;
        let socket = data.socket();
        let began = Instant::now();
        let mut started: Option<Started> = None;
        loop {
            if UnixStream::connect(&socket).await.is_ok() {
                return Ok(socket);
            }
            // Also a server that is about to leave still holds the directory: whoever comes then starts the next one.
            if !data.is_locked() {
                match started.as_mut().map(Started::end) {
                    Some(End::Failed) => {
                        let why = started.as_ref().map_or_else(String::new, |started| last_words(&data, started.log_from));
                        return Err(format!("the local server of {} cannot start: {why}", data.path().display()));
                    }
                    Some(End::NotYet) => {}
                    None | Some(End::Left) => {
                        if data.start_record().exists() {
                            return Err(not_by_itself(&data));
                        }
                        let again = start(&data).map_err(|error| format!("the local server could not be started: {error:#}"))?;
                        started = Some(again);
                    }
                }
            }
            if began.elapsed() > PATIENCE {
                let last = last_words(&data, started.as_ref().map_or(0, |started| started.log_from));
                return Err(format!("the local server of {} does not answer: {last}", data.path().display()));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn running(&self, data_dir: &Path) -> Option<PathBuf> {
        let socket = DataDir::new(data_dir).socket();
        UnixStream::connect(&socket).await.is_ok().then_some(socket)
    }
}

/// A server that was started here.
struct Started {
    child: Child,
    /// Where its part of the log begins.
    log_from: u64,
}

/// How far it has come.
enum End {
    NotYet,
    /// It was told to stop, or found another server.
    Left,
    Failed,
}

impl Started {
    fn end(&mut self) -> End {
        match self.child.try_wait() {
            Ok(None) => End::NotYet,
            Ok(Some(status)) if status.success() => End::Left,
            Ok(Some(_)) | Err(_) => End::Failed,
        }
    }
}

fn start(data: &DataDir) -> Result<Started> {
    check_owner(data)?;
    data.create()?;
    let (log, log_from) = open_log(&data.server_log()).with_context(|| format!("cannot write {}", data.server_log().display()))?;
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .args(["serve", "--ephemeral", "--data-dir"])
        .arg(data.path())
        // What starts by itself keeps everything in files, whatever servers that are started by hand here are told.
        .env_remove("RUNVOY_BACKEND")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .current_dir("/");
    detach(&mut command);
    Ok(Started { child: command.spawn()?, log_from })
}

/// The log that every local server of the directory appends to; begun anew if it is long, which only one without a server is asked for.
fn open_log(path: &Path) -> std::io::Result<(File, u64)> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let mut length = log.metadata()?.len();
    if length > LONGEST_LOG {
        log.set_len(0)?;
        length = 0;
    }
    Ok((log, length))
}

/// The reason that a server gave for its end; else the last it said.
fn last_words(data: &DataDir, from: u64) -> String {
    const REASON: &str = "error: ";
    let mut said = Vec::new();
    let read = File::open(data.server_log()).and_then(|mut log| {
        log.seek(SeekFrom::Start(from))?;
        log.read_to_end(&mut said)
    });
    let said = read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&said).into_owned());
    let mut lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next().unwrap_or("it said nothing");
    lines.find_map(|line| line.strip_prefix(REASON)).unwrap_or(last).to_owned()
}
