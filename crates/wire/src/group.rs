//! Groups: names for several users, for rules and secrets to speak of.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The e-mails of its members, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub members: Vec<String>,
    /// When it was made.
    pub created_at: Rfc3339,
    /// Who made it.
    #[serde(default)]
    pub created_by: String,
}

/// Answer to `GET /groups`, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupsResponse {
    /// The groups.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub groups: Vec<Group>,
}

/// Body of `POST /groups`: the group as it is to be, new or instead of what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutGroupRequest {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$"))]
    pub name: String,
    /// The e-mails of all its members.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub members: Vec<String>,
}

/// Answer to a group that was put or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupResponse {
    /// Which.
    pub name: String,
    /// What happened, for a person.
    pub message: String,
}
