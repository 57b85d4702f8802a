//! Copies of a running server's data.

use serde::{Deserialize, Serialize};

/// Asks for a copy. Only the server's own user may, over the local socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupRequest {
    /// The directory to make, an absolute path on the server's machine. It must not exist yet.
    pub destination: String,
}

/// A copy that is complete and on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupResponse {
    /// Where it is.
    pub destination: String,
}
