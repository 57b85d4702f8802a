//! The sealing keys as files in the data directory: `keys/seal/<id>.key`, and the id of the current one in `keys/seal/current`. A key is on
//! stable storage before anything is sealed with it, and leaves the disk only when nothing is sealed with it any more and nobody copies the store.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use runvoy_model::seal::SealKey;
use runvoy_ports::seal::{SealKeys, SealKeysError};

use crate::data_dir::{DataDir, write_private};
use crate::keys::random;

/// The ring of a data directory.
pub struct FileSealKeys {
    directory: PathBuf,
    /// Every copy that is being made has a share in it.
    copies: Arc<()>,
}

/// While it is there no key leaves the disk: a copy of the store may need one that nothing here is sealed with any more.
pub struct Hold(#[expect(dead_code, reason = "it is there to be counted")] Arc<()>);

impl FileSealKeys {
    /// Opens the ring of a store whose secrets are sealed with these keys. Where there are no secrets and no ring it is made, with its first key;
    /// a store that lacks a key of its secrets is refused.
    pub fn open(data: &DataDir, used: &[String]) -> Result<Self> {
        let ring = Self { directory: data.keys().join("seal"), copies: Arc::default() };
        if used.is_empty() && !ring.directory.join(CURRENT).exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&ring.directory)
                .context("cannot create the directory of the encryption keys")?;
            ring.make().context("cannot create the first encryption key")?;
        }
        let missing = used.iter().find(|id| ring.by_id(id).is_err());
        if missing.is_some() || ring.current().is_err() {
            bail!(
                "the store in {} needs its encryption keys in {}, and {} is missing: put it back, or restore a backup",
                data.path().display(),
                ring.directory.display(),
                missing.map_or_else(|| "the current one".to_owned(), |id| format!("{id}.key"))
            );
        }
        // What a rotation that was cut off would have done last.
        ring.retire_all_but(used).context("cannot remove encryption keys that no secret needs")?;
        Ok(ring)
    }

    /// Keeps every key on the disk until the hold is dropped.
    pub fn hold(&self) -> Hold {
        Hold(Arc::clone(&self.copies))
    }

    fn make(&self) -> Result<SealKey> {
        let key = SealKey::new(random()?);
        write_private(&self.path(key.id()), key.bytes())?;
        write_private(&self.directory.join(CURRENT), key.id().as_bytes())?;
        Ok(key)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.key"))
    }
}

/// The file that names the current key.
pub const CURRENT: &str = "current";

impl SealKeys for FileSealKeys {
    fn current(&self) -> Result<SealKey, SealKeysError> {
        let id = fs::read_to_string(self.directory.join(CURRENT)).map_err(|error| SealKeysError::Unavailable(Box::new(error)))?;
        self.by_id(id.trim())
    }

    fn by_id(&self, id: &str) -> Result<SealKey, SealKeysError> {
        let missing = || SealKeysError::Missing(id.to_owned());
        // An id names a file: nothing but its own digits may.
        if id.len() != 16 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(missing());
        }
        let bytes = fs::read(self.path(id)).map_err(|_| missing())?;
        let key = SealKey::new(bytes.try_into().map_err(|_| missing())?);
        if key.id() == id { Ok(key) } else { Err(missing()) }
    }

    fn rotate(&self) -> Result<SealKey, SealKeysError> {
        self.make().map_err(|error| SealKeysError::Unavailable(error.into()))
    }

    fn retire_all_but(&self, ids: &[String]) -> Result<(), SealKeysError> {
        let failed = |error: std::io::Error| SealKeysError::Unavailable(Box::new(error));
        let current = self.current()?;
        if Arc::strong_count(&self.copies) > 1 {
            tracing::warn!("a backup is being made: encryption keys that no secret needs stay until the next rotation or start");
            return Ok(());
        }
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".key"));
            if let Some(id) = id
                && id != current.id()
                && !ids.iter().any(|used| used == id)
            {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }
}
