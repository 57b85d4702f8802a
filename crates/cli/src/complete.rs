//! Completion while a line is being typed. Ids come from the server, within 200 ms or not at all; nothing is ever said or started.

use std::ffi::OsStr;
use std::time::Duration;

use clap_complete::{CompleteEnv, CompletionCandidate};
use runvoy_client::{Client, Endpoint, ListQuery, Options, Retry};

use crate::config_file::{ProjectFile, UserFile};
use crate::environment::Environment;
use crate::global::GlobalArgs;
use crate::sanitize::one_line;
use crate::settings::Sources;

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "COMPLETE";
const LIMIT: Duration = Duration::from_millis(200);
const CANDIDATES: u32 = 50;

/// Answers the shell and ends the process, if that is what it was started for. The binary calls it first of all.
pub fn answer_shell(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Ids of recent executions that begin with what was typed.
pub fn executions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    recent()
        .unwrap_or_default()
        .into_iter()
        .filter(|(id, _)| id.starts_with(typed))
        .map(|(id, help)| CompletionCandidate::new(id).help(Some(help.into())))
        .collect()
}

fn recent() -> Option<Vec<(String, String)>> {
    let client = client()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let query = ListQuery { limit: Some(CANDIDATES), ..ListQuery::default() };
    let page = runtime.block_on(async { tokio::time::timeout(LIMIT, client.list(&query)).await }).ok()?.ok()?;
    let describe = |status: &str, command: &str| format!("{} {}", status.to_ascii_lowercase(), one_line(command));
    Some(page.items.into_iter().map(|item| (item.execution_id, describe(item.status.as_str(), &item.command))).collect())
}

/// A client of the server that is configured, or of a local one that already runs.
fn client() -> Option<Client> {
    let (flags, environment) = (GlobalArgs::default(), Environment::from_process());
    let user = UserFile::load(&environment.runvoy_directory()?.join("config.yaml")).ok()?;
    let project = ProjectFile::find(&environment.directory).ok()?;
    let settings = Sources { flags: &flags, environment: &environment, project: &project, user: &user }.resolve().ok()?;
    let endpoint = match &settings.endpoint.value {
        Some(text) => text.parse().ok()?,
        None => Endpoint::Unix(settings.data_dir.value.join("sock")),
    };
    let api_key = settings.api_key.value.filter(|_| settings.endpoint.value.is_some());
    Client::new(Options { api_key, ca_file: settings.ca_file.value, retry: Retry::NONE, ..Options::new(endpoint) }).ok()
}
