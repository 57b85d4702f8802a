//! What tells a repeat of a creating request from a new one: the client's own key, and a digest of what was asked for.

use runvoy_model::chain::canonical_json;
use runvoy_model::command::SubmitKey;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::access::Caller;
use crate::error::EngineError;
use crate::request::checked_key;

/// The client's key for a request, bound to its user and to what the request says. What is secret in it must come in as a digest.
pub(crate) fn submit_key(caller: &Caller, key: Option<&str>, action: &str, asked: &Value) -> Result<Option<SubmitKey>, EngineError> {
    let Some(key) = checked_key(key.map(str::to_owned))? else { return Ok(None) };
    let mut canonical = Vec::with_capacity(256);
    canonical_json(&json!({"action": action, "asked": asked}), &mut canonical);
    Ok(Some(SubmitKey { user: caller.email.clone(), key, fingerprint: Sha256::digest(&canonical).into() }))
}
