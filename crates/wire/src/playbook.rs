//! Playbooks on the server: stored commands with checked parameters. A new text is a new version; old ones stay.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::null_is_empty;
use crate::time::Rfc3339;

/// What a playbook does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaybookTerms {
    /// What the playbook is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The shell command to run; with `args`, the program to run.
    pub command: String,
    /// The program's arguments. With them, even with an empty list, no shell is used. `{{name}}` is
    /// replaced by the value of that parameter; each argument stays one argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image; default: the default image at the time of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A Git repository to check out first: `https://…`, `ssh://…` or `USER@HOST:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo: Option<String>,
    /// The branch, tag or commit; default: the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<String>,
    /// The directory in the repository in which the command starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_path: Option<String>,
    /// The name of the secret that holds the access token of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_token: Option<String>,
    /// The names of the secrets to add to the environment.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Environment variables.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The timeout of an attempt in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// A lock to hold while the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// How many seconds to wait for the lock; default: fail at once if it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<u64>,
    /// The queue; default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority, from 1 (first) to 5 (last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How many times to retry after a failure that a retry may fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Labels to find its executions by.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The labels that a worker must have to run it.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Run it on a pseudo-terminal without input; its output is one stream.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// The parameters of a run, by name. Values reach the command as data, never as part of a shell
    /// text.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// A parameter of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Parameter {
    /// The type of the value.
    #[serde(rename = "type", default)]
    pub kind: ParameterType,
    /// What the parameter is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value of a run that does not give one; without a default, a run must give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub default: Option<Value>,
    /// The possible values of a choice.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// A pattern with `*` and `?` that a text must match as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The maximum number of characters of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// The minimum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The maximum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// A regular expression that a text must match as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// What a value may contain that is refused otherwise.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<ParameterAllowance>,
}

/// What a value may contain only if its parameter allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ParameterAllowance {
    /// A `-` at the beginning, which programs read as an option.
    LeadingDash,
    /// Control characters, including line breaks and tabs.
    Control,
}

/// The type of a parameter.
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
    /// One of several texts.
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

/// One version of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Playbook {
    /// The playbook's name.
    pub name: String,
    /// The version, counted from 1.
    pub version: u32,
    /// What it does, in the same object.
    #[serde(flatten)]
    pub terms: PlaybookTerms,
    /// When this version was saved.
    pub created_at: Rfc3339,
    /// The user who saved it.
    #[serde(default)]
    pub created_by: String,
    /// The id of the request that saved it.
    #[serde(default)]
    pub created_by_request_id: String,
}

/// A list of playbooks, each in its newest version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaybooksResponse {
    /// The playbooks that you may run or manage.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub playbooks: Vec<Playbook>,
}

/// The result of saving a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutPlaybookResponse {
    /// The playbook's name.
    pub name: String,
    /// The version that was saved.
    pub version: u32,
    /// The result as a sentence.
    pub message: String,
}

/// The result of deleting a playbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovePlaybookResponse {
    /// The playbook's name.
    pub name: String,
    /// The result as a sentence.
    pub message: String,
}

/// A run of a playbook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunPlaybookRequest {
    /// The values by parameter. A text is converted to the type of the parameter.
    #[serde(default, deserialize_with = "null_is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: BTreeMap<String, Value>,
    /// The version; default: the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// How many seconds to wait for the lock; default: fail at once if it is held.
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
