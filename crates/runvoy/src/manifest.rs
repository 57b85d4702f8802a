//! The list of everything in a backup, with sizes and digests, signed with the store's audit key. A restore checks it before it puts anything in
//! place: a file that was changed, added, removed or replaced by a link makes the backup no backup.
//!
//! The keys are part of the backup. So whoever can read and write a backup can also sign a forged one: a backup has to be kept as private as
//! the data directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use runvoy_model::chain::AuditKey;
use runvoy_model::hex::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data_dir::write_private;

const NAME: &str = "manifest.json";
const PURPOSE: &str = "backup manifest";
const READ_AT_ONCE: usize = 1 << 16;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    bytes: u64,
    sha256: String,
}

type Files = BTreeMap<String, Entry>;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    files: Files,
    mac: String,
}

/// Writes the manifest of a whole backup.
pub fn write(directory: &Path, key: &AuditKey) -> Result<()> {
    let files = list(directory)?;
    let manifest = Manifest { mac: mac(&files, key)?, files };
    write_private(&directory.join(NAME), &serde_json::to_vec_pretty(&manifest)?)
}

/// A backup that is as it was made, as far as it was read once. What is copied from it is compared again: it may change meanwhile.
pub struct Verified<'d> {
    directory: &'d Path,
    files: Files,
}

impl Verified<'_> {
    /// The files below a directory of the backup, or the one file of this name, as paths in the backup.
    pub fn below(&self, top: &str) -> impl Iterator<Item = &Path> {
        self.files.keys().map(Path::new).filter(move |name| name.starts_with(top))
    }

    /// Copies a file and has it on the disk. A copy that differs from the manifest is removed and refused.
    pub fn copy(&self, name: &Path, to: &Path) -> Result<()> {
        let from = self.directory.join(name);
        let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
        let copy = copy.as_mut().map_err(|error| anyhow::anyhow!("cannot write {}: {error}", to.display()))?;
        let copied = digest(&from, |bytes| copy.write_all(bytes).with_context(|| format!("cannot write {}", to.display())))?;
        if name.to_str().and_then(|name| self.files.get(name)) != Some(&copied) {
            fs::remove_file(to).with_context(|| format!("cannot remove {}", to.display()))?;
            bail!("{} changed while it was copied", from.display());
        }
        Ok(copy.sync_all()?)
    }
}

/// Refuses a backup that is not as it was made.
pub fn verify<'d>(directory: &'d Path, key: &AuditKey) -> Result<Verified<'d>> {
    let path = directory.join(NAME);
    let text = fs::read(&path).with_context(|| format!("{} cannot be read: without it the backup cannot be checked", path.display()))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).with_context(|| format!("{} is not the manifest of a backup", path.display()))?;
    let found = list(directory)?;
    for (name, entry) in &manifest.files {
        match found.get(name) {
            None => bail!("{name} is missing"),
            Some(there) if there != entry => bail!("{name} was changed after the backup was made"),
            Some(_) => {}
        }
    }
    if let Some(added) = found.keys().find(|name| !manifest.files.contains_key(*name)) {
        bail!("{added} was added after the backup was made");
    }
    if mac(&manifest.files, key)? != manifest.mac {
        bail!("{} was not made by the server that has this audit key", path.display());
    }
    Ok(Verified { directory, files: manifest.files })
}

fn mac(files: &Files, key: &AuditKey) -> Result<String> {
    Ok(hex(&key.sign(PURPOSE, &serde_json::to_vec(files)?)))
}

/// Every file below a directory but the manifest itself. Links are refused.
fn list(directory: &Path) -> Result<Files> {
    let (mut files, mut open) = (Files::new(), vec![PathBuf::new()]);
    while let Some(below) = open.pop() {
        for entry in fs::read_dir(directory.join(&below))? {
            let entry = entry?;
            let (name, kind) = (below.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                open.push(name);
            } else if !kind.is_file() {
                bail!("{} is not a regular file", name.display());
            } else if name != Path::new(NAME) {
                let name = name.to_str().with_context(|| format!("{} is not the name of a file in a backup", name.display()))?;
                files.insert(name.to_owned(), digest(&entry.path(), |_| Ok(()))?);
            }
        }
    }
    Ok(files)
}

/// The digest of a file, whose bytes are given on as they are read.
fn digest(path: &Path, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<Entry> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; READ_AT_ONCE]);
    loop {
        let read = file.read(&mut buffer).with_context(|| format!("cannot read {}", path.display()))?;
        if read == 0 {
            return Ok(Entry { bytes, sha256: hex(&hash.finalize()) });
        }
        hash.update(&buffer[..read]);
        take(&buffer[..read])?;
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_after_it_was_verified_is_not_copied() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (backup, key) = (dir.path().join("backup"), AuditKey::new([7; 32]));
        fs::create_dir_all(backup.join("logs")).expect("made");
        fs::write(backup.join("logs/one"), "kept").expect("written");
        fs::write(backup.join("runvoy.db"), "store").expect("written");
        write(&backup, &key).expect("listed");
        let verified = verify(&backup, &key).expect("it is whole");
        assert_eq!(verified.below("logs").collect::<Vec<_>>(), [Path::new("logs/one")]);
        let target = dir.path().join("target");
        verified.copy(Path::new("logs/one"), &target).expect("as it was");
        assert_eq!(fs::read(&target).expect("copied"), b"kept");
        fs::write(backup.join("runvoy.db"), "st0re").expect("written");
        fs::write(backup.join("logs/two"), "added").expect("written");
        for name in ["runvoy.db", "logs/two"] {
            let refused = verified.copy(Path::new(name), &target).expect_err("it was changed").to_string();
            assert!(refused.contains(name) && !target.exists(), "{refused}");
        }
    }
}
