//! Playbooks on the server: stored commands with checked parameters. A new text is a new version; old ones stay.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::null_is_empty;
use crate::time::Rfc3339;

/// What a playbook says. It is the body of `PUT /playbooks/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaybookTerms {
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A shell command, or a program where `args` is given.
    pub command: String,
    /// Arguments of the program, which then runs without a shell, also where the list is empty. `{{name}}` in one is that parameter's value; each stays one argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image it runs in; absent: the default at the time of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A repository to check out first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// Its branch, tag or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in it where the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The name of the secret that holds the token for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_token: Option<String>,
    /// Names of secrets to put into the environment.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Environment; names match `[A-Za-z_][A-Za-z0-9_]*`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Seconds until it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// A lock to hold while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Seconds to wait in line for the lock; absent: refuse at once where it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// The queue; absent: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// 1 (first) to 5 (last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Further attempts after one that failed retryably.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Words to find its executions by.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take its executions.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a terminal of its own: its output is one stream, and nobody types.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// What a run gives, by name. A value reaches the command as data, never as part of its text.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// A value that a run gives to a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Parameter {
    /// What it must be.
    #[serde(rename = "type", default)]
    pub kind: ParameterType,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is where a run does not give it; a parameter without one must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub default: Option<Value>,
    /// What a choice may be.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What the whole text must look like, with `*` and `?` as in rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The most characters of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// The least number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The greatest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// A regular expression that the whole text must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// What a value may hold that is refused otherwise.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<ParameterAllowance>,
}

/// What a value holds only where its parameter allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ParameterAllowance {
    /// A `-` at its beginning, which programs read as an option.
    LeadingDash,
    /// Control characters, line breaks and tabs among them.
    Control,
}

/// What a parameter must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ParameterType {
    /// A text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of a few texts.
    Choice,
}

impl ParameterType {
    /// The word on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Choice => "choice",
        }
    }
}

impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A playbook in one of its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Playbook {
    /// Its name.
    pub name: String,
    /// Counted from 1.
    pub version: u32,
    /// What it says, in the same object.
    #[serde(flatten)]
    pub terms: PlaybookTerms,
    /// When this version was pushed.
    pub created_at: Rfc3339,
    /// Who pushed it.
    #[serde(default)]
    pub created_by: String,
    /// The request that pushed it.
    #[serde(default)]
    pub created_by_request_id: String,
}

/// Answer to `GET /playbooks`: the newest version of each, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaybooksResponse {
    /// The playbooks that the caller may run or see.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub playbooks: Vec<Playbook>,
}

/// Answer to `PUT /playbooks/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutPlaybookResponse {
    /// Which.
    pub name: String,
    /// The version that it has now.
    pub version: u32,
    /// What happened, for a person.
    pub message: String,
}

/// Answer to `DELETE /playbooks/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovePlaybookResponse {
    /// Which.
    pub name: String,
    /// What happened, for a person.
    pub message: String,
}

/// Body of `POST /playbooks/{name}/run`, which answers as `POST /run` does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunPlaybookRequest {
    /// Values by parameter. A text is read as what the parameter must be.
    #[serde(default, deserialize_with = "null_is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: BTreeMap<String, Value>,
    /// Which version; absent: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Seconds to wait in line for the lock; absent: refuse at once where it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_playbook_is_one_flat_object_with_typed_parameters() {
        let text = r#"{"name":"deploy","version":2,"command":"make","args":["deploy","{{region}}"],"parameters":{"count":{"type":"integer","default":3,"max":9},"region":{"type":"choice","choices":["eu","us"]}},"created_at":"2026-01-03T14:22:19.000Z","created_by":"ana@example.com","created_by_request_id":"r1"}"#;
        let playbook: Playbook = serde_json::from_str(text).expect("a playbook");
        let (count, region) = (&playbook.terms.parameters["count"], &playbook.terms.parameters["region"]);
        assert_eq!((count.kind, &count.default), (ParameterType::Integer, &Some(3.into())));
        assert_eq!((region.kind, region.choices.len(), &region.default), (ParameterType::Choice, 2, &None));
        assert_eq!(serde_json::to_string(&playbook).expect("plain data"), text);
    }
}
