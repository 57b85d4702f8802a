//! A data directory made from a backup.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::backup::copy_keys;
use crate::data_dir::DataDir;

/// Makes a data directory from a backup. It must hold no store yet.
pub fn restore(source: &Path, data: &DataDir) -> Result<()> {
    let backup = DataDir::new(source);
    if !backup.store().is_file() {
        bail!("{} is not a backup: it has no {}", source.display(), backup.store().display());
    }
    data.create()?;
    let _lock = data.lock()?;
    if data.store().exists() || data.logs().exists() {
        bail!("{} holds a store already; restore into an empty directory", data.path().display());
    }
    copy_keys(&backup, data)?;
    if backup.logs().exists() {
        copy_tree(&backup.logs(), &data.logs())?;
    }
    // The store comes last: a restore that was cut off leaves a directory without one, which can be restored into again.
    let temporary = data.path().join("runvoy.db.new");
    fs::copy(backup.store(), &temporary)?;
    fs::File::open(&temporary)?.sync_all()?;
    fs::rename(&temporary, data.store())?;
    fs::File::open(data.path())?.sync_all()?;
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            fs::File::open(&target)?.sync_all()?;
        }
    }
    fs::File::open(to)?.sync_all()?;
    Ok(())
}
