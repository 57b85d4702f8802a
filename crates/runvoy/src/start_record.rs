//! What a server was started with, kept in its data directory: where it stores everything, whether it runs commands itself, and as which users.
//! A later start that says nothing about these takes them from here. So work that was accepted to run as other users, or on other machines,
//! never runs as the server's own user because somebody left out a flag.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, write_private};
use crate::settings::{BackendName, Settings};

/// What the last start by `runvoy serve` was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    backend: String,
    worker: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_as_uids: Option<String>,
}

impl StartRecord {
    /// What these settings say.
    pub fn of(settings: &Settings) -> Self {
        let backend = match settings.backend {
            BackendName::Embedded => "embedded",
            BackendName::Aws => "aws",
        };
        Self {
            backend: backend.to_owned(),
            worker: settings.worker,
            run_as: settings.run_as.clone(),
            run_as_uids: settings.run_as_uids.map(|uids| uids.to_string()),
        }
    }

    /// The record of a data directory that `runvoy serve` has used.
    pub fn read(data: &DataDir) -> Result<Option<Self>> {
        let path = data.start_record();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let broken = || format!("{} is damaged: start with --reset-start and every setting that the server had", path.display());
        serde_json::from_str(&text).map(Some).with_context(broken)
    }

    /// Keeps it for the starts to come.
    pub fn write(&self, data: &DataDir) -> Result<()> {
        let text = serde_json::to_string(self).context("cannot write what the server was started with")?;
        write_private(&data.start_record(), format!("{text}\n").as_bytes())
    }

    /// The same as settings.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let mut values = vec![("backend", self.backend.clone()), ("worker", self.worker.to_string())];
        values.extend(self.run_as.clone().map(|user| ("run_as", user)));
        values.extend(self.run_as_uids.clone().map(|uids| ("run_as_uids", uids)));
        values
    }
}
