//! Who the caller is.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// Answer to `GET /whoami`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Whoami {
    /// The user.
    pub email: String,
    /// `admin`, `operator`, `developer` or `viewer`.
    pub role: String,
    /// The first characters of the key; absent where the socket's peer is the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// When the key expires; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Rfc3339>,
    /// The groups they are in.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The names of the rules that narrow their role.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The server's version.
    #[serde(default)]
    pub server_version: String,
}
