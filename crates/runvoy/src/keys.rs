//! The server's own keys: made once, with an empty store; a store without its keys is refused.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use runvoy_model::chain::AuditKey;

use crate::backup::sync;
use crate::data_dir::{DataDir, write_private};
use crate::restore::remains;

/// The keys of a store.
pub struct Keys {
    /// Links events.
    pub audit: AuditKey,
    /// Signs tickets.
    pub signing: [u8; 32],
}

const NAMES: [&str; 2] = ["audit.key", "signing.key"];

impl Keys {
    /// Reads the keys, or makes them where there is no store yet.
    pub fn load_or_make(data: &DataDir) -> Result<Self> {
        if !data.store().exists() {
            refuse_lost_store(data)?;
            fs::DirBuilder::new().recursive(true).mode(0o700).create(data.keys()).context("cannot create the key directory")?;
            write_private(&unused(data), b"")?;
            for name in NAMES {
                if !data.keys().join(name).exists() {
                    write_private(&data.keys().join(name), &random()?)?;
                }
            }
        }
        Ok(Self { audit: AuditKey::new(read(data, NAMES[0])?), signing: read(data, NAMES[1])? })
    }
}

impl Keys {
    /// Notes that there is a store that needs these keys: from now on they are not made, and the store is not made again.
    pub fn note_store(data: &DataDir) -> Result<()> {
        match fs::remove_file(unused(data)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("cannot record that the store was created"),
            Ok(()) => sync(&data.keys()),
            Err(_) => Ok(()),
        }
    }
}

/// Is there while keys were made and no store was made with them yet: a start that was cut off between the two is repeated.
fn unused(data: &DataDir) -> PathBuf {
    data.keys().join("unused")
}

/// Refuses to make a new store where there are remains of another: its database is lost, not absent.
fn refuse_lost_store(data: &DataDir) -> Result<()> {
    if unused(data).exists() {
        return Ok(());
    }
    let keys = NAMES.map(|name| data.keys().join(name));
    if let Some(there) = keys.into_iter().chain(remains(data)).find(|path| path.symlink_metadata().is_ok()) {
        bail!(
            "the database {} is missing, although {} of its store is there: put it back, or restore a backup into another directory; \
             to begin with an empty store, move {} elsewhere first",
            data.store().display(),
            there.display(),
            data.path().display()
        );
    }
    Ok(())
}

/// The key of the events' chains, where there is a store.
pub fn audit_key(data: &DataDir) -> Result<AuditKey> {
    Ok(AuditKey::new(read(data, NAMES[0])?))
}

/// 256 bits that nobody can guess.
pub fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("the system gives no randomness: {error}"))?;
    Ok(bytes)
}

fn read(data: &DataDir, name: &str) -> Result<[u8; 32]> {
    let path = data.keys().join(name);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => bail!(
            "the store in {} needs its key {}, which cannot be read ({error}); put the key back, or restore a backup",
            data.path().display(),
            path.display()
        ),
    };
    bytes.try_into().map_err(|_| anyhow::anyhow!("{} is not a key: it must be 32 bytes", path.display()))
}
