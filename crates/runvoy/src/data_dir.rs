//! The data directory: where everything is, and that only one server uses it at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A data directory, not necessarily one that exists.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Names a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database.
    pub fn store(&self) -> PathBuf {
        self.0.join("runvoy.db")
    }

    /// The logs.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The signing, audit and sealing keys.
    pub fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    /// Where commands run.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The socket whose peer's uid is the credential.
    pub fn socket(&self) -> PathBuf {
        self.0.join("sock")
    }

    /// The URL of the server that runs here.
    pub fn endpoint(&self) -> PathBuf {
        self.0.join("endpoint")
    }

    /// The first admin's key.
    pub fn admin_key(&self) -> PathBuf {
        self.0.join("admin.key")
    }

    /// The server's own settings.
    pub fn settings(&self) -> PathBuf {
        self.0.join("server.yaml")
    }

    /// What a server started by the command line writes.
    pub fn server_log(&self) -> PathBuf {
        self.0.join("server.log")
    }

    /// Makes the directory, for its owner only.
    pub fn create(&self) -> Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .with_context(|| format!("cannot make the data directory {}", self.0.display()))
    }

    /// Lets other users pass through to what is their own below it. They still cannot list it, and everything else in it is its owner's only.
    pub fn let_pass(&self) -> std::io::Result<()> {
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o711))
    }

    /// Takes the directory for this process until the lock is dropped, or says who has it.
    pub fn lock(&self) -> Result<DirLock> {
        let path = self.0.join("lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.as_mut().map_err(|error| anyhow::anyhow!("cannot open {}: {error}", path.display()))?;
        if !try_lock(file)? {
            let mut holder = String::new();
            file.read_to_string(&mut holder).ok();
            let holder = holder.trim();
            let who = if holder.is_empty() { "another server".to_owned() } else { format!("another server (pid {holder})") };
            bail!("{who} uses the data directory {}; stop it first, or name another with --data-dir", self.0.display());
        }
        let mut file = file.try_clone().context("cannot keep the lock file open")?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())?;
        Ok(DirLock { _file: file })
    }

    /// Whether some process holds the directory.
    pub fn is_locked(&self) -> bool {
        match File::open(self.0.join("lock")) {
            Ok(file) => !try_lock(&file).unwrap_or(true),
            Err(_) => false,
        }
    }
}

/// The right to use a data directory; ends with the process, however it ends.
pub struct DirLock {
    _file: File,
}

#[expect(unsafe_code, reason = "flock has no safe form in std for this toolchain's MSRV-neutral use")]
fn try_lock(file: &File) -> Result<bool> {
    // SAFETY: the descriptor is open for the length of the call.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if locked == 0 {
        return Ok(true);
    }
    let error = std::io::Error::last_os_error();
    if error.kind() == std::io::ErrorKind::WouldBlock { Ok(false) } else { Err(error).context("cannot lock the data directory") }
}

/// Writes a file that only its owner may read, all of it or nothing.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = path.with_extension("new");
    fs::remove_file(&temporary).ok();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let file = file.as_mut().map_err(|error| anyhow::anyhow!("cannot write {}: {error}", temporary.display()))?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
