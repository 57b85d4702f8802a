//! Calls about the server itself and the caller.

use runvoy_wire::{DoctorResponse, Health, Whoami};

use crate::call::Call;
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

impl Client {
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
