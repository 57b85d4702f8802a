//! Showing requests to whoever debugs, with every secret removed before the text is made.

use std::sync::Arc;

use serde_json::Value;

/// How much a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// One line per request.
    Brief,
    /// Headers and bodies too.
    Full,
}

/// Takes the lines.
pub type Trace = Arc<dyn Fn(Detail, &str) + Send + Sync>;

const HIDDEN: &str = "[hidden]";

/// What a token stands behind in a target or an address.
const BEFORE_TOKENS: [&str; 2] = ["token=", "/claim/"];

/// A target or address without its tokens.
pub(crate) fn without_tokens(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = BEFORE_TOKENS.iter().filter_map(|marker| rest.find(marker).map(|at| at + marker.len())).min() {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        shown.push_str(HIDDEN);
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~%+/=".contains(c))).unwrap_or(after.len());
        rest = &after[end..];
    }
    shown.push_str(rest);
    shown
}

/// A body without its secrets: values of environment variables and parameters, keys, tokens, values of secrets.
pub(crate) fn shown_body(body: &[u8]) -> String {
    const LONGEST: usize = 2_000;
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            hide(&mut value);
            let mut text = value.to_string();
            if let Some((at, _)) = text.char_indices().nth(LONGEST) {
                text.truncate(at);
                text.push('…');
            }
            text
        }
        Err(_) => format!("({} bytes)", body.len()),
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("env" | "parameters", Value::Object(values)) => values.values_mut().for_each(|value| *value = HIDDEN.into()),
                    ("api_key" | "claim_token" | "token" | "value" | "key", Value::String(_)) => *field = HIDDEN.into(),
                    _ => hide(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) if BEFORE_TOKENS.iter().any(|marker| text.contains(marker)) => *text = without_tokens(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let body = br#"{"command":"deploy","env":{"PASSWORD":"hunter2"},"api_key":"hunter2","nested":[{"value":"hunter2"}],
            "websocket_url":"ws://h/api/v1/executions/1/stream?token=hunter2&last_event_id=5"}"#;
        let shown = shown_body(body);
        assert!(!shown.contains("hunter2"), "{shown}");
        for kept in ["deploy", "PASSWORD", "last_event_id=5"] {
            assert!(shown.contains(kept), "{shown}");
        }
        assert_eq!(without_tokens("/stream?token=abc-_.~&x=token=q"), "/stream?token=[hidden]&x=token=[hidden]");
        assert_eq!(without_tokens("/api/v1/claim/abc-_?token=d"), "/api/v1/claim/[hidden]?token=[hidden]");
        assert_eq!(
            shown_body(br#"{"parameters":{"count":3,"region":"eu"}}"#),
            r#"{"parameters":{"count":"[hidden]","region":"[hidden]"}}"#
        );
        assert_eq!(shown_body(b"\xff\xfe"), "(2 bytes)");
    }
}
