//! What is too large for the bus lies in the bucket, and the event names it: `_s3Overflow {bucket, key}`, as the event contract says.

use aws_sdk_s3::primitives::ByteStream;
use runvoy_model::event::Event;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::fault::Fault;

/// The bus takes 256 KB; the contract leaves a margin.
const MOST_BYTES: usize = 200 * 1024;
const MEMBER: &str = "_s3Overflow";

/// An event as the bus carries it, and what lies elsewhere: its key and its text.
#[derive(Debug)]
pub(super) struct Carried {
    pub detail: Value,
    pub overflow: Option<(String, String)>,
}

/// An event as the bus carries it. The largest members go until the rest fits.
pub(super) fn carried(config: &Config, event: &Event) -> Carried {
    let mut detail = event.to_wire(&config.scope);
    let whole = detail.to_string().len();
    if whole <= MOST_BYTES {
        return Carried { detail, overflow: None };
    }
    let key = format!("events/{}/{}-payload.json", event.entity.id, event.id);
    let reference = json!({"bucket": config.bucket, "key": key});
    let mut payload = Map::new();
    if let Some(Value::Object(members)) = detail.get_mut("properties") {
        // What it already names elsewhere is told there too.
        payload.extend(members.remove_entry(MEMBER));
        let mut sizes: Vec<(usize, String)> = members.iter().map(|(name, value)| (value.to_string().len(), name.clone())).collect();
        sizes.sort_unstable();
        let mut left = whole;
        while left > MOST_BYTES / 2
            && let Some((bytes, name)) = sizes.pop()
        {
            left = left.saturating_sub(bytes);
            payload.extend(members.remove_entry(&name));
        }
        members.insert(MEMBER.to_owned(), reference);
    } else {
        payload.insert("properties".to_owned(), event.properties.clone());
        detail["properties"] = json!({ MEMBER: reference });
    }
    Carried { detail, overflow: Some((key, Value::Object(payload).to_string())) }
}

/// Puts what lies elsewhere; the same again changes nothing.
pub(super) async fn put(s3: &aws_sdk_s3::Client, config: &Config, key: &str, text: String) -> Result<(), Fault> {
    let body = ByteStream::from(text.into_bytes());
    let request = s3.put_object().bucket(&config.bucket).key(key).content_type("application/json").body(body);
    request.send().await.map(drop).map_err(|error| Fault::of("S3", error))
}

#[cfg(test)]
mod tests {
    use runvoy_model::event::{Entity, EntityType, EventType};
    use runvoy_model::id::Id;
    use runvoy_model::time::UnixMs;

    use super::*;

    #[test]
    fn an_event_over_the_limit_names_what_lies_elsewhere() {
        let mut event = Event {
            id: Id::from_bytes([1; 16]),
            entity: Entity { kind: EntityType::Task, id: "t1".into() },
            number: 1,
            kind: EventType::TaskCompleted,
            at: UnixMs(5),
            context: json!({}),
            properties: json!({"requestId": "t1", "output": "x".repeat(1_000)}),
            mac: [0; 32],
        };
        let config = Config::new("p");
        let small = carried(&config, &event);
        assert!(small.overflow.is_none() && small.detail == event.to_wire(&config.scope));
        event.properties["output"] = json!("x".repeat(MOST_BYTES));
        let Carried { detail, overflow } = carried(&config, &event);
        let (key, text) = overflow.expect("an overflow");
        assert_eq!(detail["properties"], json!({"requestId": "t1", MEMBER: {"bucket": "p-data", "key": key}}));
        assert_eq!(key, format!("events/t1/{}-payload.json", event.id));
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json!({"output": event.properties["output"]}));
    }
}
