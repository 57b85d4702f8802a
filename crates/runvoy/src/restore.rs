//! A data directory made from a backup. A mark stands in it until it is whole: meanwhile no server starts there, and a restore that was
//! cut off is repeated from its beginning.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::backup::{PARTIAL, sync};
use crate::data_check::{check_owner, check_tree};
use crate::data_dir::{DataDir, write_private};
use crate::keys::audit_key;
use crate::manifest::{self, Verified};

/// Makes a data directory from a backup. It must hold nothing of another store.
pub fn restore(source: &Path, data: &DataDir) -> Result<()> {
    let backup = DataDir::new(source);
    if source.to_string_lossy().trim_end_matches('/').ends_with(PARTIAL) {
        bail!("{} is an incomplete backup", source.display());
    }
    if !backup.store().is_file() {
        bail!("{} is not a backup: it has no {}", source.display(), backup.store().display());
    }
    let verified =
        verify(&backup).with_context(|| format!("{} was not restored: the backup was altered or is damaged", source.display()))?;
    check_owner(data)?;
    data.create()?;
    let _lock = data.lock()?;
    if !data.restoring().exists() {
        if let Some(there) = remains(data).into_iter().find(|path| path.exists()) {
            bail!("{} exists already: restore into an empty directory, or move it away", there.display());
        }
        write_private(&data.restoring(), format!("{}\n", source.display()).as_bytes())?;
    }
    copy(&verified, data).with_context(|| format!("cannot restore {}", source.display()))?;
    fs::remove_file(data.restoring())?;
    sync(data.path())
}

/// Nothing of a backup is used before all of it is known to be as the server made it.
fn verify(backup: &DataDir) -> Result<Verified<'_>> {
    check_owner(backup)?;
    check_tree(backup.path(), true)?;
    check_tree(&backup.keys(), false)?;
    manifest::verify(backup.path(), &audit_key(backup)?)
}

/// What a store leaves. Its write-ahead log without it would be taken for that of the restored one, and its checkpoints would tell that this was put
/// back to an earlier state.
pub fn remains(data: &DataDir) -> [PathBuf; 6] {
    let beside = |name| data.path().join(name);
    [data.store(), beside("runvoy.db-wal"), beside("runvoy.db-shm"), data.logs(), data.blobs(), data.checkpoints()]
}

/// The store comes last.
fn copy(backup: &Verified<'_>, data: &DataDir) -> Result<()> {
    let beside = |name| data.path().join(name);
    let (new_logs, new_blobs, new_store) = (beside("logs.new"), beside("blobs.new"), beside("runvoy.db.new"));
    for unfinished in remains(data).iter().chain([&new_logs, &new_blobs, &new_store]) {
        remove(unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    for (from, to) in [("keys", data.keys()), ("checkpoints.ndjson", data.checkpoints()), ("start.json", data.start_record())] {
        copy_verified(backup, from, &to)?;
    }
    for (from, unfinished, to) in
        [("logs", new_logs, data.logs()), ("blobs", new_blobs, data.blobs()), ("runvoy.db", new_store, data.store())]
    {
        if copy_verified(backup, from, &unfinished)? {
            fs::rename(&unfinished, to)?;
        }
    }
    sync(data.path())
}

/// Copies a file of a backup, or a directory with all files below it; whether there is one.
fn copy_verified(backup: &Verified<'_>, name: &str, to: &Path) -> Result<bool> {
    let mut directories = BTreeSet::new();
    let mut is_there = false;
    for from in backup.below(name) {
        let below = from.strip_prefix(name).context("a name begins with its directory")?;
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        if let Some(directory) = target.parent().filter(|directory| directory.starts_with(to)) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            directories.extend(directory.ancestors().take_while(|directory| directory.starts_with(to)).map(Path::to_owned));
        }
        backup.copy(from, &target)?;
        is_there = true;
    }
    directories.iter().try_for_each(|directory| sync(directory))?;
    Ok(is_there)
}

fn remove(path: &Path) -> std::io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a directory, but for what is being written in it.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == runvoy_sqlite::UNFINISHED_BLOBS {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            copy_file(&entry.path(), &target)?;
        }
    }
    sync(to)
}

/// Copies a file, and has it on the disk.
pub fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::File::open(to)?.sync_all()?;
    Ok(())
}
