//! Who the caller is.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// The current user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Whoami {
    /// The user's e-mail address.
    pub email: String,
    /// The role: `admin`, `operator`, `developer` or `viewer`.
    pub role: String,
    /// The first characters of the API key; absent if the local socket is the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// When the API key expires; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Rfc3339>,
    /// The groups that the user is a member of.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub groups: Vec<String>,
    /// The names of the rules that apply to the user.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<String>,
    /// The server's version.
    #[serde(default)]
    pub server_version: String,
}
