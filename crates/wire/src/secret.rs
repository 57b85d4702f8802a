//! Secrets: named values that commands get in their environment. A value is in an answer only for those who may read it.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// A secret, with its value if you may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Secret {
    /// The secret's name.
    pub name: String,
    /// The environment variable that gets the value.
    #[serde(default)]
    pub key_name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value; absent in lists, and if you may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Sensitive>,
    /// The user who created it.
    #[serde(default)]
    pub created_by: String,
    /// The users that own it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// When it was created.
    pub created_at: Rfc3339,
    /// When it was changed last.
    pub updated_at: Rfc3339,
    /// The user who changed it last.
    #[serde(default)]
    pub updated_by: String,
    /// The id of the request that created it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The id of the request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// Who else may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or `role:NAME`.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub use_by: Vec<String>,
}

/// A list of secrets, without values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretsResponse {
    /// The secrets that you may use or manage.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub secrets: Vec<Secret>,
    /// How many secrets there are on all pages.
    #[serde(default)]
    pub total: u64,
}

/// One secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretResponse {
    /// The secret.
    pub secret: Secret,
}

/// A secret to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateSecretRequest {
    /// The secret's name.
    pub name: String,
    /// The environment variable that gets the value.
    pub key_name: String,
    /// The value, from 1 byte to 64 KiB.
    pub value: Sensitive,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who else may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or `role:NAME`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub use_by: Vec<String>,
}

/// Changes to a secret. Absent fields are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpdateSecretRequest {
    /// The environment variable that gets the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The value, from 1 byte to 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Sensitive>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Everyone who may use it, but not read it: `EMAIL`, `worker:NAME`, `group:NAME` or
    /// `role:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_by: Option<Vec<String>>,
}

/// The result of creating or changing a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SaveSecretResponse {
    /// The result as a sentence.
    pub message: String,
}

/// The result of deleting a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeleteSecretResponse {
    /// The secret's name.
    pub name: String,
    /// The result as a sentence.
    pub message: String,
}

/// The result of rotating the key that encrypts secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateSealingKeyResponse {
    /// The id of the new key.
    pub key_id: String,
    /// How many secrets were encrypted again.
    pub resealed: u64,
    /// The result as a sentence.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_request_and_not_in_its_debug_form() {
        let request = CreateSecretRequest {
            name: "github".into(),
            key_name: "GITHUB_TOKEN".into(),
            value: "hunter2".into(),
            description: None,
            use_by: Vec::new(),
        };
        assert_eq!(
            serde_json::to_string(&request).expect("plain data"),
            r#"{"name":"github","key_name":"GITHUB_TOKEN","value":"hunter2"}"#
        );
        assert!(!format!("{request:?}").contains("hunter2"));
    }

    #[test]
    fn an_update_names_only_what_changes() {
        let update = UpdateSecretRequest { description: Some("for CI".into()), ..UpdateSecretRequest::default() };
        assert_eq!(serde_json::to_string(&update).expect("plain data"), r#"{"description":"for CI"}"#);
        let nobody: UpdateSecretRequest = serde_json::from_str(r#"{"use_by":[]}"#).expect("a request");
        assert_eq!((nobody.use_by, nobody.value), (Some(Vec::new()), None));
    }
}
