//! Copies of a running server's data.

use serde::{Deserialize, Serialize};

/// Where to write a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupRequest {
    /// The directory to create: an absolute path on the server's machine that does not exist.
    pub destination: String,
}

/// A backup that is complete and on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupResponse {
    /// The directory of the backup.
    pub destination: String,
}
