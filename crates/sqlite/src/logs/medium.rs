//! What all files of one store share: the way to stable storage and the memory of its first failure. Once a
//! flush has failed it never forgets.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use super::seam::Seams;
use super::trouble::Trouble;

/// The storage under all files of one store.
pub(crate) struct Medium {
    seams: Seams,
    failure: OnceLock<String>,
}

impl Medium {
    pub(crate) fn new(seams: Seams) -> Self {
        Self { seams, failure: OnceLock::new() }
    }

    /// Fails once any flush has failed.
    pub(crate) fn alive(&self) -> Result<(), Trouble> {
        match self.failure.get() {
            None => Ok(()),
            Some(reason) => Err(Trouble::Poisoned { reason: reason.clone() }),
        }
    }

    pub(crate) fn flush_data(&self, file: &File, path: &Path) -> Result<(), Trouble> {
        self.alive()?;
        self.seams.flush.data(file).map_err(|error| self.poison("flush", path, error))
    }

    pub(crate) fn flush_directory(&self, dir: &Path) -> Result<(), Trouble> {
        self.alive()?;
        self.seams.flush.directory(dir).map_err(|error| self.poison("flush directory", dir, error))
    }

    pub(crate) fn salt(&self, path: &Path) -> Result<u32, Trouble> {
        (self.seams.salt)().map_err(Trouble::io("make a salt for", path))
    }

    fn poison(&self, action: &'static str, path: &Path, error: std::io::Error) -> Trouble {
        let reason = format!("{action} {}: {error}", path.display());
        tracing::error!(%reason, "log storage is poisoned: nothing more is acknowledged");
        // Two files may fail at once; the first reason is the one to tell.
        let _ = self.failure.set(reason);
        Trouble::Io { action, path: path.to_owned(), source: error }
    }
}
