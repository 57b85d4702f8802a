//! Calls about playbooks on the server.

use http::Method;
use runvoy_wire::{
    DryRunResponse, Playbook, PlaybookTerms, PlaybooksResponse, PutPlaybookResponse, RemovePlaybookResponse, RunPlaybookRequest,
    RunResponse,
};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

impl Client {
    /// The newest version of each playbook, by name.
    pub async fn playbooks(&self) -> Result<Vec<Playbook>, ClientError> {
        Ok(self.fetch::<PlaybooksResponse>(&Call::get(Target::new(&["playbooks"]))).await?.playbooks)
    }

    /// A playbook in one version; `None`: the newest.
    pub async fn playbook(&self, name: &str, version: Option<u32>) -> Result<Playbook, ClientError> {
        self.fetch(&Call::get(Target::new(&["playbooks", name]).with_some("version", version))).await
    }

    /// Pushes a playbook as its next version. A repeat after a lost answer is the same push.
    pub async fn push_playbook(&self, name: &str, terms: &PlaybookTerms) -> Result<PutPlaybookResponse, ClientError> {
        self.fetch(&Call::new(Method::PUT, Target::new(&["playbooks", name])).json(terms).keyed(fresh_id())).await
    }

    /// Removes a playbook with all its versions.
    pub async fn remove_playbook(&self, name: &str) -> Result<RemovePlaybookResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["playbooks", name]))).await
    }

    /// Runs a playbook. Repeats after a lost connection carry the same key and never run it twice.
    pub async fn run_playbook(
        &self,
        name: &str,
        request: &RunPlaybookRequest,
        idempotency_key: Option<String>,
    ) -> Result<RunResponse, ClientError> {
        let key = idempotency_key.unwrap_or_else(fresh_id);
        self.fetch(&Call::new(Method::POST, Target::new(&["playbooks", name, "run"])).json(request).keyed(key)).await
    }

    /// What a run of a playbook would be, without one.
    pub async fn dry_run_playbook(&self, name: &str, request: &RunPlaybookRequest) -> Result<DryRunResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["playbooks", name, "run"]).with("dry_run", 1)).json(request)).await
    }
}
