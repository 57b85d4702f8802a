//! The server's own keys: made once, with an empty store; a store without its keys is refused.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use anyhow::{Context, Result, bail};
use runvoy_model::chain::AuditKey;

use crate::data_dir::{DataDir, write_private};

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
            fs::DirBuilder::new().recursive(true).mode(0o700).create(data.keys()).context("cannot make the key directory")?;
            for name in NAMES {
                if !data.keys().join(name).exists() {
                    write_private(&data.keys().join(name), &random()?)?;
                }
            }
        }
        Ok(Self { audit: AuditKey::new(read(data, NAMES[0])?), signing: read(data, NAMES[1])? })
    }
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
