//! Names that users choose, and the one pattern they follow.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// Name of a lock, a queue, a secret or a task: `[A-Za-z0-9][A-Za-z0-9._/-]{0,127}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

/// The pattern of [`Name`], for schemas.
pub const NAME_PATTERN: &str = "[A-Za-z0-9][A-Za-z0-9._/-]{0,127}";
/// The pattern of an environment variable's name, for messages.
pub const ENV_NAME_PATTERN: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// A text that does not follow the pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must start with a letter or digit, and have only letters, digits and . _ / - (at most 128)")]
pub struct InvalidName;

impl Name {
    /// Checks and takes a text.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
        let text = text.into();
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = bytes.all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b));
        if first && rest && text.len() <= 128 { Ok(Self(text)) } else { Err(InvalidName) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Whether a text can name an environment variable.
pub fn is_env_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_') && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Variables that the platform itself sets; nobody may set them in a request.
pub fn is_reserved_env_name(name: &str) -> bool {
    name.starts_with("RUNVOY_") && !name.starts_with("RUNVOY_USER_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_pattern() {
        for good in ["a", "infra-prod", "team/x.y_z", "9", &"a".repeat(128)] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a b", "a\n", "ü", "a:b", &"a".repeat(129)] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn env_names_follow_their_pattern() {
        for good in ["A", "_", "a1_B"] {
            assert!(is_env_name(good), "{good}");
        }
        for bad in ["", "1A", "A-B", "A=B", "A\0", "É"] {
            assert!(!is_env_name(bad), "{bad}");
        }
    }
}
