//! What an attempt is given: the values of secrets, for the one that may have them, and what other tasks gave. The values leave this file only towards a worker that holds the lease.

use std::sync::Arc;

use runvoy_model::command::Fence;
use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::secret::{SecretUse, SecretUser};
use runvoy_ports::lease::{LeaseError, Material, Materials};
use runvoy_ports::store::StoreError;

use crate::Engine;
use crate::directory::OwnerStanding;
use crate::error::EngineError;

impl Engine {
    /// What an attempt needs, for whoever holds its lease.
    pub async fn materials(&self, fence: Fence) -> Result<Materials, LeaseError> {
        let execution = self.held(fence).await?;
        // What is left of a spec says nothing of its secrets, and its command must not run without them.
        if execution.spec.is_lost() {
            return Err(LeaseError::Unavailable("its command cannot be read now".into()));
        }
        let mut materials = Materials::default();
        for name in &execution.spec.secrets {
            materials.secrets.push(self.material(&execution, name).await?);
        }
        if let Some(token) = execution.spec.git.as_ref().and_then(|git| git.token.as_ref()) {
            materials.git_token = Some(self.material(&execution, token).await?);
        }
        match self.task_input(&execution).await {
            Ok(None) => {}
            Ok(Some((input, reserved))) => (materials.input, materials.reserved) = (Some(input), reserved.map(Arc::new)),
            Err(EngineError::Unavailable(source)) => return Err(LeaseError::Unavailable(source)),
            Err(EngineError::Damaged(what)) => return Err(LeaseError::Unavailable(Box::new(StoreError::Damaged(what)))),
            Err(error) => return Err(LeaseError::Refused(format!("its input could not be assembled: {error}"))),
        }
        Ok(materials)
    }

    /// The execution whose lease this is.
    pub(crate) async fn held(&self, fence: Fence) -> Result<Execution, LeaseError> {
        let execution = self.ports.store.get(fence.execution).await.map_err(|error| LeaseError::Unavailable(Box::new(error)))?;
        let holds = |execution: &Execution| {
            execution.lease.as_ref().is_some_and(|lease| lease.id == fence.lease && lease.attempt == fence.attempt && lease.begun)
        };
        execution.filter(holds).ok_or_else(|| LeaseError::Lost("another worker holds it now".into()))
    }

    async fn material(&self, execution: &Execution, name: &Name) -> Result<Material, LeaseError> {
        match self.open_for(execution, name).await {
            Ok(material) => Ok(material),
            Err(EngineError::Unavailable(source)) => Err(LeaseError::Unavailable(source)),
            Err(EngineError::Damaged(what)) => Err(LeaseError::Unavailable(Box::new(StoreError::Damaged(what)))),
            Err(error) => Err(LeaseError::Refused(error.to_string())),
        }
    }

    /// Opens a secret for an execution. Who submitted it may have lost the right since, or another secret may have taken its name in a playbook: then
    /// it does not start.
    async fn open_for(&self, execution: &Execution, name: &Name) -> Result<Material, EngineError> {
        let record = self.ports.records.record(Kind::Secret, name.as_str()).await?;
        let missing = || {
            let message = format!("secret {name} is gone, or may no longer be used by {}", execution.created_by);
            EngineError::conflict(message, "ask an admin for the secret")
        };
        let secret = record.as_ref().and_then(Record::secret).ok_or_else(missing)?;
        let OwnerStanding { role, groups, .. } =
            self.standing_of(&execution.created_by).await?.filter(|owner| owner.may_run).ok_or_else(missing)?;
        let granted = match &execution.spec.playbook {
            Some(run) => self.playbook_version(&run.name, run.version).await?.is_some_and(|playbook| playbook.grants(secret)),
            None => secret.allows(SecretUser { email: &execution.created_by, role, groups: &groups }, SecretUse::Inject),
        };
        if !granted {
            return Err(missing());
        }
        let value = self.open_secret(secret).await?;
        Ok(Material { name: name.clone(), key_name: secret.key_name.clone(), value })
    }

    /// The value of a secret. A key that was not seen before may have to be fetched, and nobody else waits for that.
    pub(crate) async fn open_secret(&self, secret: &runvoy_model::secret::Secret) -> Result<String, EngineError> {
        let id = secret.sealed.key_id.clone();
        let key = self.with_seal_keys(move |keys| keys.by_id(&id)).await?;
        let value = key.open(secret.name.as_str(), &secret.sealed);
        let value = value.map_err(|error| EngineError::Internal(format!("secret {}: {error}", secret.name)))?;
        String::from_utf8(value.to_vec()).map_err(|_| EngineError::Internal(format!("secret {} is not text", secret.name)))
    }
}
