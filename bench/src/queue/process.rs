//! A peer's own process: started with everything of its own on loopback and under one directory, ended by its id when dropped.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running peer.
pub struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    /// Starts it; where it is not installed, says which package has it.
    pub fn start(name: &'static str, command: &mut Command, package: &str) -> Result<Process> {
        let child = command.spawn().with_context(|| {
            format!("cannot start {name}; `cargo xtask bench queue` installs it, by hand it is `apt-get install {package}`")
        })?;
        Ok(Process { name, child })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it takes connections.
    pub fn wait_for(&mut self, address: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait().with_context(|| format!("cannot ask for the state of {}", self.name))? {
                bail!("{} ended before it was ready: {status}", self.name);
            }
            ensure!(Instant::now() < deadline, "{} was not ready within {} s", self.name, PATIENCE.as_secs());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let deadline = Instant::now() + PATIENCE;
        while asked.as_ref().is_ok_and(|status| status.success()) && Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        eprintln!("{} did not stop and is killed", self.name);
        // Nothing more can be done if even that fails; the wait keeps it from being left as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address on loopback that nobody listens on now.
pub fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot bind a port on loopback")?;
    Ok(listener.local_addr().context("a listener has an address")?.to_string())
}
