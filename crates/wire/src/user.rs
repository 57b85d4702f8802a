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
    /// The user's e-mail address.
    pub email: String,
    /// The role: `admin`, `operator`, `developer` or `viewer`.
    #[serde(default)]
    pub role: String,
    /// When the user was created.
    pub created_at: Rfc3339,
    /// Whether the user was revoked.
    #[serde(default)]
    pub revoked: bool,
    /// When one of the user's keys was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Rfc3339>,
    /// The id of the request that created the user.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The id of the request that changed the user last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// The user who created this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The API keys, oldest first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub keys: Vec<Key>,
    /// The groups that the user is a member of.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub groups: Vec<String>,
    /// When the invitation expires; absent once it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_expires_at: Option<Rfc3339>,
}

/// A list of users.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsersResponse {
    /// The users.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub users: Vec<User>,
}

/// A user to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateUserRequest {
    /// The user's e-mail address.
    pub email: String,
    /// The role: `admin`, `operator`, `developer` or `viewer`.
    #[serde(default)]
    pub role: String,
    /// An API key to use instead of an invitation: 32 to 256 printable ASCII characters without
    /// spaces that are hard to guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Sensitive>,
    /// Confirm a second user on a server that runs commands as its own operating-system user. The
    /// server then refuses commands until it is started with `--run-as-uids`, `--run-as`,
    /// `--no-worker` or `--allow-shared-uid`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// Seconds until the invitation expires, at most seven days; default: 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 604_800))]
    pub expires_in: Option<u64>,
}

/// An invitation to renew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewInvitationRequest {
    /// Seconds until the invitation expires, at most seven days; default: 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 604_800))]
    pub expires_in: Option<u64>,
}

/// The user, with the token of the invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateUserResponse {
    /// The user.
    pub user: User,
    /// The token of the invitation, shown only here; empty if the request had an `api_key`.
    pub claim_token: Sensitive,
}

/// A user to revoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeUserRequest {
    /// The user's e-mail address.
    #[cfg_attr(feature = "openapi", schema(format = "email"))]
    pub email: String,
    /// Whether to kill the user's executions and cancel their jobs; default: they go on.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
}

/// The result of revoking a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokeUserResponse {
    /// The result as a sentence.
    pub message: String,
    /// The user's e-mail address.
    pub email: String,
    /// How many of the user's executions go on.
    #[serde(default)]
    pub open_executions: u64,
    /// How many of the user's executions are being killed.
    #[serde(default)]
    pub killed_executions: u64,
    /// How many of the user's jobs go on and start tasks.
    #[serde(default)]
    pub open_jobs: u64,
    /// How many of the user's jobs were cancelled.
    #[serde(default)]
    pub cancelled_jobs: u64,
}

/// The role to give to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetRoleRequest {
    /// The role: `admin`, `operator`, `developer` or `viewer`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^(admin|operator|developer|viewer)$"))]
    pub role: String,
}

/// The result of changing a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetRoleResponse {
    /// The user's e-mail address.
    pub email: String,
    /// The user's role.
    pub role: String,
    /// The result as a sentence.
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
        let lists = r#""modified_by_request_id":"r1","keys":[],"groups":[]}"#;
        let written = text.replace(r#""modified_by_request_id":"r1"}"#, lists);
        assert_eq!(serde_json::to_string(&user).expect("plain data"), written, "lists are there, also empty");
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
