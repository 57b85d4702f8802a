//! Where settings are gathered from: a file, this process's environment, and what was said on its command line.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Settings, Sources};

/// The settings of this process.
pub fn gather(stored: Vec<(&'static str, String)>, file: Option<&Path>, flags: Vec<(&'static str, String)>) -> Result<Settings> {
    let file = file.map(read).transpose()?;
    let env = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    Settings::load(&Sources { stored, file, env, flags })
}

fn read(path: &Path) -> Result<(String, String)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    if Settings::file_holds_secret(&text) {
        crate::data_dir::check_private(path).context("alerts.slack_webhook_url is a secret")?;
    }
    Ok((path.display().to_string(), text))
}
