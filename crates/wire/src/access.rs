//! Why somebody may or may not do something.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::rule::Verdict;

/// Answer to `GET /access/explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// Whether it would be let through.
    pub allowed: bool,
    /// What decided: a rule's name, or `role:NAME`.
    pub rule: String,
    /// Why, for a person.
    pub why: String,
    /// Who was asked about.
    #[serde(default)]
    pub user: String,
    /// Their role.
    #[serde(default)]
    pub role: String,
    /// What they would do.
    #[serde(default)]
    pub action: String,
    /// Everything that had a say, in order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Verdict>,
}
