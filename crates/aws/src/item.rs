//! Items as maps of attributes: written by name and type, read back or said to be damaged.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::{Fault, spot};

/// An item, or a key.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A text.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number.
pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Bytes.
pub(crate) fn b(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

/// Anything, as JSON text.
pub(crate) fn json(value: &impl Serialize) -> AttributeValue {
    s(serde_json::to_string(value).expect("model types are JSON"))
}

/// An item of these attributes.
pub(crate) fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reading an item: what is missing or of another type is damage.
pub(crate) trait Read {
    /// A text that must be there.
    fn text(&self, name: &str) -> Result<&str, Fault>;
    /// A text that may be there.
    fn text_if(&self, name: &str) -> Option<&str>;
    /// A number that must be there.
    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Fault>;
    /// A number that may be there.
    fn number_if<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Fault>;
    /// Bytes that must be there.
    fn bytes(&self, name: &str) -> Result<&[u8], Fault>;
    /// JSON that must be there.
    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault>;
}

impl Read for Item {
    fn text(&self, name: &str) -> Result<&str, Fault> {
        self.text_if(name).ok_or_else(|| missing(self, name))
    }

    fn text_if(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_s().ok().map(String::as_str)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Fault> {
        self.number_if(name)?.ok_or_else(|| missing(self, name))
    }

    fn number_if<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Fault> {
        let Some(AttributeValue::N(text)) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Fault::Damaged(format!("attribute {name} is no number of its kind: {text}")))
    }

    fn bytes(&self, name: &str) -> Result<&[u8], Fault> {
        match self.get(name) {
            Some(AttributeValue::B(bytes)) => Ok(bytes.as_ref()),
            _ => Err(missing(self, name)),
        }
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault> {
        let damaged = |error: serde_json::Error| Fault::Damaged(format!("attribute {name} cannot be read: {}", spot(&error)));
        serde_json::from_str(self.text(name)?).map_err(damaged)
    }
}

fn missing(item: &Item, name: &str) -> Fault {
    let mut names: Vec<_> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    Fault::Damaged(format!("an item has no attribute {name}, only {}", names.join(", ")))
}
