//! Everything that one request did.

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::group::Group;
use crate::image::Image;
use crate::null_is_empty;
use crate::playbook::Playbook;
use crate::rule::Rule;
use crate::secret::Secret;
use crate::user::User;

/// What a request did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceResponse {
    /// The events of the request, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub logs: Vec<TraceLog>,
    /// The resources that it created or changed last.
    #[serde(default)]
    pub related_resources: RelatedResources,
}

/// One event of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceLog {
    /// The event's id.
    #[serde(default)]
    pub event_id: String,
    /// The time in Unix milliseconds.
    pub timestamp: i64,
    /// What happened, as a sentence.
    pub message: String,
}

/// The resources that a request created or changed last. Secrets have no values here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RelatedResources {
    /// Executions.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub executions: Vec<Execution>,
    /// Secrets.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub secrets: Vec<Secret>,
    /// Users.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub users: Vec<User>,
    /// Images.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub images: Vec<Image>,
    /// Groups.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub groups: Vec<Group>,
    /// Rules.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Rule>,
    /// Playbooks.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub playbooks: Vec<Playbook>,
}
