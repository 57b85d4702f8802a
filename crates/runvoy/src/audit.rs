//! The audit trail of a data directory, proved from its files: for a server that has it open, and on the command line where none runs, or
//! none starts because the store was changed.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use runvoy_cli::GlobalArgs;
use runvoy_cli::global::Format;
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
pub fn is_about_files(global: &mut GlobalArgs) -> bool {
    let Some(path) = global.data_dir.as_ref().filter(|_| global.endpoint.is_none()) else { return false };
    let data = DataDir::new(path);
    if data.is_locked() {
        global.endpoint = Some(format!("unix:{}", data.socket().display()));
        return false;
    }
    true
}

/// Proves the trail of a directory that no server has, and says what was found; whether it is whole.
pub fn verify(data: &DataDir, format: Format) -> Result<bool> {
    if !data.store().exists() {
        bail!("{} has no store: name a server's data directory with --data-dir", data.path().display());
    }
    // No server may begin to write while its files are read.
    let _lock = data.lock()?;
    let key = keys::audit_key(data)?;
    let verdict = look(data, &key).with_context(|| format!("cannot prove the audit trail in {}", data.path().display()))?;
    let found = AuditVerification::from(verdict);
    match format {
        Format::Json => println!("{}", serde_json::to_string(&found)?),
        Format::Yaml => print!("{}", serde_saphyr::to_string(&found)?),
        Format::Name => println!("{}", if found.ok { "whole" } else { "broken" }),
        Format::Table => println!("{}", in_words(&found)),
    }
    Ok(found.ok)
}

fn in_words(found: &AuditVerification) -> String {
    let checkpoint = found.checkpoint_at.map_or_else(|| "no checkpoint yet".to_owned(), |at| format!("newest checkpoint {at}"));
    match &found.first_bad {
        None => format!("the audit trail is whole: {} events, {checkpoint}", found.checked),
        Some(bad) => {
            let id = bad.event_id.as_ref().map_or_else(String::new, |id| format!(" ({id})"));
            format!("the audit trail is not whole: event {} of {}{id} was {}: {}", bad.number, bad.entity, bad.problem, bad.message)
        }
    }
}
