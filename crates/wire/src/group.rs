//! Groups: names for several users, for rules and secrets to speak of.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Group {
    /// The group's name.
    pub name: String,
    /// The e-mail addresses of the members, in alphabetical order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub members: Vec<String>,
    /// When it was created.
    pub created_at: Rfc3339,
    /// The user who created it.
    #[serde(default)]
    pub created_by: String,
}

/// A list of groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupsResponse {
    /// The groups.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub groups: Vec<Group>,
}

/// A group to create or replace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutGroupRequest {
    /// The group's name.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$"))]
    pub name: String,
    /// The e-mail addresses of all members.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub members: Vec<String>,
}

/// The result of saving or deleting a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupResponse {
    /// The group's name.
    pub name: String,
    /// The result as a sentence.
    pub message: String,
}
