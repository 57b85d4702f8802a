//! API keys of a user: several at once, named, with an expiry. A key itself is shown once, when it is made.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// What is known of a key. The key itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Key {
    /// Its first characters, unique among the keys of its user.
    pub prefix: String,
    /// What its user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was made.
    pub created_at: Rfc3339,
    /// When it ends; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Rfc3339>,
    /// When it was last used, to the minute or so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// It is not accepted any more.
    #[serde(default)]
    pub revoked: bool,
}

/// Answer to `GET /users/{email}/keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeysResponse {
    /// The keys, oldest first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub keys: Vec<Key>,
}

/// Body of `POST /users/{email}/keys`, and of `POST /users/{email}/keys/{prefix}/rotate`, which ends the old key in the same step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyRequest {
    /// What its user calls it.
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds until it ends, by the server's clock; absent: never.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// Answer to a key that was made. It is given once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyResponse {
    /// The key. Nobody can ask for it again.
    pub api_key: Sensitive,
    /// What is kept of it.
    pub key: Key,
    /// What happened, for a person.
    #[serde(default)]
    pub message: String,
    /// What became of the file in which the server keeps a key for its first admin, where it held the key that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

/// Answer to `DELETE /users/{email}/keys/{prefix}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeKeyResponse {
    /// Which key.
    pub prefix: String,
    /// What happened, for a person.
    pub message: String,
    /// What became of the file in which the server keeps a key for its first admin, where it held the key that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}
