//! Blobs as files: one a blob, named after the digest of its bytes, in a directory per first two digits. A file appears whole, by a rename
//! after its bytes are on stable storage, and is checked against its name whenever it is read. Half-written ones of a crash are
//! removed when the store is opened. New ones leave the disk its reserve. None is ever removed: whatever names one is kept as long.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use runvoy_model::hex::{hex, unhex};
use runvoy_ports::blob::BlobStore;
use runvoy_ports::store::StoreError;
use sha2::{Digest as _, Sha256};

/// The directory in which files are written before they have their name.
pub const UNFINISHED: &str = "unfinished";

/// How much the blobs take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlobUsage {
    /// How many there are.
    pub blobs: u64,
    /// How large they are together.
    pub bytes: u64,
}

/// Blobs in a directory of their own.
#[derive(Debug, Clone)]
pub struct FileBlobStore {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    root: PathBuf,
    /// So much of the file system is left to the store itself.
    reserve_bytes: u64,
    /// Numbers the unfinished files of this process, which alone uses the directory.
    next: AtomicU64,
}

impl FileBlobStore {
    /// Opens the directory, or makes it. So much of the file system is never written to.
    pub fn open(root: &Path, reserve_bytes: u64) -> io::Result<Self> {
        let unfinished = root.join(UNFINISHED);
        if let Err(error) = fs::remove_dir_all(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        make_directory(root)?;
        make_directory(&unfinished)?;
        sync(root)?;
        // The name of the directory is in another one.
        sync(root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        Ok(Self { place: Arc::new(Place { root: root.to_owned(), reserve_bytes, next: AtomicU64::new(0) }) })
    }

    /// Counts all of them. Reads directories, no blob.
    pub fn usage(&self) -> io::Result<BlobUsage> {
        let mut usage = BlobUsage::default();
        for part in fs::read_dir(&self.place.root)? {
            let part = part?;
            if !part.file_type()?.is_dir() || part.file_name() == UNFINISHED {
                continue;
            }
            for blob in fs::read_dir(part.path())? {
                usage.blobs += 1;
                usage.bytes += blob?.metadata()?.len();
            }
        }
        Ok(usage)
    }
}

#[async_trait]
impl BlobStore for FileBlobStore {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let (place, key) = (Arc::clone(&self.place), key.to_owned());
        off_the_runtime(move || place.put(&key, &bytes)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let (place, key) = (Arc::clone(&self.place), key.to_owned());
        off_the_runtime(move || place.get(&key)).await
    }
}

impl Place {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        if digest(bytes) != key {
            return Err(unavailable(io::Error::new(io::ErrorKind::InvalidInput, format!("{key} is not the digest of its blob"))));
        }
        let path = self.path(key)?;
        // What has its name is whole; what was damaged since is written anew. Whoever gave it that name may not have come to make it durable.
        if matches!(fs::read(&path), Ok(found) if found == bytes) {
            return sync(&path).and_then(|()| self.settle(&path)).map_err(unavailable);
        }
        self.permit(bytes.len() as u64)?;
        self.write(&path, bytes).map_err(unavailable)
    }

    /// Refuses what would go into the reserve of the file system. If that cannot say what is free, the write itself will.
    fn permit(&self, bytes: u64) -> Result<(), StoreError> {
        let needed = self.reserve_bytes.saturating_add(bytes);
        let low = rustix::fs::statvfs(&self.root).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < needed);
        if low && self.reserve_bytes > 0 { Err(StoreError::NoSpace) } else { Ok(()) }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let directory = path.parent().expect("a blob is in a directory");
        make_directory(directory)?;
        let unfinished = self.root.join(UNFINISHED).join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let written = write_new(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            drop(fs::remove_file(&unfinished));
        }
        written?;
        self.settle(path)
    }

    /// Makes the name of a blob durable, and that of the directory it is in.
    fn settle(&self, path: &Path) -> io::Result<()> {
        sync(path.parent().expect("a blob is in a directory"))?;
        sync(&self.root)
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match fs::read(self.path(key)?) {
            Ok(bytes) if digest(&bytes) == key => Ok(Some(bytes)),
            Ok(_) => Err(StoreError::Damaged(format!("blob {key} is not what was written"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        if unhex::<32>(key).is_none() {
            return Err(unavailable(io::Error::new(io::ErrorKind::InvalidInput, format!("{key:?} is no key of a blob"))));
        }
        Ok(self.root.join(&key[..2]).join(key))
    }
}

async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(StoreError::Unavailable(Box::new(error))))
}

/// Makes a directory that only its owner can enter, unless it is there.
fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Puts a file or a directory on stable storage.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(path.to_owned()));
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn digest(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    hex(&digest)
}

fn unavailable(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::NoSpace,
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    thread_local! {
        /// What was put on stable storage on this thread, in order.
        pub(super) static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    #[test]
    fn whatever_is_answered_is_durable_with_every_name_that_leads_to_it() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("blobs");
        let store = FileBlobStore::open(&path, 0).expect("made");
        assert_eq!(SYNCED.take(), [path.clone(), root.path().to_owned()]);
        let key = digest(b"once");
        let (directory, file) = (path.join(&key[..2]), path.join(&key[..2]).join(&key));
        store.place.put(&key, b"once").expect("kept");
        assert_eq!(SYNCED.take(), [directory.clone(), path.clone()], "its bytes were, before it had its name");
        // Another call, or one before a crash, may have given it its name and no more.
        store.place.put(&key, b"once").expect("kept");
        assert_eq!(SYNCED.take(), [file, directory, path]);
    }

    #[tokio::test]
    async fn a_blob_comes_back_after_a_restart_and_a_repeat_changes_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let (path, bytes) = (root.path().join("blobs"), vec![7; 300_000]);
        let key = digest(&bytes);
        let store = FileBlobStore::open(&path, 0).expect("made");
        assert!(store.get(&key).await.expect("asked").is_none());
        store.put(&key, bytes.clone()).await.expect("kept");
        store.put(&key, bytes.clone()).await.expect("kept again");
        let again = FileBlobStore::open(&path, 0).expect("opened");
        assert_eq!(again.get(&key).await.expect("asked"), Some(bytes));
        let file = path.join(&key[..2]).join(&key);
        assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn blobs_leave_the_reserve_to_the_store_and_are_counted() {
        let root = tempfile::tempdir().expect("a directory");
        let store = FileBlobStore::open(root.path(), 0).expect("made");
        assert_eq!(store.usage().expect("read"), BlobUsage::default());
        for bytes in [&b"one"[..], b"three", b"one"] {
            store.put(&digest(bytes), bytes.to_vec()).await.expect("kept");
        }
        assert_eq!(store.usage().expect("read"), BlobUsage { blobs: 2, bytes: 8 });
        let full = FileBlobStore::open(root.path(), u64::MAX).expect("opened");
        assert!(matches!(full.put(&digest(b"more"), b"more".to_vec()).await, Err(StoreError::NoSpace)));
        full.put(&digest(b"one"), b"one".to_vec()).await.expect("what is there takes no room");
        assert_eq!(full.usage().expect("read"), BlobUsage { blobs: 2, bytes: 8 });
        let roomy = FileBlobStore::open(root.path(), 1).expect("opened");
        roomy.put(&digest(b"more"), b"more".to_vec()).await.expect("kept");
    }

    #[tokio::test]
    async fn a_damaged_blob_is_told_and_can_be_written_anew() {
        let root = tempfile::tempdir().expect("a directory");
        let store = FileBlobStore::open(root.path(), 0).expect("made");
        let key = digest(b"whole");
        store.put(&key, b"whole".to_vec()).await.expect("kept");
        fs::write(root.path().join(&key[..2]).join(&key), b"whol3").expect("damaged");
        assert!(matches!(store.get(&key).await, Err(StoreError::Damaged(_))));
        store.put(&key, b"whole".to_vec()).await.expect("kept anew");
        assert_eq!(store.get(&key).await.expect("asked").as_deref(), Some(&b"whole"[..]));
    }

    #[tokio::test]
    async fn what_a_crash_left_is_removed_and_no_key_leads_elsewhere() {
        let root = tempfile::tempdir().expect("a directory");
        let store = FileBlobStore::open(root.path(), 0).expect("made");
        fs::write(root.path().join(UNFINISHED).join("0"), b"half").expect("left");
        for key in ["../../etc/passwd", "", "AB", &"g".repeat(64)] {
            assert!(store.get(key).await.is_err(), "{key}");
        }
        assert!(store.put(&digest(b"a"), b"b".to_vec()).await.is_err(), "another's key");
        drop(FileBlobStore::open(root.path(), 0).expect("opened"));
        assert_eq!(fs::read_dir(root.path().join(UNFINISHED)).expect("there").count(), 0);
    }
}
