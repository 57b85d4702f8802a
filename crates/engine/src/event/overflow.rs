//! What was too large for an event lies in the blob store, and the event names it. Whoever may see the event may have that too: this is the one way.

use runvoy_model::event::Event;
use runvoy_ports::store::StoreError;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Engine;
use crate::error::EngineError;

/// Where an event says what lies elsewhere.
const OVERFLOW: &str = "_s3Overflow";
const PROPERTIES: &str = "properties";

/// An event as it goes over the wire. What comes from the blob store is the text that lies there: it may be large, and as values it would be many
/// times larger.
#[derive(Debug)]
pub struct ShownEvent {
    wire: Value,
    resolved: Option<(String, Box<RawValue>)>,
}

impl ShownEvent {
    /// Adds a member to those of the contract.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.wire[name] = value;
        self
    }
}

impl Serialize for ShownEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Value::Object(members), Some(resolved)) = (&self.wire, &self.resolved) else { return self.wire.serialize(serializer) };
        let mut written = serializer.serialize_map(Some(members.len()))?;
        for (name, value) in members {
            match value {
                Value::Object(properties) if name == PROPERTIES => written.serialize_entry(name, &Properties { properties, resolved })?,
                _ => written.serialize_entry(name, value)?,
            }
        }
        written.end()
    }
}

struct Properties<'e> {
    properties: &'e Map<String, Value>,
    resolved: &'e (String, Box<RawValue>),
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { properties, resolved: (field, text) } = self;
        let mut written = serializer.serialize_map(Some(properties.len() + 1))?;
        for (name, value) in properties.iter().filter(|(name, _)| *name != field) {
            written.serialize_entry(name, value)?;
        }
        written.serialize_entry(field, text)?;
        written.end()
    }
}

impl Engine {
    /// An event as it is shown; with `resolve` what lies in the blob store is in it. What is not there any more is marked as missing, and what is not
    /// what was put there as damaged: neither keeps anybody from the rest.
    pub async fn show_event(&self, event: &Event, resolve: bool) -> Result<ShownEvent, EngineError> {
        let mut shown = ShownEvent { wire: self.event_wire(event), resolved: None };
        if !resolve {
            return Ok(shown);
        }
        let Some(properties) = shown.wire.get_mut(PROPERTIES).and_then(Value::as_object_mut) else { return Ok(shown) };
        let Some(overflow) = properties.get_mut(OVERFLOW) else { return Ok(shown) };
        // On the wire it may be the name of an object.
        let key = event.properties[OVERFLOW]["key"].as_str().unwrap_or_default().to_owned();
        let field = overflow["fields"][0].as_str().unwrap_or_default().to_owned();
        let found = match self.ports.blobs.get(&key).await {
            Ok(Some(bytes)) => String::from_utf8(bytes).ok().and_then(|text| RawValue::from_string(text).ok()).ok_or("damaged"),
            Ok(None) => Err("missing"),
            Err(StoreError::Damaged(error)) => {
                tracing::error!(event = %event.id, error, "what an event names is damaged");
                Err("damaged")
            }
            Err(error) => return Err(error.into()),
        };
        match found {
            Ok(text) => {
                properties.remove(OVERFLOW);
                shown.resolved = Some((field, text));
            }
            Err(how) => overflow[how] = json!(true),
        }
        Ok(shown)
    }
}
