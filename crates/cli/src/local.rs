//! The seam to a server on this machine. Only the binary can start one.

use std::path::{Path, PathBuf};

use async_trait::async_trait;

/// Finds, or starts, the server of a data directory.
#[async_trait]
pub trait LocalServer: Send + Sync {
    /// The Unix socket of the server that holds `data_dir`, started first if nobody does. The error is for a person.
    async fn ensure(&self, data_dir: &Path) -> Result<PathBuf, String>;

    /// The same socket, where a server listens on it already. Never starts one.
    async fn running(&self, data_dir: &Path) -> Option<PathBuf>;
}
