//! Secrets: named values that commands get in their environment. A value is in an answer only for those who may read it.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// A secret, with its value where the caller may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// The environment variable that it becomes.
    #[serde(default)]
    pub key_name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value; absent in lists, and for those who may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Sensitive>,
    /// Who made it.
    #[serde(default)]
    pub created_by: String,
    /// Whom it belongs to.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// When it was made.
    pub created_at: Rfc3339,
    /// When it was changed last.
    pub updated_at: Rfc3339,
    /// Who changed it last.
    #[serde(default)]
    pub updated_by: String,
    /// The request that made it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// Who else may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub use_by: Vec<String>,
}

/// Answer to `GET /secrets`, by name, without values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretsResponse {
    /// The secrets that the caller may know of.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub secrets: Vec<Secret>,
    /// How many.
    #[serde(default)]
    pub total: u64,
}

/// Answer to `GET /secrets/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretResponse {
    /// The secret.
    pub secret: Secret,
}

/// Body of `POST /secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateSecretRequest {
    /// Its name.
    pub name: String,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// The value.
    pub value: Sensitive,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who else may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub use_by: Vec<String>,
}

/// Body of `PUT /secrets/{name}`. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpdateSecretRequest {
    /// The environment variable that it becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Sensitive>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Everybody who may use it, without reading it: `EMAIL`, `group:NAME` or `role:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_by: Option<Vec<String>>,
}

/// Answer to a secret that was made or changed. It tells nothing of the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SaveSecretResponse {
    /// What happened, for a person.
    pub message: String,
}

/// Answer to `DELETE /secrets/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeleteSecretResponse {
    /// Which.
    pub name: String,
    /// What happened, for a person.
    pub message: String,
}

/// Answer to `POST /sealing-key/rotate`: every secret is sealed with a new key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateSealingKeyResponse {
    /// The id of the key that seals from now on.
    pub key_id: String,
    /// How many secrets were sealed anew.
    pub resealed: u64,
    /// What happened, for a person.
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
