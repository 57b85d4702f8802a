//! Users: who there is, who is invited, whose rights end.

use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::null_is_empty;
use crate::sensitive::Sensitive;
use crate::time::Rfc3339;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct User {
    /// Who.
    pub email: String,
    /// `admin`, `operator`, `developer` or `viewer`.
    #[serde(default)]
    pub role: String,
    /// When they were invited.
    pub created_at: Rfc3339,
    /// None of their keys is accepted any more.
    #[serde(default)]
    pub revoked: bool,
    /// When a key of theirs was last used, to the minute or so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// The request that made them.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The request that changed them last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// Who invited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Their keys, oldest first.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    /// The groups they are in.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Until when their claim token is good; absent once they claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_expires_at: Option<Rfc3339>,
}

/// Answer to `GET /users`, by e-mail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsersResponse {
    /// The users.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub users: Vec<User>,
}

/// Body of `POST /users/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateUserRequest {
    /// Whom to invite.
    pub email: String,
    /// `admin`, `operator`, `developer` or `viewer`.
    #[serde(default)]
    pub role: String,
    /// A key that they already have: 32 to 256 printable ASCII characters without spaces. Absent: they claim one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Sensitive>,
    /// Invite a second user to a server that runs commands as its own user. It refuses commands from then on, until it is started with
    /// `--run-as-uids`, `--run-as`, `--no-worker` or `--allow-shared-uid`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// Seconds for which the invitation can be answered, at most seven days; 15 minutes where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 604_800))]
    pub expires_in: Option<u64>,
}

/// Body of `POST /users/{email}/renew`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewInvitationRequest {
    /// Seconds for which the invitation can be answered, at most seven days; 15 minutes where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 604_800))]
    pub expires_in: Option<u64>,
}

/// Answer to an invitation. The token is given once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateUserResponse {
    /// Who was invited.
    pub user: User,
    /// What they claim their key with, once; empty where the request brought the key.
    pub claim_token: Sensitive,
}

/// Body of `POST /users/revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeUserRequest {
    /// Whose rights end.
    #[cfg_attr(feature = "openapi", schema(format = "email"))]
    pub email: String,
    /// Their open executions are killed; otherwise they go on.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
}

/// Answer to a user whose rights ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeUserResponse {
    /// What happened, also to their open executions, for a person.
    pub message: String,
    /// Who it was.
    pub email: String,
    /// How many of their executions go on.
    #[serde(default)]
    pub open_executions: u64,
    /// How many of their executions are being killed.
    #[serde(default)]
    pub killed_executions: u64,
    /// How many of their jobs go on, and start tasks in their name.
    #[serde(default)]
    pub open_jobs: u64,
    /// How many of their jobs were cancelled.
    #[serde(default)]
    pub cancelled_jobs: u64,
}

/// Body of `POST /users/{email}/role`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetRoleRequest {
    /// `admin`, `operator`, `developer` or `viewer`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^(admin|operator|developer|viewer)$"))]
    pub role: String,
}

/// Answer to a changed role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetRoleResponse {
    /// Whose.
    pub email: String,
    /// What they are now.
    pub role: String,
    /// What happened, for a person.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_times_are_absent_and_never_empty() {
        let text = r#"{"email":"ana@example.com","role":"viewer","created_at":"2026-01-03T14:22:19.000Z","revoked":false,"created_by_request_id":"r1","modified_by_request_id":"r1"}"#;
        let user: User = serde_json::from_str(text).expect("the contract's own fields");
        assert_eq!((user.last_used, user.keys.len()), (None, 0));
        assert_eq!(serde_json::to_string(&user).expect("plain data"), text);
    }

    #[test]
    fn a_claim_token_is_not_in_the_debug_form() {
        let text = r#"{"user":{"email":"ana@example.com","created_at":"2026-01-03T14:22:19Z"},"claim_token":"hunter2"}"#;
        let response: CreateUserResponse = serde_json::from_str(text).expect("an answer");
        assert_eq!(response.claim_token.expose(), "hunter2");
        assert!(!format!("{response:?}").contains("hunter2"));
    }

    #[test]
    fn revoking_says_kill_only_where_it_is_meant() {
        let request = RevokeUserRequest { email: "ana@example.com".into(), kill: false };
        assert_eq!(serde_json::to_string(&request).expect("plain data"), r#"{"email":"ana@example.com"}"#);
        let request: RevokeUserRequest = serde_json::from_str(r#"{"email":"ana@example.com","kill":true}"#).expect("a request");
        assert!(request.kill);
    }
}
