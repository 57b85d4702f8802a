//! A copy of a running server's store, logs and keys. The server makes it, because only it knows how far its logs go; the command
//! line asks for it over the socket.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use runvoy_sqlite::SqliteStore;
use runvoy_sqlite::logs::FileLogStore;

use crate::data_dir::DataDir;

/// Copies everything to a new directory: the store first, then the logs, so that the logs are never shorter than the store says.
pub async fn copy(data: &DataDir, store: &SqliteStore, logs: &Arc<FileLogStore>, destination: &Path) -> Result<()> {
    if !destination.is_absolute() {
        bail!("the destination must be an absolute path");
    }
    fs::DirBuilder::new().mode(0o700).create(destination).with_context(|| format!("cannot make {}", destination.display()))?;
    let copy = DataDir::new(destination);
    copy_keys(data, &copy)?;
    store.backup_to(&copy.store()).await.context("cannot copy the store")?;
    let (logs, target) = (Arc::clone(logs), copy.logs());
    tokio::task::spawn_blocking(move || logs.backup_to(&target)).await?.context("cannot copy the logs")?;
    fs::File::open(destination)?.sync_all()?;
    Ok(())
}

pub fn copy_keys(from: &DataDir, to: &DataDir) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to.keys())?;
    for entry in fs::read_dir(from.keys()).context("cannot read the keys")? {
        let entry = entry?;
        crate::data_dir::write_private(&to.keys().join(entry.file_name()), &fs::read(entry.path())?)?;
    }
    Ok(())
}
