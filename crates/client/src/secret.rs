//! Calls about secrets and the key that seals them.

use std::time::Duration;

use http::Method;
use runvoy_wire::{
    CreateSecretRequest, DeleteSecretResponse, RotateSealingKeyResponse, SaveSecretResponse, Secret, SecretResponse, SecretsResponse,
    UpdateSecretRequest,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

/// Sealing every secret anew takes its time.
const ROTATE_LIMIT: Duration = Duration::from_secs(600);

impl Client {
    /// The secrets that the caller may know of, by name, without values.
    pub async fn secrets(&self) -> Result<Vec<Secret>, ClientError> {
        Ok(self.fetch::<SecretsResponse>(&Call::get(Target::new(&["secrets"]))).await?.secrets)
    }

    /// One secret, with its value where the caller may read it.
    pub async fn secret(&self, name: &str) -> Result<Secret, ClientError> {
        Ok(self.fetch::<SecretResponse>(&Call::get(Target::new(&["secrets", name]))).await?.secret)
    }

    /// Makes a secret. A name that is taken is refused and nothing changes.
    pub async fn create_secret(&self, request: &CreateSecretRequest) -> Result<SaveSecretResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["secrets"])).json(request).keyed(fresh_id())).await
    }

    /// Changes a secret; what the request does not name stays.
    pub async fn update_secret(&self, name: &str, request: &UpdateSecretRequest) -> Result<SaveSecretResponse, ClientError> {
        self.fetch(&Call::new(Method::PUT, Target::new(&["secrets", name])).json(request)).await
    }

    /// Removes a secret.
    pub async fn delete_secret(&self, name: &str) -> Result<DeleteSecretResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["secrets", name]))).await
    }

    /// Seals every secret with a new key; only for admins. Not repeated: a second try would make one more key.
    pub async fn rotate_sealing_key(&self) -> Result<RotateSealingKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["sealing-key", "rotate"])).limit(ROTATE_LIMIT).once()).await
    }
}
