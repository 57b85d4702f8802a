//! The audit trail of a data directory, proved from its files: for a server that has it open, and on the command line where none runs, or
//! none starts because the store was changed.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use runvoy_cli::GlobalArgs;
use runvoy_model::chain::AuditKey;
use runvoy_model::verify::Verdict;
use runvoy_ports::store::StoreError;
use runvoy_ports::trail::AuditTrail;
use runvoy_sqlite::OpenError;
use runvoy_wire::AuditVerification;
use tokio::sync::Mutex;

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
        let alone = Arc::clone(&self.alone).lock_owned().await;
        let (data, key) = (self.data.clone(), self.key.clone());
        let looking = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, not when nobody waits for it any more.
            let _alone = alone;
            look(&data, &key)
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

/// Proves the trail of a directory that no server has.
pub fn verify(data: &DataDir) -> Result<AuditVerification> {
    if !data.store().exists() {
        bail!("{} has no store: name a server's data directory with --data-dir", data.path().display());
    }
    // No server may begin to write while its files are read.
    let _lock = data.lock()?;
    let key = keys::audit_key(data)?;
    let verdict = look(data, &key).with_context(|| format!("cannot prove the audit trail in {}", data.path().display()))?;
    Ok(AuditVerification::from(verdict))
}
