//! An event as readers of the event contract know it: one item with all its keys, as the bus carries it. It is put once, by whoever comes first, the
//! publisher or a consumer of the bus.

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::time::UnixMs;
use serde_json::{Map, Number, Value};

use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::item::{Item, n, s};
use crate::table::Table;

/// DynamoDB nests 32 levels; what lies deeper is kept as its text.
const MOST_DEPTH: usize = 28;
const SECONDS_A_DAY: i64 = 86_400;

/// Puts an event as it went over the bus, with the time it was received; `false` where it is there already.
pub(super) async fn save(dynamo: &Dynamo, config: &Config, detail: &Value, received: UnixMs) -> Result<bool, Fault> {
    match dynamo.put_new(Table::Events, encode(config, detail, received)?).await {
        Ok(()) => Ok(true),
        Err(Fault::Conflict) => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn encode(config: &Config, detail: &Value, received: UnixMs) -> Result<Item, Fault> {
    let refused = |message: &str| Fault::Refused { service: "EventBridge", code: "NoEvent".to_owned(), message: message.to_owned() };
    let Value::Object(members) = detail else { return Err(refused("its detail is no object")) };
    let key = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    // Whoever may put events on the bus may not write what this program itself reads.
    if !key("PK").starts_with("TENANT#") || key("SK").is_empty() {
        return Err(refused("its keys are not those of an event: PK begins with TENANT#, and there is an SK"));
    }
    let mut item = map(members, 0);
    item.insert("receivedAt".to_owned(), n(received.0));
    if let Some(days) = config.events_ttl_days {
        let at = members.get("timestamp").and_then(Value::as_i64).map_or(received, UnixMs);
        item.insert("ttl".to_owned(), n(at.seconds().saturating_add(i64::from(days) * SECONDS_A_DAY)));
    }
    Ok(item)
}

fn map(members: &Map<String, Value>, depth: usize) -> Item {
    members.iter().map(|(name, value)| (name.clone(), attribute(value, depth + 1))).collect()
}

fn attribute(value: &Value, depth: usize) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(is) => AttributeValue::Bool(*is),
        Value::String(text) => s(text),
        Value::Number(number) => self::number(number),
        // No attribute may be without a name.
        Value::Object(members) if depth >= MOST_DEPTH || members.contains_key("") => s(value.to_string()),
        Value::Array(_) if depth >= MOST_DEPTH => s(value.to_string()),
        Value::Array(values) => AttributeValue::L(values.iter().map(|value| attribute(value, depth + 1)).collect()),
        Value::Object(members) => AttributeValue::M(map(members, depth)),
    }
}

/// DynamoDB's numbers end sooner than JSON's; what is beyond them is kept as its text.
fn number(number: &Number) -> AttributeValue {
    let size = number.as_f64().map_or(f64::INFINITY, f64::abs);
    if size == 0.0 {
        return n(0);
    }
    if (1e-129..1e125).contains(&size) { n(number) } else { s(number.to_string()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_json_holds_is_kept_within_what_an_item_holds() {
        let nested = (0..60).fold(json!(1), |inner, _| json!([inner]));
        let detail = json!({
            "PK": "TENANT#t", "SK": "TIMESTAMP#1", "timestamp": 1_000, "receivedAt": 1,
            "properties": {"small": 5e-324, "large": f64::MAX, "zero": -0.0, "exact": u64::MAX, "": 1, "deep": nested},
            "context": {"a": null, "b": [true, {"": 1}], "deep": nested},
        });
        let config = Config { events_ttl_days: Some(2), ..Config::new("p") };
        let item = encode(&config, &detail, UnixMs(77)).expect("an item");
        assert_eq!(item["receivedAt"], n(77));
        assert_eq!(item["ttl"], n(1 + 2 * 86_400));
        assert!(item["properties"].is_s(), "a member without a name");
        let context = item["context"].as_m().expect("a map");
        assert_eq!(context["b"].as_l().expect("a list")[1], s(r#"{"":1}"#));
        let (mut inner, mut depth) = (&context["deep"], 0);
        while let AttributeValue::L(values) = inner {
            (inner, depth) = (&values[0], depth + 1);
        }
        assert!(inner.is_s() && depth < 30);
        for (value, kept) in [(json!(5e-324), s("5e-324")), (json!(-0.0), n(0)), (json!(u64::MAX), n(u64::MAX)), (json!(1.5), n(1.5))] {
            assert_eq!(attribute(&value, 0), kept, "{value}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for detail in [json!([]), json!({}), json!({"PK": "TASK#1", "SK": "PLACE#1"}), json!({"PK": "TENANT#t"})] {
            assert!(matches!(encode(&Config::new("p"), &detail, UnixMs(0)), Err(Fault::Refused { .. })), "{detail}");
        }
    }
}
