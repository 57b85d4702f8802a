//! Calls about workers and the accounts whose keys they show.

use http::Method;
use runvoy_wire::{
    CreateWorkerRequest, CreateWorkerResponse, DrainWorkerResponse, RevokeWorkerResponse, RotateSigningKeyResponse, Worker, WorkerAccount,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

impl Client {
    /// Every worker that was heard of within a day, by name.
    pub async fn workers(&self) -> Result<Vec<Worker>, ClientError> {
        Ok(self.fetch::<Option<Vec<Worker>>>(&Call::get(Target::new(&["workers"]))).await?.unwrap_or_default())
    }

    /// Every account of workers, by name; only for admins.
    pub async fn worker_accounts(&self) -> Result<Vec<WorkerAccount>, ClientError> {
        Ok(self.fetch::<Option<Vec<WorkerAccount>>>(&Call::get(Target::new(&["workers", "accounts"]))).await?.unwrap_or_default())
    }

    /// Makes an account of workers. A key in the answer is given once.
    pub async fn create_worker(&self, request: &CreateWorkerRequest) -> Result<CreateWorkerResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["workers", "accounts"])).json(request).keyed(fresh_id())).await
    }

    /// Gives an account another key, which is given once; the one before ends in the same step.
    pub async fn rotate_worker(&self, name: &str) -> Result<CreateWorkerResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["workers", "accounts", name, "rotate"])).keyed(fresh_id())).await
    }

    /// Has a worker finish what it runs and take nothing new.
    pub async fn drain_worker(&self, name: &str) -> Result<DrainWorkerResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["workers", name, "drain"])).keyed(fresh_id())).await
    }

    /// Has a drained worker take work again.
    pub async fn resume_worker(&self, name: &str) -> Result<DrainWorkerResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["workers", name, "resume"])).keyed(fresh_id())).await
    }

    /// Makes a new key that signs the task tokens of new leases; only for admins. Not repeated: a second try would make one more key.
    pub async fn rotate_signing_key(&self) -> Result<RotateSigningKeyResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["signing-key", "rotate"])).once()).await
    }

    /// Ends the key of an account.
    pub async fn revoke_worker(&self, name: &str) -> Result<RevokeWorkerResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["workers", "accounts", name]))).await
    }
}
