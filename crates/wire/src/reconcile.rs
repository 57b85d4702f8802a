//! What a reconciliation looked at, found and repaired. The words are those of the public clients, also where they speak of clouds.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// Answer to `POST /health/reconcile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileResponse {
    /// `ok`.
    pub status: String,
    /// What came of it.
    pub report: ReconcileReport,
}

/// What came of a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileReport {
    /// When it was made.
    pub timestamp: Rfc3339,
    /// Executions, locks and what runs them.
    #[serde(default)]
    pub compute_status: ComputeStatus,
    /// Secrets.
    #[serde(default)]
    pub secrets_status: SecretsStatus,
    /// Roles.
    #[serde(default)]
    pub identity_status: IdentityStatus,
    /// Users and what they own.
    #[serde(default)]
    pub authorizer_status: AuthorizerStatus,
    /// What was found, one by one.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub issues: Vec<ReconcileIssue>,
    /// How many were repaired.
    #[serde(default)]
    pub reconciled_count: u64,
    /// How many could not be repaired.
    #[serde(default)]
    pub error_count: u64,
}

/// Executions, locks and what runs them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ComputeStatus {
    /// How many were looked at.
    pub total_resources: u64,
    /// How many are as they should be.
    pub verified_count: u64,
    /// How many were made anew.
    pub recreated_count: u64,
    /// How many were corrected.
    pub tag_updated_count: u64,
    /// How many belong to nothing.
    pub orphaned_count: u64,
    /// Which.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_resources: Vec<String>,
}

/// Secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SecretsStatus {
    /// How many were looked at.
    pub total_secrets: u64,
    /// How many can be opened.
    pub verified_count: u64,
    /// How many were corrected.
    pub tag_updated_count: u64,
    /// How many cannot be opened.
    pub missing_count: u64,
    /// How many belong to nobody.
    pub orphaned_count: u64,
    /// Which.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_parameters: Vec<String>,
}

/// Roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct IdentityStatus {
    /// The roles that images run with by default are there.
    pub default_roles_verified: bool,
    /// How many of the others are there.
    pub custom_roles_verified: u64,
    /// How many others there should be.
    pub custom_roles_total: u64,
    /// Which are missing.
    #[serde(deserialize_with = "null_is_empty")]
    pub missing_roles: Vec<String>,
}

/// Users and what they own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct AuthorizerStatus {
    /// Users whose role is none of the four.
    #[serde(deserialize_with = "null_is_empty")]
    pub users_with_invalid_roles: Vec<String>,
    /// Users without a role.
    #[serde(deserialize_with = "null_is_empty")]
    pub users_with_missing_roles: Vec<String>,
    /// Things that belong to nobody.
    #[serde(deserialize_with = "null_is_empty")]
    pub resources_with_missing_owners: Vec<String>,
    /// Ownerships of things that are gone.
    #[serde(deserialize_with = "null_is_empty")]
    pub orphaned_ownerships: Vec<String>,
    /// Ownerships that should be there.
    #[serde(deserialize_with = "null_is_empty")]
    pub missing_ownerships: Vec<String>,
    /// How many users were looked at.
    pub total_users_checked: u64,
    /// How many things were looked at.
    pub total_resources_checked: u64,
}

/// One thing that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileIssue {
    /// What kind of thing: `execution`, `lock`, `user`, `secret`, …
    pub resource_type: String,
    /// Which.
    pub resource_id: String,
    /// `error` or `warning`.
    pub severity: String,
    /// What was found, for a person.
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
