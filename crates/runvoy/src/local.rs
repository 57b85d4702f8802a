//! Finds the server of a data directory, or starts one that leaves by itself: what makes `runvoy run` work with nothing set up.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use runvoy_cli::LocalServer;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::data_dir::DataDir;

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const START_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Starts servers from this very binary.
pub struct OwnBinary;

#[async_trait]
impl LocalServer for OwnBinary {
    async fn ensure(&self, data_dir: &Path) -> Result<PathBuf, String> {
        let data = DataDir::new(data_dir);
        let socket = data.socket();
        let began = Instant::now();
        let mut started_at: Option<Instant> = None;
        loop {
            if UnixStream::connect(&socket).await.is_ok() {
                return Ok(socket);
            }
            // A server that is about to leave still holds the directory: whoever comes then starts the next one.
            let may_start = started_at.is_none_or(|at| at.elapsed() > START_AGAIN_AFTER);
            if may_start && !data.is_locked() {
                start(&data).map_err(|error| format!("the local server could not be started: {error:#}"))?;
                started_at = Some(Instant::now());
            }
            if began.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(data.server_log()).unwrap_or_default();
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                return Err(format!("the local server of {} does not answer: {last}", data_dir.display()));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn start(data: &DataDir) -> anyhow::Result<()> {
    data.create()?;
    let log = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(data.server_log())?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["serve", "--ephemeral", "--data-dir"])
        .arg(data.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .current_dir("/")
        .process_group(0);
    command.spawn()?;
    Ok(())
}
