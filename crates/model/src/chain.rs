//! Tamper evidence: the events of one entity form a chain of HMACs over their canonical JSON. Whoever changes,
//! removes or reorders an event without the audit key breaks the chain at that event.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

/// The key that chains are made with.
#[derive(Clone)]
pub struct AuditKey([u8; 32]);

impl AuditKey {
    /// Wraps a key that came from the key files.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The link after `previous` for an event.
    pub fn link(&self, previous: &ChainHead, canonical: &[u8]) -> ChainHead {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(&previous.mac);
        mac.update(&(previous.count + 1).to_be_bytes());
        mac.update(canonical);
        ChainHead { count: previous.count + 1, mac: mac.finalize().into_bytes().into() }
    }

    /// The proof that whoever has this key said this. The purpose keeps it apart from every link.
    pub fn sign(&self, purpose: &str, text: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(b"runvoy ");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text);
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// The end of an entity's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChainHead {
    /// How many events it links.
    pub count: u64,
    /// The HMAC of the last one.
    #[serde(with = "crate::hex")]
    pub mac: [u8; 32],
}

/// JSON with sorted keys and no white space: the same value always gives the same bytes.
pub fn canonical_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push(b'{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                scalar(&Value::String(key.clone()), out);
                out.push(b':');
                canonical_json(&map[key], out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                canonical_json(item, out);
            }
            out.push(b']');
        }
        _ => scalar(value, out),
    }
}

fn scalar(value: &Value, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a JSON scalar can be written to memory");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let mut out = Vec::new();
        canonical_json(&json!({"b": [1, {"z": null, "a": "é\n"}], "a": true}), &mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), r#"{"a":true,"b":[1,{"a":"é\n","z":null}]}"#);
    }

    #[test]
    fn a_link_depends_on_key_order_and_content() {
        let key = AuditKey::new([7; 32]);
        let start = ChainHead::default();
        let ab = key.link(&key.link(&start, b"a"), b"b");
        assert_eq!(ab.count, 2);
        assert_ne!(ab.mac, key.link(&key.link(&start, b"b"), b"a").mac);
        assert_ne!(ab.mac, AuditKey::new([8; 32]).link(&key.link(&start, b"a"), b"b").mac);
        let text = serde_json::to_string(&ab).expect("JSON");
        assert_eq!(serde_json::from_str::<ChainHead>(&text).expect("JSON"), ab);
    }
}
