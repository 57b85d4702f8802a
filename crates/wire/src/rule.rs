//! Rules that narrow a role, and what came of them in one case.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::null_is_empty;

/// What a rule does with what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Effect {
    /// What it lists is all that is allowed, together with what other rules allow.
    Allow,
    /// What it matches is refused, whatever else allows it.
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

/// A rule. It is also the body of `POST /rules`: the rule as it is to be, new or instead of what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// `allow` or `deny`.
    pub effect: Effect,
    /// E-mails of those it is for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Groups it is for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Roles it is for. Where no user, group and role is listed it is for everybody but admins.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Patterns of commands.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Patterns of images.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Patterns of locks.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// Patterns of queues.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Patterns of secrets.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Patterns of playbooks.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub playbooks: Vec<String>,
    /// Why there is this rule; shown to whom it refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Answer to `GET /rules`, in the order in which they are judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RulesResponse {
    /// The rules.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub rules: Vec<Rule>,
}

/// Answer to a rule that was put or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleResponse {
    /// Which.
    pub name: String,
    /// What happened, for a person.
    pub message: String,
}

/// A rule that had a say in one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// The rule's name, or `role:NAME` for what the role itself says.
    pub rule: String,
    /// What it came to.
    pub effect: Effect,
    /// What in the case made it so, for a person.
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
