//! Events as the event contract writes them. The server renders them; here they pass through unread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An immutable record of something that happened, with its index keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub Value);

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Event {
    fn name() -> std::borrow::Cow<'static, str> {
        "Event".into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Event {
    /// What every event has besides its index keys.
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
        let of = |kind: Type| ObjectBuilder::new().schema_type(kind);
        let open = || of(Type::Object).additional_properties(Some(AdditionalProperties::FreeForm(true)));
        let texts = [
            ("eventType", "What happened"),
            ("entityType", "The type of the entity that it is about"),
            ("entityId", "The id of that entity"),
            ("tenantId", "The tenant"),
        ];
        let numbers = [
            ("timestamp", "When it happened, in Unix milliseconds"),
            ("receivedAt", "When it was recorded, in Unix milliseconds"),
            ("number", "Its number among the events of its entity"),
        ];
        let mut event = open().description(Some("An immutable record of something that happened, with its index keys."));
        for (name, about) in texts {
            event = event.property(name, of(Type::String).description(Some(about))).required(name);
        }
        for (name, about) in numbers {
            event = event.property(name, of(Type::Integer).description(Some(about))).required(name);
        }
        for (name, about) in [("context", "Where it comes from"), ("properties", "Further details, by type")] {
            event = event.property(name, open().description(Some(about))).required(name);
        }
        event.into()
    }
}

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
