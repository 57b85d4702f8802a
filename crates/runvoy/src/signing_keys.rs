//! The keys that sign task tokens as files in the data directory: `keys/signing/<made at, in ms>.key`. A key is on stable storage before anything is signed with it.
//! None is ever removed: a lease may be held for as long as its worker extends it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use async_trait::async_trait;
use runvoy_model::signing::SigningKey;
use runvoy_model::time::UnixMs;
use runvoy_ports::signing::{SigningKeys, SigningKeysError};

use crate::backup::sync;
use crate::data_dir::{DataDir, write_private};
use crate::keys::random;

/// The ring of a data directory.
pub struct FileSigningKeys {
    data: DataDir,
}

impl FileSigningKeys {
    /// The ring of this directory; it is made with its first key.
    pub fn new(data: &DataDir) -> Self {
        Self { data: data.clone() }
    }

    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&DataDir) -> Result<T> + Send + 'static) -> Result<T, SigningKeysError> {
        let data = self.data.clone();
        let done = tokio::task::spawn_blocking(move || work(&data)).await;
        done.map_err(|error| SigningKeysError(Box::new(error)))?.map_err(|error| SigningKeysError(error.into()))
    }
}

#[async_trait]
impl SigningKeys for FileSigningKeys {
    async fn all(&self) -> Result<Vec<SigningKey>, SigningKeysError> {
        self.on_disk(all).await
    }

    async fn make(&self, at: UnixMs) -> Result<SigningKey, SigningKeysError> {
        self.on_disk(move |data| make(data, at)).await
    }
}

fn directory(data: &DataDir) -> PathBuf {
    data.keys().join("signing")
}

fn all(data: &DataDir) -> Result<Vec<SigningKey>> {
    let directory = directory(data);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", directory.display()))?,
    };
    let mut keys = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(made_at) = moment(&path) {
            keys.push(SigningKey::new(made_at, read(&path)?));
        }
    }
    Ok(keys)
}

/// The moment in the name of a key. What is called otherwise is none.
fn moment(path: &Path) -> Option<UnixMs> {
    let name = path.file_name()?.to_str()?.strip_suffix(".key")?;
    let made_at: i64 = name.parse().ok()?;
    (made_at.to_string() == name).then_some(UnixMs(made_at))
}

fn read(path: &Path) -> Result<[u8; 32]> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    bytes.try_into().map_err(|_| anyhow::anyhow!("{} is not a key, which has 32 bytes: put it back, or remove it", path.display()))
}

fn make(data: &DataDir, at: UnixMs) -> Result<SigningKey> {
    let directory = directory(data);
    if !directory.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).context("cannot create the directory of the signing keys")?;
        sync(&data.keys())?;
    }
    let path = directory.join(format!("{}.key", at.0));
    if !path.exists() {
        write_private(&path, &random()?)?;
    }
    Ok(SigningKey::new(at, read(&path)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn a_key_is_in_a_file_of_its_own_that_only_its_owner_can_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        let ring = FileSigningKeys::new(&data);
        assert!(ring.all().await.expect("no ring is no failure").is_empty());
        let (one, two) = (ring.make(UnixMs(5)).await.expect("a key"), ring.make(UnixMs(70)).await.expect("a key"));
        assert_ne!(one.bytes(), two.bytes());
        assert_eq!(ring.make(UnixMs(5)).await.expect("a key").bytes(), one.bytes(), "the one that is there stays");
        assert_eq!((mode(&directory(&data)), mode(&directory(&data).join("5.key"))), (0o700, 0o600));
        for other in ["current", "6.new", "007.key", "+8.key", "x.key"] {
            fs::write(directory(&data).join(other), "").expect("written");
        }
        let mut found = FileSigningKeys::new(&data).all().await.expect("keys");
        found.sort_by_key(SigningKey::made_at);
        assert_eq!(found.iter().map(|key| (key.made_at().0, *key.bytes())).collect::<Vec<_>>(), [(5, *one.bytes()), (70, *two.bytes())]);
    }

    #[tokio::test]
    async fn a_file_that_is_no_key_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = DataDir::new(dir.path());
        let ring = FileSigningKeys::new(&data);
        ring.make(UnixMs(5)).await.expect("a key");
        fs::write(directory(&data).join("5.key"), [0; 31]).expect("written");
        let error = ring.all().await.expect_err("half a key");
        let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(why.contains("5.key") && why.contains("32 bytes"), "{why}");
    }
}
