//! Playbooks on the server: commands that somebody trusted wrote down, with parameters that are checked and passed as data. Whoever is limited to
//! named ones can run those and nothing else.

mod quoting;
mod template;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::git::GitSource;
use crate::name::Name;
use crate::rule::shell_texts;
use crate::secret::Secret;
use crate::time::UnixMs;
use crate::{pattern, phrase};

use self::template::Part;

/// One version of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Playbook {
    /// Its name.
    pub name: Name,
    /// Rises by one with every push.
    pub version: u32,
    /// What it does.
    pub steps: PlaybookBody,
    /// Who pushed it.
    pub created_by: String,
    /// When.
    pub created_at: UnixMs,
    /// The request that pushed it.
    pub created_by_request_id: String,
    /// The first version of this playbook. One of the same name that was removed before had those below, which are nobody's to run.
    #[serde(default)]
    pub first_version: u32,
    /// The secrets that it was pushed with, the token of its repository among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
}

impl Playbook {
    /// Whether a run gets this secret: it must be the very one that whoever pushed the playbook chose, under the variable it had then. A
    /// secret that took its name since was made by somebody else.
    pub fn grants(&self, secret: &Secret) -> bool {
        self.grants.contains(&Grant::of(secret))
    }
}

/// A secret as it was when a playbook was pushed with it. Its value may change since, it may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name.
    pub secret: Name,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// When it was made.
    pub made_at: UnixMs,
    /// The request that made it.
    pub made_by_request_id: String,
}

impl Grant {
    /// The secret as it is.
    pub fn of(secret: &Secret) -> Self {
        Self {
            secret: secret.name.clone(),
            key_name: secret.key_name.clone(),
            made_at: secret.created_at,
            made_by_request_id: secret.created_by_request_id.clone(),
        }
    }
}

/// What a playbook does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaybookBody {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A shell command; or, where there are `args`, a program.
    pub command: String,
    /// Arguments. `{{name}}` in one is that parameter's value, `\{{name}}` is `{{name}}`; each stays one argument, whatever the value is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The image; absent means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Secrets to inject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Name>,
    /// A repository to clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// Seconds that an attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// The lock to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Seconds to wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<i64>,
    /// The queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// 1 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Further attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
    /// Words to find its executions by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What a worker must have to take them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_labels: BTreeMap<String, String>,
    /// Whether they run on a terminal of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// What a run may be told, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
}

/// Something that a run may be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// What it may be.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is when nobody says; without one it must be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// For texts: what they must look like, `*` and `?` as in rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// For texts: the most characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// For numbers: the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// For numbers: the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// For choices: which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// For texts: a regular expression that the whole text must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// What a value may hold that is refused otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allowance>,
}

/// What a value holds only where its parameter allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    /// A `-` at its beginning: a program would read the value as an option.
    LeadingDash,
    /// Control characters, line breaks and tabs among them.
    Control,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of a list.
    Choice,
}

/// A playbook has at most this many parameters.
pub const MOST_PARAMETERS: usize = 64;
/// The longest text that a parameter takes.
pub const MOST_VALUE_BYTES: usize = 32 * 1024;
const ENV_PREFIX: &str = "RUNVOY_PARAM_";

/// What is wrong with a playbook or with what a run of it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct InvalidPlaybook {
    /// Which part.
    pub field: String,
    /// What, and what would be right.
    pub message: String,
}

/// The parameters of one run, ready to be passed as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The arguments, each parameter in its place.
    pub args: Option<Vec<String>>,
    /// Every parameter as an environment variable: `region` is `RUNVOY_PARAM_REGION`.
    pub env: BTreeMap<String, String>,
}

impl PlaybookBody {
    /// Every secret that it uses, the token of its repository last.
    pub fn secrets_used(&self) -> impl Iterator<Item = &Name> {
        self.secrets.iter().chain(self.git.as_ref().and_then(|git| git.token.as_ref()))
    }

    /// Whether its parameters make sense. The rest is checked as a run is.
    pub fn check(&self) -> Result<(), InvalidPlaybook> {
        if self.parameters.len() > MOST_PARAMETERS {
            return Err(invalid("parameters", format!("a playbook has at most {MOST_PARAMETERS} parameters")));
        }
        for (name, parameter) in &self.parameters {
            let field = format!("parameters.{}", name.escape_default());
            if !is_parameter_name(name) {
                return Err(invalid(&field, "names must match [a-z][a-z0-9_]{0,63}"));
            }
            parameter.check(&field)?;
        }
        self.check_placeholders()?;
        self.check_shell_text()
    }

    fn check_placeholders(&self) -> Result<(), InvalidPlaybook> {
        for part in self.args.iter().flatten().flat_map(|arg| template::parts(arg)) {
            let Part::Named(whole, name) = part else { continue };
            let is_known = self.parameters.contains_key(name);
            if !is_known && template::is_exact(whole, name) {
                return Err(invalid("args", format!("there is no parameter {name}: if {whole} is meant as it is, write \\{whole}")));
            }
        }
        Ok(())
    }

    /// Whether no value becomes several words, or a part of a text that a shell runs.
    fn check_shell_text(&self) -> Result<(), InvalidPlaybook> {
        let Some(args) = &self.args else {
            return quoting::check(&self.command).map_err(|why| invalid("command", why));
        };
        let words: Vec<String> = [&self.command].into_iter().chain(args).cloned().collect();
        for text in shell_texts(&words).unwrap_or_default() {
            quoting::check(text).map_err(|why| invalid("args", why))?;
        }
        self.check_no_value_in_shell_text()
    }

    /// Whether no value is filled into a text that a shell runs. Checked for runs too: a playbook
    /// may be older than the check.
    fn check_no_value_in_shell_text(&self) -> Result<(), InvalidPlaybook> {
        let Some(args) = &self.args else { return Ok(()) };
        let words: Vec<String> = [&self.command].into_iter().chain(args).cloned().collect();
        for text in shell_texts(&words).unwrap_or_default() {
            let fills = |part: &Part<'_>| matches!(part, Part::Named(_, name) if self.parameters.contains_key(*name));
            if template::parts(text).iter().any(fills) {
                return Err(invalid(
                    "args",
                    "put a parameter into a shell text, which could run its value: write \"$RUNVOY_PARAM_NAME\" there instead",
                ));
            }
        }
        Ok(())
    }

    /// Checks what a run was told, and fills in the defaults.
    pub fn bind(&self, given: &BTreeMap<String, Value>) -> Result<Bound, InvalidPlaybook> {
        if let Some(unknown) = given.keys().find(|name| !self.parameters.contains_key(*name)) {
            let known: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
            return Err(invalid("parameters", phrase::unknown("parameter", unknown, &known)));
        }
        self.check_no_value_in_shell_text()?;
        let mut values = BTreeMap::new();
        for (name, parameter) in &self.parameters {
            let field = format!("parameters.{name}");
            let value = match given.get(name).or(parameter.default.as_ref()) {
                Some(value) => parameter.text_of(&field, value)?,
                None => return Err(invalid(&field, "is missing, and has no default")),
            };
            values.insert(name.as_str(), value);
        }
        let fill = |arg: &String| template::fill(arg, &values);
        let args = self.args.as_ref().map(|args| args.iter().map(fill).collect());
        let env = values.iter().map(|(name, value)| (format!("{ENV_PREFIX}{}", name.to_ascii_uppercase()), value.clone())).collect();
        Ok(Bound { args, env })
    }
}

impl Parameter {
    fn check(&self, field: &str) -> Result<(), InvalidPlaybook> {
        let texts = self.pattern.is_some() || self.max_length.is_some() || self.regex.is_some();
        let numbers = self.min.is_some() || self.max.is_some();
        let misplaced = match self.kind {
            ParameterKind::String if numbers => Some("min and max are for integers"),
            ParameterKind::Integer if texts => Some("pattern, regex and max_length are for strings"),
            ParameterKind::Boolean | ParameterKind::Choice if texts || numbers => {
                Some("pattern, regex, max_length, min and max do not apply to this type")
            }
            _ if self.kind != ParameterKind::Choice && !self.choices.is_empty() => Some("choices are for the type choice"),
            ParameterKind::Choice if self.choices.is_empty() || self.choices.len() > 256 => Some("1 to 256 choices are needed"),
            ParameterKind::Integer if self.min.zip(self.max).is_some_and(|(min, max)| min > max) => Some("min is greater than max"),
            _ => None,
        };
        if let Some(message) = misplaced {
            return Err(invalid(field, message));
        }
        if let Some(text) = &self.pattern {
            pattern::check(text).map_err(|error| invalid(field, error.to_string()))?;
        }
        if let Some(text) = &self.regex {
            pattern::whole_regex(text).map_err(|why| invalid(&format!("{field}.regex"), why))?;
        }
        if let Some(default) = &self.default {
            self.text_of(&format!("{field}.default"), default)?;
        }
        Ok(())
    }

    /// A value as text, if it is one that this parameter takes. A text is read as what the parameter is.
    fn text_of(&self, field: &str, value: &Value) -> Result<String, InvalidPlaybook> {
        let wrong = |message: &str| invalid(field, message);
        match (self.kind, value) {
            (ParameterKind::String, Value::String(text)) => self.checked_text(field, text),
            (ParameterKind::Choice, Value::String(text)) if self.choices.contains(text) => Ok(text.clone()),
            (ParameterKind::Choice, _) => Err(invalid(field, format!("must be {}", phrase::one_of(&self.choices)))),
            (ParameterKind::Boolean, Value::Bool(flag)) => Ok(flag.to_string()),
            (ParameterKind::Boolean, Value::String(text)) if matches!(text.as_str(), "true" | "false") => Ok(text.clone()),
            (ParameterKind::Boolean, _) => Err(wrong("must be true or false")),
            (ParameterKind::Integer, value) => {
                let number = value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                let number = number.ok_or_else(|| wrong("must be a whole number"))?;
                if self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max) {
                    let bound = |bound: Option<i64>, open: &str| bound.map_or_else(|| open.to_owned(), |bound| bound.to_string());
                    return Err(invalid(field, format!("must be from {} to {}", bound(self.min, "any"), bound(self.max, "any"))));
                }
                // A negative number looks like an option: the author says that one is meant.
                if number < 0 && self.min.is_none_or(|min| min >= 0) && !self.allow.contains(&Allowance::LeadingDash) {
                    return Err(wrong("must not be negative: the playbook allows it with a negative min, or with allow: [leading_dash]"));
                }
                Ok(number.to_string())
            }
            (ParameterKind::String, _) => Err(wrong("must be a text")),
        }
    }

    fn checked_text(&self, field: &str, text: &str) -> Result<String, InvalidPlaybook> {
        if text.contains('\0') || text.len() > MOST_VALUE_BYTES {
            return Err(invalid(field, format!("must not contain NUL and be at most {MOST_VALUE_BYTES} bytes")));
        }
        if text.starts_with('-') && !self.allow.contains(&Allowance::LeadingDash) {
            return Err(invalid(
                field,
                "must not begin with '-', which programs read as an option: the playbook allows it with allow: [leading_dash]",
            ));
        }
        if text.chars().any(char::is_control) && !self.allow.contains(&Allowance::Control) {
            return Err(invalid(
                field,
                "must not contain control characters or line breaks: the playbook allows them with allow: [control]",
            ));
        }
        if let Some(most) = self.max_length.filter(|most| text.chars().count() > *most as usize) {
            return Err(invalid(field, format!("must have at most {most} characters")));
        }
        if let Some(wanted) = self.pattern.as_deref().filter(|wanted| !pattern::matches(wanted, text)) {
            return Err(invalid(field, format!("must match {wanted}")));
        }
        if let Some(wanted) = &self.regex {
            let regex = pattern::whole_regex(wanted).map_err(|why| invalid(&format!("{field}.regex"), why))?;
            if !regex.is_match(text) {
                return Err(invalid(field, format!("must match the regular expression {wanted}")));
            }
        }
        Ok(text.to_owned())
    }
}

fn invalid(field: &str, message: impl Into<String>) -> InvalidPlaybook {
    InvalidPlaybook { field: field.to_owned(), message: message.into() }
}

fn is_parameter_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && text.len() <= 64
}

#[cfg(test)]
mod tests;
