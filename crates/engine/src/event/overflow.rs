//! What was too large for an event lies in the blob store, and the event names it. Whoever may see the event may have that too: this is the one way.

use serde_json::{Value, json};

use crate::Engine;
use crate::error::EngineError;

/// Where an event says what lies elsewhere.
const OVERFLOW: &str = "_s3Overflow";

impl Engine {
    /// Puts what lies in the blob store back into an event. What is not there any more is marked as missing.
    pub async fn resolve_overflow(&self, wire: &mut Value) -> Result<(), EngineError> {
        let Some(properties) = wire.get_mut("properties").and_then(Value::as_object_mut) else { return Ok(()) };
        let Some(overflow) = properties.get(OVERFLOW) else { return Ok(()) };
        let key = overflow["key"].as_str().unwrap_or_default().to_owned();
        let field = overflow["fields"][0].as_str().unwrap_or_default().to_owned();
        let kept = match self.ports.blobs.get(&key).await? {
            Some(bytes) => serde_json::from_slice(&bytes).ok(),
            None => None,
        };
        match kept {
            Some(value) if !field.is_empty() => {
                properties.remove(OVERFLOW);
                properties.insert(field, value);
            }
            _ => properties[OVERFLOW]["missing"] = json!(true),
        }
        Ok(())
    }
}
