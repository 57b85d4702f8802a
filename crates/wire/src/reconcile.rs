//! What a reconciliation looked at, found and repaired. The words are those of the public clients, also where they speak of clouds.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// The result of a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileResponse {
    /// Always `ok`.
    pub status: String,
    /// The report.
    pub report: ReconcileReport,
}

/// What a reconciliation checked, found and repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileReport {
    /// When the check was made.
    pub timestamp: Rfc3339,
    /// The check of executions and locks.
    #[serde(default)]
    pub compute_status: ComputeStatus,
    /// The check of secrets.
    #[serde(default)]
    pub secrets_status: SecretsStatus,
    /// The check of IAM roles.
    #[serde(default)]
    pub identity_status: IdentityStatus,
    /// The check of users and ownerships.
    #[serde(default)]
    pub authorizer_status: AuthorizerStatus,
    /// The findings.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub issues: Vec<ReconcileIssue>,
    /// How many findings were repaired.
    #[serde(default)]
    pub reconciled_count: u64,
    /// How many findings could not be repaired.
    #[serde(default)]
    pub error_count: u64,
}

/// The check of executions and locks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ComputeStatus {
    /// How many were checked.
    pub total_resources: u64,
    /// How many are correct.
    pub verified_count: u64,
    /// How many were recreated.
    pub recreated_count: u64,
    /// How many had their tags corrected.
    pub tag_updated_count: u64,
    /// How many belong to nothing.
    pub orphaned_count: u64,
    /// Their ids.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_resources: Vec<String>,
}

/// The check of secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SecretsStatus {
    /// How many were checked.
    pub total_secrets: u64,
    /// How many can be decrypted.
    pub verified_count: u64,
    /// How many had their tags corrected.
    pub tag_updated_count: u64,
    /// How many cannot be decrypted.
    pub missing_count: u64,
    /// How many have no owner.
    pub orphaned_count: u64,
    /// Their ids.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_parameters: Vec<String>,
}

/// The check of IAM roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct IdentityStatus {
    /// Whether the default roles exist.
    pub default_roles_verified: bool,
    /// How many of the other roles exist.
    pub custom_roles_verified: u64,
    /// How many other roles images use.
    pub custom_roles_total: u64,
    /// The roles that do not exist.
    #[serde(deserialize_with = "null_is_empty")]
    pub missing_roles: Vec<String>,
}

/// The check of users and ownerships.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct AuthorizerStatus {
    /// Users with an unknown role.
    #[serde(deserialize_with = "null_is_empty")]
    pub users_with_invalid_roles: Vec<String>,
    /// Users without a role.
    #[serde(deserialize_with = "null_is_empty")]
    pub users_with_missing_roles: Vec<String>,
    /// Resources without an owner.
    #[serde(deserialize_with = "null_is_empty")]
    pub resources_with_missing_owners: Vec<String>,
    /// Ownerships of resources that do not exist.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_ownerships: Vec<String>,
    /// Ownerships that are missing.
    #[serde(deserialize_with = "null_is_empty")]
    pub missing_ownerships: Vec<String>,
    /// How many users were checked.
    pub total_users_checked: u64,
    /// How many resources were checked.
    pub total_resources_checked: u64,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileIssue {
    /// The type of the resource, such as `execution`, `lock`, `user` or `secret`.
    pub resource_type: String,
    /// Their ids.
    pub resource_id: String,
    /// `error` or `warning`.
    pub severity: String,
    /// What was found, as a sentence.
    pub message: String,
    /// What was done: `repaired`, `reported` or `requires_manual_intervention`.
    pub action: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_go_server_is_read() {
        let text = r#"{"status":"ok","report":{"timestamp":"2026-01-03T14:22:19Z","compute_status":{"total_resources":3,"orphaned_resources":null},
            "identity_status":{"default_roles_verified":true,"missing_roles":null},"issues":null,"reconciled_count":1,"error_count":0}}"#;
        let response: ReconcileResponse = serde_json::from_str(text).expect("the contract's own fields");
        let report = response.report;
        assert_eq!((report.compute_status.total_resources, report.reconciled_count, report.issues.len()), (3, 1, 0));
        assert!(report.identity_status.default_roles_verified);
    }
}
