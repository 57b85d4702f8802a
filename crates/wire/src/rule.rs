//! Rules that narrow a role, and what came of them in one case.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;

/// What a rule does with what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Effect {
    /// Allows only what it and other allow rules list.
    Allow,
    /// Refuses what it matches, even if another rule allows it.
    Deny,
}

impl Effect {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A rule that narrows a role. All lists are optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rule {
    /// The rule's name.
    pub name: String,
    /// `allow` or `deny`.
    pub effect: Effect,
    /// The users that it applies to: e-mail addresses, or `worker:NAME`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// The groups that it applies to.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The roles that it applies to, never admin. Without users, groups and roles it applies to
    /// everyone but admins.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Patterns of commands, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Patterns of images, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Patterns of locks, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// Patterns of queues, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Patterns of secrets, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Patterns of playbooks, with `*` and `?`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub playbooks: Vec<String>,
    /// The reason for the rule, shown to users whom it refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A list of rules, in the order in which they are evaluated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RulesResponse {
    /// The rules.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Rule>,
}

/// The result of saving or deleting a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleResponse {
    /// The rule's name.
    pub name: String,
    /// The result as a sentence.
    pub message: String,
}

/// A rule that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// The rule's name, or `role:NAME` for the role itself.
    pub rule: String,
    /// Whether it allows or denies.
    pub effect: Effect,
    /// Why, as a sentence.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_does_not_speak_of_is_not_sent() {
        let text = r#"{"name":"prod","effect":"deny","groups":["interns"],"locks":["prod/*"]}"#;
        let rule: Rule = serde_json::from_str(text).expect("a rule");
        assert_eq!((rule.effect, rule.locks.as_slice(), rule.users.len()), (Effect::Deny, ["prod/*".to_owned()].as_slice(), 0));
        assert_eq!(serde_json::to_string(&rule).expect("plain data"), text);
    }

    #[test]
    fn a_rule_without_an_effect_is_no_rule() {
        for text in [r#"{"name":"prod"}"#, r#"{"name":"prod","effect":"maybe"}"#] {
            assert!(serde_json::from_str::<Rule>(text).is_err(), "{text}");
        }
    }
}
