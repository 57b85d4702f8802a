//! A file that only its owner can read, written whole or not at all. It is made before there is anything to put in it: what is given once must not be
//! given where it cannot be kept.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is not there yet, or is to be replaced.
#[derive(Debug)]
pub(crate) struct PrivateFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl PrivateFile {
    /// Makes sure that the file can be written.
    pub(crate) fn prepare(path: &Path) -> io::Result<Self> {
        // A link keeps pointing where it points.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => return Err(io::Error::other("it is not a regular file")),
            _ => {}
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Nobody else can read it, not even for a moment.
        let file = tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(directory)?;
        Ok(Self { path, file })
    }

    /// Writes the file in place of the one before.
    pub(crate) fn write(mut self, text: &str) -> io::Result<()> {
        self.fill(text)?;
        self.file.persist(&self.path)?;
        Ok(())
    }

    /// Writes the file where there is none, also not one that came since.
    pub(crate) fn write_new(mut self, text: &str) -> io::Result<()> {
        self.fill(text)?;
        self.file.persist_noclobber(&self.path)?;
        Ok(())
    }

    fn fill(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.as_file().set_permissions(Permissions::from_mode(0o600))?;
        self.file.as_file().sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_with_all_that_is_in_it_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("worker.key");
        let prepared = PrivateFile::prepare(&path).expect("it can be written");
        assert!(!path.exists());
        let other = PrivateFile::prepare(&path).expect("it is not there yet");
        prepared.write_new("key\n").expect("written");
        other.write_new("another\n").expect_err("somebody was faster");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "key\n");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        drop(PrivateFile::prepare(&path).expect("it can be replaced"));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "key\n", "what is not written replaces nothing");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1, "and leaves nothing");
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_known_before() {
        let dir = tempfile::tempdir().expect("a directory");
        PrivateFile::prepare(&dir.path().join("missing/worker.key")).expect_err("there is no such directory");
        PrivateFile::prepare(dir.path()).expect_err("it is a directory");
        PrivateFile::prepare(Path::new("/dev/null")).expect_err("it is a device");
    }
}
