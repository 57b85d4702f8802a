//! Events as the event contract writes them. The server renders them; here they pass through unread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One immutable fact, with its index keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = Object))]
pub struct Event(pub Value);

impl Event {
    /// A text at its top: `eventType`, `entityId`, …
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// When, in Unix milliseconds.
    pub fn timestamp(&self) -> i64 {
        self.0.get("timestamp").and_then(Value::as_i64).unwrap_or_default()
    }

    /// What else is to be known.
    pub fn properties(&self) -> &Value {
        self.0.get("properties").unwrap_or(&Value::Null)
    }

    /// Where a stream of events goes on after this one. Lines of `GET /events?follow=1` carry it; it is taken out here, for it is no part of
    /// the event.
    pub fn take_cursor(&mut self) -> Option<String> {
        match self.0.as_object_mut()?.remove(CURSOR)? {
            Value::String(cursor) => Some(cursor),
            _ => None,
        }
    }
}

/// The member that a line of `GET /events?follow=1` has beside those of its event.
pub const CURSOR: &str = "cursor";
