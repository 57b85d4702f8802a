//! What tasks give each other: small data as it is, large data by way of the blob store.

use runvoy_model::hex::hex;
use runvoy_model::job::{Node, Payload, fits_inline};
use runvoy_model::json;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Engine;
use crate::error::EngineError;

/// A task as `Job Created` tells of it.
pub(super) fn told(node: &Node) -> Value {
    let mut told = json!({"taskId": node.task, "name": node.name, "dependsOn": node.depends_on});
    match &node.input {
        Some(Payload::Inline(input)) => told["input"] = input.clone(),
        Some(Payload::Blob { key, bytes }) => told["input"] = json!({"_s3Overflow": {"key": key, "bytes": bytes}}),
        None => {}
    }
    told
}

/// About how many bytes a task takes in the store.
pub(super) fn size(node: &Node) -> usize {
    let input = match &node.input {
        Some(Payload::Inline(input)) => input.to_string().len(),
        _ => 0,
    };
    let env: usize = node.spec.env.iter().map(|(name, value)| name.len() + value.len()).sum();
    let args: usize = node.spec.args.iter().flatten().map(String::len).sum();
    input + env + args + node.spec.command.len()
}

impl Engine {
    /// Data as it is kept: inline, or in the blob store.
    pub(crate) async fn payload(&self, value: &Value) -> Result<Payload, EngineError> {
        let text = serde_json::to_vec(value).expect("a JSON value can be written");
        if fits_inline(text.len(), json::opened_bytes(value)) {
            return Ok(Payload::Inline(value.clone()));
        }
        self.put_blob(text).await
    }

    /// Bytes in the blob store, under a key that is theirs alone.
    pub(crate) async fn put_blob(&self, bytes: Vec<u8>) -> Result<Payload, EngineError> {
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let (key, length) = (hex(&digest), bytes.len() as u64);
        self.ports.blobs.put(&key, bytes).await?;
        Ok(Payload::Blob { key, bytes: length })
    }
}
