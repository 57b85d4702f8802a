//! Blobs as files: one a blob, named after the digest of its bytes, in a directory per first two digits. A file appears whole, by a rename
//! after its bytes are on stable storage, and is checked against its name whenever it is read. Half-written ones of a crash are
//! removed when the store is opened.

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

/// Blobs in a directory of their own.
#[derive(Debug, Clone)]
pub struct FileBlobStore {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    root: PathBuf,
    /// Numbers the unfinished files of this process, which alone uses the directory.
    next: AtomicU64,
}

impl FileBlobStore {
    /// Opens the directory, or makes it.
    pub fn open(root: &Path) -> io::Result<Self> {
        let unfinished = root.join(UNFINISHED);
        if let Err(error) = fs::remove_dir_all(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        make_directory(root)?;
        make_directory(&unfinished)?;
        Ok(Self { place: Arc::new(Place { root: root.to_owned(), next: AtomicU64::new(0) }) })
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
        // What has its name is whole; what was damaged since is written anew.
        if matches!(fs::read(&path), Ok(found) if found == bytes) {
            return Ok(());
        }
        self.write(&path, bytes).map_err(unavailable)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let directory = path.parent().expect("a blob is in a directory");
        if make_directory(directory)? {
            File::open(&self.root)?.sync_all()?;
        }
        let unfinished = self.root.join(UNFINISHED).join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let written = write_new(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            drop(fs::remove_file(&unfinished));
        }
        written?;
        File::open(directory)?.sync_all()
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

/// Makes a directory that only its owner can enter; `false` where it was there.
fn make_directory(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
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
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_blob_comes_back_after_a_restart_and_a_repeat_changes_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let (path, bytes) = (root.path().join("blobs"), vec![7; 300_000]);
        let key = digest(&bytes);
        let store = FileBlobStore::open(&path).expect("made");
        assert!(store.get(&key).await.expect("asked").is_none());
        store.put(&key, bytes.clone()).await.expect("kept");
        store.put(&key, bytes.clone()).await.expect("kept again");
        let again = FileBlobStore::open(&path).expect("opened");
        assert_eq!(again.get(&key).await.expect("asked"), Some(bytes));
        let file = path.join(&key[..2]).join(&key);
        assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_damaged_blob_is_told_and_can_be_written_anew() {
        let root = tempfile::tempdir().expect("a directory");
        let store = FileBlobStore::open(root.path()).expect("made");
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
        let store = FileBlobStore::open(root.path()).expect("made");
        fs::write(root.path().join(UNFINISHED).join("0"), b"half").expect("left");
        for key in ["../../etc/passwd", "", "AB", &"g".repeat(64)] {
            assert!(store.get(key).await.is_err(), "{key}");
        }
        assert!(store.put(&digest(b"a"), b"b".to_vec()).await.is_err(), "another's key");
        drop(FileBlobStore::open(root.path()).expect("opened"));
        assert_eq!(fs::read_dir(root.path().join(UNFINISHED)).expect("there").count(), 0);
    }
}
