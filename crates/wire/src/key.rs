//! API keys of a user: several at once, named, with an expiry. A key itself is shown once, when it is made.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// What is known about an API key. The key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Key {
    /// The first characters of the key, unique among the keys of its user.
    pub prefix: String,
    /// The key's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was created.
    pub created_at: Rfc3339,
    /// When it expires; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Rfc3339>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// Whether it was revoked.
    #[serde(default)]
    pub revoked: bool,
}

/// The API keys of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeysResponse {
    /// The keys, oldest first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub keys: Vec<Key>,
}

/// An API key to create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyRequest {
    /// The key's name.
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds until it expires; default: never.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

/// The API key that was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyResponse {
    /// The API key. It is shown only here.
    pub api_key: Sensitive,
    /// What is stored about it.
    pub key: Key,
    /// The result as a sentence.
    #[serde(default)]
    pub message: String,
    /// What happened to the server's file admin.key; absent if it did not have the revoked key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

/// The result of revoking an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeKeyResponse {
    /// The first characters of the key.
    pub prefix: String,
    /// The result as a sentence.
    pub message: String,
    /// What happened to the server's file admin.key; absent if it did not have the revoked key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}
