//! The data directory: where everything is, and that only one server uses it at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::offset_of;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Whoever asks whether the directory is taken holds it for a moment: a server tries this often before it believes that another has it.
const LOCK_TRIES: u32 = 100;
const LOCK_TRY_EVERY: Duration = Duration::from_millis(10);

/// The longest path that leaves room for the socket in it, and for the name under which that is bound.
const LONGEST_PATH: usize = size_of::<libc::sockaddr_un>() - offset_of!(libc::sockaddr_un, sun_path) - "/sock.new".len() - 1;

/// What a server keeps in its directory. Anything else in it is somebody else's.
pub const OWN_FILES: [&str; 28] = [
    "admin.key",
    "admin.new",
    "checkpoints.ndjson",
    "endpoint",
    "endpoint.new",
    "keys",
    "lock",
    "blobs",
    "blobs.new",
    "logs",
    "logs.new",
    "reserve",
    "restoring",
    "runvoy.db",
    "runvoy.db-shm",
    "runvoy.db-wal",
    "runvoy.db.new",
    "server.log",
    "server.yaml",
    "sock",
    "sock.new",
    "start.json",
    "start.new",
    "wal",
    "wanted",
    "work",
    "workers",
    "workers.new",
];

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

    /// The checkpoints of the audit trail, as they are told outside the store.
    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints.ndjson")
    }

    /// What is too large for the store.
    pub fn blobs(&self) -> PathBuf {
        self.0.join("blobs")
    }

    /// Space that is set aside for a full disk.
    pub fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
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

    /// What a worker elsewhere has not brought to its server yet.
    pub fn wal(&self) -> PathBuf {
        self.0.join("wal")
    }

    /// The workers of earlier starts, where other servers share the store.
    pub fn workers(&self) -> PathBuf {
        self.0.join("workers")
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

    /// What the last start by `runvoy serve` was told; absent where only the command line has started servers.
    pub fn start_record(&self) -> PathBuf {
        self.0.join("start.json")
    }

    /// What a server started by the command line writes.
    pub fn server_log(&self) -> PathBuf {
        self.0.join("server.log")
    }

    /// Is there while a restore has begun and not ended.
    pub fn restoring(&self) -> PathBuf {
        self.0.join("restoring")
    }

    /// Is there while somebody waits for a server that the command line started to leave.
    pub fn wanted(&self) -> PathBuf {
        self.0.join("wanted")
    }

    /// Refuses a path that leaves no room for the socket.
    pub fn check_length(&self) -> Result<()> {
        let length = self.0.as_os_str().len();
        if length > LONGEST_PATH {
            bail!(
                "the path of the data directory has {length} bytes, but no more than {LONGEST_PATH} leave room for its socket: \
                 choose a shorter one, or a symbolic link to it, with --data-dir or RUNVOY_DATA_DIR (it is {})",
                self.0.display()
            );
        }
        Ok(())
    }

    /// Makes the directory, for its owner only. One that exists is left as it is. Those above it that are missing let others pass, who still
    /// cannot list them: a command with a user of its own has to reach its work directory.
    pub fn create(&self) -> Result<()> {
        create_private(&self.0).with_context(|| format!("cannot create the data directory {}", self.0.display()))
    }

    /// Closes an existing directory to others if it holds nothing but a server's own. Else it may be a home or a shared place, whose access
    /// is not ours to take: then it is only told. The files in it are closed to others in any case.
    pub fn close_to_others(&self) -> Result<()> {
        let unreadable = || format!("cannot read the data directory {}", self.0.display());
        let mode = fs::metadata(&self.0).with_context(unreadable)?.permissions().mode();
        if mode & 0o077 == 0 {
            return Ok(());
        }
        let mut entries = fs::read_dir(&self.0).with_context(unreadable)?.filter_map(Result::ok);
        let foreign = entries.find(|entry| !OWN_FILES.iter().any(|own| entry.file_name() == *own)).map(|entry| entry.file_name());
        let (path, mode) = (self.0.display(), format!("{:o}", mode & 0o7777));
        if let Some(other) = foreign {
            if mode != "711" {
                tracing::warn!(%path, mode, ?other, "others can read the data directory, which holds more than the server's files");
            }
        } else if let Err(error) = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700)) {
            tracing::warn!(%path, mode, %error, "others can read the data directory, and it cannot be closed to them");
        }
        Ok(())
    }

    /// Lets other users pass through to what is their own below it. They still cannot list it, and everything else in it is its owner's only.
    pub fn let_pass(&self) -> std::io::Result<()> {
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o711))
    }

    /// Takes the directory for this process until the lock is dropped, or says who has it. May block for about a second.
    pub fn lock(&self) -> Result<DirLock> {
        let path = self.0.join("lock");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let mut tries = 1;
        while !taken(file.try_lock())? {
            if tries == LOCK_TRIES {
                return Err(self.held(&mut file));
            }
            tries += 1;
            std::thread::sleep(LOCK_TRY_EVERY);
        }
        // Written over what is there: on a full disk there may be no room for another block.
        let holder = format!("{}\n", std::process::id());
        file.seek(SeekFrom::Start(0))?;
        file.write_all(holder.as_bytes())?;
        file.set_len(holder.len() as u64)?;
        Ok(DirLock { file })
    }

    fn held(&self, file: &mut File) -> anyhow::Error {
        let mut holder = String::new();
        file.read_to_string(&mut holder).ok();
        let holder = holder.trim();
        let who = if holder.is_empty() { "another server".to_owned() } else { format!("another server (pid {holder})") };
        anyhow::anyhow!("{who} uses the data directory {}; stop it first, or choose another with --data-dir", self.0.display())
    }

    /// Whether some process holds the directory. Those who ask do not get in each other's way.
    pub fn is_locked(&self) -> bool {
        let Ok(file) = File::open(self.0.join("lock")) else { return false };
        let free = taken(file.try_lock_shared()).unwrap_or(true);
        // An unlock that fails is made up for by the closing of the file.
        file.unlock().ok();
        !free
    }
}

/// Makes a directory for its owner only, and those above it that are missing so that others can pass, whatever the umask is.
pub fn create_private(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    for one in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(one) {
            Ok(()) if one != path => fs::set_permissions(one, fs::Permissions::from_mode(0o711))?,
            Ok(()) => {}
            // Another process made it meanwhile.
            Err(_) if one.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The right to use a data directory; ends with the process, however it ends.
pub struct DirLock {
    file: File,
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Said, not left to closing: a process that is being started at this moment has a copy of the descriptor until it executes.
        self.file.unlock().ok();
    }
}

fn taken(tried: Result<(), TryLockError>) -> Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error).context("cannot lock the data directory"),
    }
}

/// What the name of a private file ends with while it is written.
pub const UNFINISHED: &str = "new";

/// Writes a file that only its owner may read, all of it or nothing.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    write_private_for(path, content, None)
}

/// The same, for the user and group with these ids where they are given. Whoever owns the directory can put anything in the file's place: it is
/// given away before it has its name, and never by its name.
pub fn write_private_for(path: &Path, content: &[u8], owner: Option<(u32, u32)>) -> Result<()> {
    let temporary = path.with_extension(UNFINISHED);
    fs::remove_file(&temporary).ok();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let file = file.as_mut().map_err(|error| anyhow::anyhow!("cannot write {}: {error}", temporary.display()))?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    if let Some((user, group)) = owner {
        fchown(&*file, Some(user), Some(group)).with_context(|| format!("cannot give {} to its owner", temporary.display()))?;
    }
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Refuses a file that others than its owner may read or write. Commands of other users pass through the data directory: what is private in it is
/// private by its own mode.
pub fn check_private(path: &Path) -> Result<()> {
    let mode = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("others than its owner have access to {} (its mode is {:o}): chmod 600 {0}", path.display(), mode & 0o7777);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    fn opened(mode: u32) -> (tempfile::TempDir, DataDir) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).expect("permissions");
        let data = DataDir::new(dir.path());
        (dir, data)
    }

    #[test]
    fn a_directory_is_closed_to_others_only_if_nothing_in_it_is_somebody_elses() {
        let (dir, data) = opened(0o755);
        fs::write(data.store(), "").expect("written");
        data.close_to_others().expect("closed");
        assert_eq!(mode(dir.path()), 0o700);
        let (dir, data) = opened(0o755);
        fs::write(data.store(), "").expect("written");
        fs::write(dir.path().join("thesis.tex"), "").expect("written");
        data.close_to_others().expect("left as it is");
        assert_eq!(mode(dir.path()), 0o755);
    }

    #[test]
    fn security_13_a_file_that_others_may_read_or_write_is_not_private() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("server.yaml");
        fs::write(&path, "").expect("written");
        for (mode, private) in [(0o600, true), (0o400, true), (0o644, false), (0o640, false), (0o620, false), (0o601, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
            let refused = check_private(&path).err().map(|error| error.to_string());
            assert_eq!(refused.is_none(), private, "{mode:o}");
            assert!(refused.is_none_or(|why| why.contains(&format!("chmod 600 {}", path.display()))));
        }
    }

    #[test]
    fn who_asks_for_the_lock_does_not_keep_a_server_out() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        assert!(!data.is_locked());
        let lock = data.lock().expect("free");
        assert!(data.is_locked());
        let refused = data.lock().err().expect("taken").to_string();
        assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
        drop(lock);
        let asking = File::open(dir.path().join("lock")).expect("the lock file");
        asking.try_lock_shared().expect("free");
        let waiting = std::thread::spawn(move || data.lock().map(drop));
        std::thread::sleep(LOCK_TRY_EVERY * 3);
        drop(asking);
        waiting.join().expect("no panic").expect("the lock, after a wait");
    }

    #[test]
    fn a_private_file_is_given_to_its_owner_and_what_a_link_in_its_place_leads_to_is_not() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (path, precious) = (dir.path().join("admin.key"), dir.path().join("shadow"));
        fs::write(&precious, "root's").expect("written");
        for unfinished in [path.clone(), path.with_extension(UNFINISHED)] {
            std::os::unix::fs::symlink(&precious, unfinished).expect("a link");
        }
        let before = fs::metadata(&precious).expect("it is there");
        // Only root can give a file away.
        let owner = if before.uid() == 0 { (12_345, 12_346) } else { (before.uid(), before.gid()) };
        write_private_for(&path, b"key", Some(owner)).expect("written");
        let (key, after) = (fs::symlink_metadata(&path).expect("it is there"), fs::metadata(&precious).expect("it is there"));
        assert!(key.is_file());
        assert_eq!(((key.uid(), key.gid()), mode(&path)), (owner, 0o600));
        assert_eq!((after.uid(), after.gid(), fs::read(&precious).expect("read")), (before.uid(), before.gid(), b"root's".to_vec()));
    }

    #[test]
    fn a_path_that_leaves_no_room_for_the_socket_is_refused() {
        let fits = format!("/{}", "a".repeat(LONGEST_PATH - 1));
        assert!(DataDir::new(&fits).check_length().is_ok());
        assert!(DataDir::new(fits + "a").check_length().is_err());
    }
}
