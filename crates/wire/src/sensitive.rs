//! Text that must reach nobody but whom it is for: keys, tokens, values of secrets. JSON carries it as it is; `Debug` does not show it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A confidential text: a key, a token or the value of a secret.
// Its debug form is `[hidden]`, and it has no `Display`: showing it takes `Sensitive::expose`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
pub struct Sensitive(String);

impl Sensitive {
    /// Takes a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text itself, without a copy left here.
    pub fn into_exposed(self) -> String {
        self.0
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl From<String> for Sensitive {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Sensitive {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_and_whoever_asks_see_the_text() {
        let value = Sensitive::new("hunter2");
        assert_eq!(format!("{value:?} {:#?}", Some(&value)), "[hidden] Some(\n    [hidden],\n)");
        assert_eq!(serde_json::to_string(&value).expect("plain data"), r#""hunter2""#);
        assert_eq!(serde_json::from_str::<Sensitive>(r#""hunter2""#).expect("a text").expose(), "hunter2");
    }
}
