//! How large an event may be. What can be large and is known before a step lies in the blob store, and its event names it (`_s3Overflow`). What is
//! made inside a step cannot be put there, for a step is pure: it is left out of the event, with a mark that says what was left out, how large it was
//! and what its digest is. Nothing goes without that mark.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::chain::canonical_json;
use crate::digest;
use crate::hex::hex;

/// An event's text is no larger than this: what lies inline, and a little around it. The buses that events travel on take 256 KB.
pub const MOST_EVENT_BYTES: usize = 240 * 1024;
/// So much of a message is kept.
pub const MOST_MESSAGE_BYTES: usize = 4 * 1024;
/// What requests and commands bring is nested no deeper than this. Readers of JSON give up at 127, and it lies in something else by then.
pub const MOST_DEPTH: usize = 64;
/// What is said of anything deeper.
pub const TOO_DEEP: &str = "nested deeper than 64 levels";
/// An event is nested no deeper than this.
pub const MOST_EVENT_DEPTH: usize = 100;
/// The member that says what was left out.
pub const CUT: &str = "_cut";

/// The canonical text of a value.
pub fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    canonical_json(value, &mut out);
    out
}

/// What stands in an event for something that was left out.
pub fn mark(text: &[u8]) -> Value {
    let digest: [u8; 32] = Sha256::digest(text).into();
    json!({"bytes": text.len(), "sha256": hex(&digest)})
}

/// How many arrays and objects lie in each other.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Leaves out the members that would make the whole deeper than `most`.
pub fn level(properties: &mut Value, most: usize) {
    if depth(properties) <= most {
        return;
    }
    let Value::Object(members) = properties else {
        *properties = json!({CUT: {"properties": mark(&text(properties))}});
        return;
    };
    let deep: Vec<String> = members.iter().filter(|(_, value)| depth(value) >= most).map(|(name, _)| name.clone()).collect();
    let mut marks = match members.remove(CUT) {
        Some(Value::Object(marks)) => marks,
        _ => Map::new(),
    };
    for name in deep {
        if let Some(value) = members.remove(&name) {
            marks.insert(name, mark(&text(&value)));
        }
    }
    members.insert(CUT.into(), Value::Object(marks));
}

/// Leaves out the largest members until the rest has `most` bytes of canonical text. The digests of what the step wrote stay: without them nobody
/// could prove its records.
pub fn cut(properties: &mut Value, most: usize) {
    let Value::Object(members) = properties else {
        let whole = text(properties);
        if whole.len() > most {
            *properties = json!({CUT: {"properties": mark(&whole)}});
        }
        return;
    };
    let mut marks = match members.remove(CUT) {
        Some(Value::Object(marks)) => marks,
        _ => Map::new(),
    };
    let mut sizes: Vec<(usize, String)> = members.iter().map(|(name, value)| (text(value).len(), name.clone())).collect();
    sizes.sort_unstable();
    let mut total: usize = sizes.iter().map(|(bytes, name)| bytes + name.len()).sum();
    sizes.retain(|(_, name)| name != digest::BODY && name != digest::BODIES);
    while total > most
        && let Some((bytes, name)) = sizes.pop()
    {
        let Some(value) = members.remove(&name) else { continue };
        total -= bytes;
        marks.insert(name, mark(&text(&value)));
    }
    if !marks.is_empty() {
        members.insert(CUT.into(), Value::Object(marks));
    }
}

/// A message as far as it is kept, with the mark of what is not.
pub fn clipped(message: &str) -> String {
    if message.len() <= MOST_MESSAGE_BYTES {
        return message.to_owned();
    }
    let kept = &message[..message.floor_char_boundary(MOST_MESSAGE_BYTES)];
    format!("{kept}… ({} bytes more)", message.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_large_goes_and_leaves_its_mark() {
        let large = "x".repeat(5_000);
        let mut properties = json!({"a": large, "b": {"c": [large, large]}, "user": "ann@x"});
        let whole = properties.clone();
        cut(&mut properties, 100_000);
        assert_eq!(properties, whole);
        cut(&mut properties, 6_000);
        assert_eq!(properties["a"], large);
        assert_eq!(properties["user"], "ann@x");
        assert!(properties.get("b").is_none());
        assert_eq!(properties[CUT]["b"], mark(&text(&whole["b"])));
        cut(&mut properties, 1_000);
        assert_eq!(properties, json!({"user": "ann@x", CUT: {"a": mark(&text(&whole["a"])), "b": mark(&text(&whole["b"]))}}));
    }

    #[test]
    fn digests_stay_however_large_the_rest_is() {
        let mut properties = json!({"text": "x".repeat(5_000), digest::BODY: "aa"});
        for number in 0..100 {
            digest::add(&mut properties, format!("key:{number}"), "b".repeat(64));
        }
        let whole = properties.clone();
        cut(&mut properties, 1_000);
        assert_eq!((&properties[digest::BODY], &properties[digest::BODIES]), (&whole[digest::BODY], &whole[digest::BODIES]));
        assert_eq!(properties[CUT], json!({"text": mark(&text(&whole["text"]))}));
    }

    #[test]
    fn what_is_nested_too_deep_goes_and_leaves_its_mark() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) });
        assert_eq!((depth(&json!("x")), depth(&json!([])), depth(&nested(7))), (0, 1, 7));
        let mut properties = json!({"output": nested(4), "attempt": 1, "deeper": nested(3)});
        let whole = properties.clone();
        level(&mut properties, 5);
        assert_eq!(properties, whole);
        level(&mut properties, 4);
        let expected = json!({"attempt": 1, "deeper": nested(3), CUT: {"output": mark(&text(&whole["output"]))}});
        assert_eq!(properties, expected);
        let mut bare = nested(7);
        level(&mut bare, 5);
        assert_eq!(bare, json!({CUT: {"properties": mark(&text(&nested(7)))}}));
    }

    #[test]
    fn a_message_is_cut_between_characters_and_says_so() {
        assert_eq!(clipped("short"), "short");
        let long = clipped(&"é".repeat(MOST_MESSAGE_BYTES));
        assert!(long.len() < MOST_MESSAGE_BYTES + 40 && long.ends_with("… (4096 bytes more)"), "{}", &long[long.len() - 40..]);
    }
}
