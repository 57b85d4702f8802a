//! What tells a repeat of a creating request from a new one: the client's own key, and a digest of what was asked for, as it came in. What a request
//! came to is no part of it: a default, a rule or a sealing key that changed since makes no other request of it.

use hmac::{Hmac, KeyInit, Mac};
use runvoy_model::chain::canonical_json;
use runvoy_model::change::Made;
use runvoy_model::command::{Refusal, SubmitKey};
use runvoy_model::execution::Execution;
use runvoy_model::hex::hex;
use runvoy_model::job::Job;
use runvoy_model::time::UnixMs;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::request::checked_key;

/// What digests of values are made with that must not be in the store. A plain digest would let whoever reads the store try values against it.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    /// A key of its own, made from the server's signing key, which stays the same as long as the store.
    pub fn new(signing_key: &[u8; 32]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(signing_key).expect("HMAC takes keys of any length");
        mac.update(b"runvoy idempotency\0");
        Self(mac.finalize().into_bytes().into())
    }

    /// The digest of a value.
    pub(crate) fn digest(&self, value: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(value.as_bytes());
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        hex(&digest)
    }
}

/// The client's key for a request, bound to its user and to what the request says. What is secret in it must come in as a digest.
pub(crate) fn submit_key(
    caller: &Caller,
    key: Option<&str>,
    action: &str,
    asked: &impl Serialize,
) -> Result<Option<SubmitKey>, EngineError> {
    let Some(key) = checked_key(key.map(str::to_owned))? else { return Ok(None) };
    let mut canonical = Vec::with_capacity(256);
    canonical_json(&json!({"action": action, "asked": asked}), &mut canonical);
    Ok(Some(SubmitKey { user: caller.email.clone(), key, fingerprint: Sha256::digest(&canonical).into() }))
}

impl Engine {
    /// The execution that an earlier request with this key made. It is looked for before anything else is, so that a repeat is answered as the first
    /// was, whatever changed in between; the submit itself looks again.
    pub(crate) async fn submitted_before(&self, key: Option<&SubmitKey>) -> Result<Option<Execution>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        match self.ports.store.made_by(&key.user, &key.key).await? {
            None => Ok(None),
            Some((Made::Execution(id), fingerprint)) if fingerprint == key.fingerprint => {
                let execution = self.ports.store.get(id).await?;
                execution.map(Some).ok_or_else(|| EngineError::no_execution(id))
            }
            Some((made, _)) => Err(Refusal::KeyReused(made).into()),
        }
    }

    /// When an earlier request with this key made a link.
    pub(crate) async fn linked_before(&self, key: Option<&SubmitKey>) -> Result<Option<UnixMs>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        match self.ports.store.made_by(&key.user, &key.key).await? {
            None => Ok(None),
            Some((Made::Link(_, at), fingerprint)) if fingerprint == key.fingerprint => Ok(Some(at)),
            Some((made, _)) => Err(Refusal::KeyReused(made).into()),
        }
    }

    /// The job that an earlier request with this key made or moved.
    pub(crate) async fn moved_before(&self, key: Option<&SubmitKey>) -> Result<Option<Job>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        match self.ports.store.made_by(&key.user, &key.key).await? {
            None => Ok(None),
            Some((Made::Job(id), fingerprint)) if fingerprint == key.fingerprint => {
                let job = self.ports.jobs.job(id).await?;
                job.map(Some).ok_or_else(|| EngineError::NotFound { what: format!("job {id}") })
            }
            Some((made, _)) => Err(Refusal::KeyReused(made).into()),
        }
    }
}
