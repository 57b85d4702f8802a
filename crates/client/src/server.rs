//! Calls about the server itself and the caller.

use std::time::Duration;

use http::Method;
use runvoy_wire::{
    AlertTestResponse, BackupRequest, BackupResponse, DoctorResponse, Health, ReconcileResponse, RecoverRequest, RecoverResponse, Whoami,
};

use crate::call::Call;
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

/// A copy of a large store takes its time.
const BACKUP_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Looking at everything that is kept takes its time.
const RECONCILE_LIMIT: Duration = Duration::from_secs(600);

impl Client {
    /// Makes the server copy itself to a directory on its own machine. Not repeated: a second try would find the directory.
    pub async fn backup(&self, destination: &str) -> Result<BackupResponse, ClientError> {
        let request = BackupRequest { destination: destination.to_owned() };
        self.fetch(&Call::new(Method::POST, Target::new(&["backup"])).json(&request).limit(BACKUP_LIMIT).once()).await
    }

    /// Makes somebody an admin with one more key, as the owner of the server's machine: over its own socket only. Not repeated: every time makes
    /// a key.
    pub async fn recover_admin(&self, email: Option<String>) -> Result<RecoverResponse, ClientError> {
        let request = RecoverRequest { email };
        self.fetch(&Call::new(Method::POST, Target::new(&["admin", "recover"])).json(&request).once()).await
    }

    /// Whether it is there, and which version.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.fetch(&Call::get(Target::new(&["health"]))).await
    }

    /// Who the caller is.
    pub async fn whoami(&self) -> Result<Whoami, ClientError> {
        self.fetch(&Call::get(Target::new(&["whoami"]))).await
    }

    /// What the server finds about itself; only for admins.
    pub async fn doctor(&self) -> Result<DoctorResponse, ClientError> {
        self.fetch(&Call::get(Target::new(&["doctor"]))).await
    }

    /// Sends people a message that says nothing is wrong; only for admins. Not repeated: every time sends one.
    pub async fn test_alert(&self) -> Result<AlertTestResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["alerts", "test"])).once()).await
    }

    /// Looks for what is not as it should be, and repairs what can be; only for admins.
    pub async fn reconcile(&self) -> Result<ReconcileResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["health", "reconcile"])).limit(RECONCILE_LIMIT)).await
    }

    /// The description of the API.
    pub async fn openapi(&self) -> Result<serde_json::Value, ClientError> {
        self.fetch(&Call::get(Target::new(&["openapi.json"]))).await
    }

    /// The metrics in Prometheus' text form.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let answer = self.answer(&Call::get(Target::new(&["metrics"]))).await?;
        String::from_utf8(answer.body.into()).map_err(|_| self.protocol("metrics that are not text", &answer.request_id))
    }
}
