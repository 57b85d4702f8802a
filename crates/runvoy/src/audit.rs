//! The audit trail of a data directory, proved from its files: for a server that has it open, and on the command line where none runs, or
//! none starts because the store was changed.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use runvoy_cli::GlobalArgs;
use runvoy_model::chain::AuditKey;
use runvoy_model::fold::Comparison;
use runvoy_model::verify::Verdict;
use runvoy_ports::store::StoreError;
use runvoy_ports::trail::AuditTrail;
use runvoy_sqlite::OpenError;
use runvoy_wire::AuditVerification;
use tokio::sync::Mutex;

use crate::data_check::check_all;
use crate::data_dir::DataDir;
use crate::keys;

/// The trail of a data directory.
pub struct StoreTrail {
    data: DataDir,
    key: AuditKey,
    /// A look at everything reads the whole store: one at a time.
    alone: Arc<Mutex<()>>,
}

impl StoreTrail {
    /// The trail of this directory.
    pub fn new(data: &DataDir, key: AuditKey) -> Self {
        Self { data: data.clone(), key, alone: Arc::default() }
    }
}

#[async_trait]
impl AuditTrail for StoreTrail {
    async fn verify(&self) -> Result<Verdict, StoreError> {
        let key = self.key.clone();
        self.look(move |data| look(data, &key)).await
    }

    async fn compare_state(&self) -> Result<Comparison, StoreError> {
        self.look(|data| runvoy_sqlite::compare_state(&data.store())).await
    }
}

impl StoreTrail {
    async fn look<T: Send + 'static>(&self, look: impl FnOnce(&DataDir) -> Result<T, OpenError> + Send + 'static) -> Result<T, StoreError> {
        let alone = Arc::clone(&self.alone).lock_owned().await;
        let data = self.data.clone();
        let looking = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, not when nobody waits for it any more.
            let _alone = alone;
            look(&data)
        });
        match looking.await {
            Ok(looked) => looked.map_err(|error| StoreError::Unavailable(Box::new(error))),
            Err(error) => Err(StoreError::Unavailable(Box::new(error))),
        }
    }
}

fn look(data: &DataDir, key: &AuditKey) -> Result<Verdict, OpenError> {
    runvoy_sqlite::verify(&data.store(), key, Some(&data.checkpoints()))
}

/// Whether a data directory is named that no server has: then its files are asked. Where one has it, that very server is.
pub fn is_about_files(global: &GlobalArgs) -> bool {
    // A second server beside the directory is refused where every command refuses it.
    let named = global.data_dir.as_ref().filter(|_| global.endpoint.is_none() && global.profile.is_none());
    named.is_some_and(|path| !DataDir::new(path).is_locked())
}

/// Proves the trail of a directory that no server has, and on demand that all kept state follows from it.
pub fn verify(data: &DataDir, with_state: bool) -> Result<AuditVerification> {
    if !data.store().exists() {
        bail!("{} has no store: choose a server's data directory with --data-dir", data.path().display());
    }
    check_all(data)?;
    // No server may begin to write while its files are read.
    let _lock = data.lock()?;
    let key = keys::audit_key(data)?;
    let verdict = look(data, &key).with_context(|| format!("cannot prove the audit trail in {}", data.path().display()))?;
    let found = AuditVerification::from(verdict);
    if !with_state {
        return Ok(found);
    }
    let compared = runvoy_sqlite::compare_state(&data.store());
    Ok(found.with_state(compared.with_context(|| format!("cannot compare the state in {}", data.path().display()))?))
}
