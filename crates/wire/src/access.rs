//! Why somebody may or may not do something.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::rule::Verdict;

/// An access decision, explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// Whether the action would be allowed.
    pub allowed: bool,
    /// What decided: the name of a rule, or `role:NAME`.
    pub rule: String,
    /// Why, as a sentence.
    pub why: String,
    /// The user that the decision is about.
    #[serde(default)]
    pub user: String,
    /// The user's role.
    #[serde(default)]
    pub role: String,
    /// The action.
    #[serde(default)]
    pub action: String,
    /// Every rule that was considered, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Verdict>,
}
