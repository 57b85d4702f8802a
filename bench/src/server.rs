//! The server under measurement: the real binary on a free port and a directory of its own, stopped when dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::http::Endpoint;

/// How long a stop may take before it is forced.
const STOP_PATIENCE: Duration = Duration::from_secs(40);

/// A data directory that goes away with its owner; servers can be started on it one after the other.
pub struct Home {
    dir: TempDir,
    binary: PathBuf,
}

/// A running server.
pub struct Server {
    /// Where it answers.
    pub endpoint: Endpoint,
    /// From its start to the line that says it is ready.
    pub start_time: Duration,
    child: Child,
    /// Open as long as the server runs: it must not meet a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

impl Home {
    /// A new, empty directory for `binary`.
    pub fn new(binary: &Path) -> Result<Home> {
        let dir = tempfile::Builder::new().prefix("runvoy-bench-").tempdir().context("cannot make a temporary directory")?;
        Ok(Home { dir, binary: binary.to_owned() })
    }

    /// Starts a server here and waits until it is ready.
    pub fn start(&self, args: &[&str]) -> Result<Server> {
        let data = self.dir.path().join("data");
        let log = self.dir.path().join("server.log");
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::options().create(true).append(true).open(&log).with_context(|| format!("cannot open {}", log.display()))?);
        let start = Instant::now();
        let binary = self.binary.display();
        let mut child =
            command.spawn().with_context(|| format!("cannot start {binary}; `cargo xtask bench` builds it, `--binary` names another"))?;
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).context("cannot read the server's stdout")?;
        let start_time = start.elapsed();
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("{binary} did not become ready: {}", fs::read_to_string(&log).unwrap_or_default());
        };
        let key = data.join("admin.key");
        let key = fs::read_to_string(&key).with_context(|| format!("cannot read {}", key.display()))?;
        let endpoint = Endpoint { address: address.to_owned(), key: key.trim().to_owned() };
        Ok(Server { endpoint, start_time, child, _stdout: stdout })
    }
}

impl Server {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.child.try_wait().context("cannot ask for the server's state")?.is_some() {
            return Ok(());
        }
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let deadline = Instant::now() + STOP_PATIENCE;
        while asked.as_ref().is_ok_and(|status| status.success()) && Instant::now() < deadline {
            if self.child.try_wait().context("cannot ask for the server's state")?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().context("cannot kill the server")?;
        self.child.wait().context("cannot wait for the server")?;
        bail!("the server did not stop within {} s and was killed", STOP_PATIENCE.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{error:#}");
        }
    }
}
