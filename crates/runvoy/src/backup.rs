//! A copy of a running server's store, logs and keys. The server makes it, because only it knows how far its logs go; the command
//! line asks for it over the socket.
//!
//! It is made beside its place and moved there when it is whole and on the disk, so that a copy that was cut off is never taken for one.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use runvoy_sqlite::SqliteStore;
use runvoy_sqlite::logs::FileLogStore;

use crate::data_dir::{DataDir, UNFINISHED, write_private};
use crate::keys::audit_key;
use crate::manifest;
use crate::restore::{copy_file, copy_tree};
use crate::seal_keys::{CURRENT, FileSealKeys};

/// What the name of an unfinished copy ends with.
pub const PARTIAL: &str = ".partial";

/// What is copied.
pub struct Source<'a> {
    pub data: &'a DataDir,
    pub store: &'a SqliteStore,
    pub logs: &'a Arc<FileLogStore>,
    pub seal_keys: &'a FileSealKeys,
}

/// Copies everything to a new directory. One at a time: a second copy to the same place would take the first for one that was cut off.
pub async fn copy(source: Source<'_>, destination: &Path) -> Result<()> {
    if !destination.is_absolute() {
        bail!("the destination must be an absolute path");
    }
    if destination.symlink_metadata().is_ok() {
        bail!("{} exists already: choose a directory that does not", destination.display());
    }
    let (parent, partial) = beside(destination)?;
    clear(&partial)?;
    let copied = fill(source, &partial).await;
    let copied =
        copied.and_then(|()| fs::rename(&partial, destination).with_context(|| format!("cannot create {}", destination.display())));
    if copied.is_err() {
        // What cannot be removed now is removed by the next copy to this place.
        fs::remove_dir_all(&partial).ok();
    }
    copied?;
    sync(parent)
}

/// The store first, then the logs, so that the logs are never shorter than the store says; and the blobs, which are there before the store says so.
async fn fill(Source { data, store, logs, seal_keys }: Source<'_>, directory: &Path) -> Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let copy = DataDir::new(directory);
    // Before and after the store: whichever sealing key it was copied with is among these, also where one was made meanwhile.
    let _kept = seal_keys.hold();
    copy_keys(data, &copy)?;
    // Before the store: a checkpoint is told after it was written, so that the copied store has every one of these.
    if data.checkpoints().exists() {
        copy_file(&data.checkpoints(), &copy.checkpoints())?;
    }
    store.backup_to(&copy.store()).await.context("cannot copy the store")?;
    copy_keys(data, &copy)?;
    let (logs, target) = (Arc::clone(logs), copy.logs());
    tokio::task::spawn_blocking(move || logs.backup_to(&target)).await?.context("cannot copy the logs")?;
    let (blobs, target) = (data.blobs(), copy.blobs());
    tokio::task::spawn_blocking(move || copy_tree(&blobs, &target)).await?.context("cannot copy the blobs")?;
    // What the server was started with binds the starts of a restored directory too.
    if data.start_record().exists() {
        copy_file(&data.start_record(), &copy.start_record())?;
    }
    let (key, listed) = (audit_key(data)?, directory.to_owned());
    tokio::task::spawn_blocking(move || manifest::write(&listed, &key)).await?.context("cannot list the backup")?;
    sync(directory)
}

/// The directory that a copy is made in, and where it is made there.
fn beside(destination: &Path) -> Result<(&Path, PathBuf)> {
    let (Some(parent), Some(name)) = (destination.parent(), destination.file_name()) else {
        bail!("{} cannot be created: choose a new directory", destination.display());
    };
    let mut name = name.to_owned();
    name.push(PARTIAL);
    Ok((parent, parent.join(name)))
}

/// Removes a copy that was cut off. Its keys came first: a directory that has other things and no keys is none.
fn clear(partial: &Path) -> Result<()> {
    let removed = match fs::remove_dir(partial) {
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && DataDir::new(partial).keys().is_dir() => {
            fs::remove_dir_all(partial)
        }
        other => other,
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} is left from an earlier backup: move it away", partial.display()))
        }
        _ => Ok(()),
    }
}

/// Copies the keys of one data directory to another.
fn copy_keys(from: &DataDir, to: &DataDir) -> Result<()> {
    copy_private(&from.keys(), &to.keys()).context("cannot copy the keys")
}

fn copy_private(from: &Path, to: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    // Read before the list is: a key is there before anything points to it, so that the list has it.
    let pointer = fs::read(from.join(CURRENT)).ok();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_private(&entry.path(), &target)?;
        } else if target.extension().is_some_and(|extension| extension == UNFINISHED) || entry.file_name() == CURRENT {
            continue;
        } else {
            write_private(&target, &fs::read(entry.path())?)?;
        }
    }
    if let Some(pointer) = pointer {
        write_private(&to.join(CURRENT), &pointer)?;
    }
    sync(to)
}

/// Has the names in a directory on the disk.
pub fn sync(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).with_context(|| format!("cannot sync {}", directory.display()))
}
