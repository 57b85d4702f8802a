//! Whether a server is there, and which one.

use serde::{Deserialize, Serialize};

/// The server's health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// The server's version.
    #[serde(default)]
    pub version: String,
    /// Where commands run: `local` or `aws`.
    #[serde(default)]
    pub provider: String,
    /// The AWS region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}
