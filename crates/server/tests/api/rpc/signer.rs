//! Whoever has a private key, and signs tokens with it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use runvoy_engine::WorkerRequest;
use runvoy_model::base58;
use runvoy_model::credential::PublicKey;
use runvoy_model::hex::unhex;
use serde_json::{Value, json};

use super::caller;
use crate::app::{NOW, TestApp};

/// The key of somebody.
pub struct Signer {
    pair: EcdsaKeyPair,
    key: PublicKey,
}

impl Signer {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).expect("the key");
        let mut spki = unhex::<26>("3059301306072a8648ce3d020106082a8648ce3d030107034200").expect("digits").to_vec();
        spki.extend(pair.public_key().as_ref());
        Self { pair, key: PublicKey::new(&spki).expect("a P-256 key") }
    }

    /// One whose public key is registered with a role.
    pub async fn registered(app: &TestApp, name: &str, role: &str) -> Self {
        let signer = Self::new();
        let request = WorkerRequest { name: name.to_owned(), role: Some(role.to_owned()), ..WorkerRequest::default() };
        app.engine.import_worker(&caller(app).await, &request, &signer.pem()).await.expect("imported");
        signer
    }

    /// A worker that may also submit.
    pub async fn submitting(app: &TestApp, name: &str) -> Self {
        Self::submitting_to(app, name, &[]).await
    }

    /// The same for these queues alone.
    pub async fn submitting_to(app: &TestApp, name: &str, queues: &[&str]) -> Self {
        let signer = Self::new();
        let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
        let request = WorkerRequest { name: name.to_owned(), may: vec!["submit".to_owned()], queues, ..WorkerRequest::default() };
        app.engine.import_worker(&caller(app).await, &request, &signer.pem()).await.expect("imported");
        signer
    }

    pub fn pem(&self) -> String {
        self.key.pem()
    }

    /// A token that claims to be an admin's and ends so many seconds after the beginning of the test.
    pub fn token(&self, seconds: i64) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "ES256", "kid": base58::encode(self.key.fingerprint())});
        let claims = json!({"aud": "runvoy", "exp": NOW / 1000 + seconds, "roles": ["admin"]});
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}
