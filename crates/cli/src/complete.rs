//! Completion while a line is being typed. Ids and names come from the server that the line is for, within 200 ms or not at all; nothing
//! is ever said or started.

use std::ffi::OsStr;
use std::time::Duration;

use clap_complete::{CompleteEnv, CompletionCandidate};
use runvoy_client::{Client, ClientError, Endpoint, JobsQuery, ListQuery, Options, Retry};
use runvoy_wire::{Parameter, ParameterType};

use crate::command::users::ROLES;
use crate::command::{access, audit};
use crate::config_file::{ProjectFile, UserFile};
use crate::environment::Environment;
use crate::global::GlobalArgs;
use crate::playbook::Shelf;
use crate::sanitize::one_line;
use crate::settings::Sources;

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "COMPLETE";
const LIMIT: Duration = Duration::from_millis(200);
const CANDIDATES: u32 = 50;

/// What can be chosen, and a word about each.
type Choices = Vec<(String, String)>;

/// Answers the shell and ends the process, if that is what it was started for. The binary calls it first of all.
pub fn answer_shell(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Ids of recent executions that begin with what was typed.
pub fn executions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let query = ListQuery { limit: Some(CANDIDATES), ..ListQuery::default() };
    let describe = |status: &str, command: &str| format!("{} {}", status.to_ascii_lowercase(), one_line(command));
    let recent = |client: Client| async move {
        let page = client.list(&query).await?;
        Ok(page.items.into_iter().map(|item| (item.execution_id, describe(item.status.as_str(), &item.command))).collect())
    };
    fitting(typed, ask(recent))
}

/// E-mails of users.
pub fn users(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move { Ok(client.users().await?.into_iter().map(|user| (user.email, user.role)).collect()) };
    fitting(typed, ask(all))
}

/// Names of groups.
pub fn groups(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        Ok(client.groups().await?.into_iter().map(|group| (group.name, format!("{} members", group.members.len()))).collect())
    };
    fitting(typed, ask(all))
}

/// Names of rules.
pub fn rules(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all =
        |client: Client| async move { Ok(client.rules().await?.into_iter().map(|rule| (rule.name, rule.effect.to_string())).collect()) };
    fitting(typed, ask(all))
}

/// Names of images.
pub fn images(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move { Ok(client.images().await?.into_iter().map(|image| (image.image, image.image_id)).collect()) };
    fitting(typed, ask(all))
}

/// Names of secrets.
pub fn secrets(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all =
        |client: Client| async move { Ok(client.secrets().await?.into_iter().map(|secret| (secret.name, secret.key_name)).collect()) };
    fitting(typed, ask(all))
}

/// Names of playbooks, on the server and in files.
pub fn playbooks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        let described = |terms: runvoy_wire::PlaybookTerms| terms.description.unwrap_or_default();
        Ok(client.playbooks().await?.into_iter().map(|playbook| (playbook.name, described(playbook.terms))).collect())
    };
    let mut choices = ask(all);
    for found in Shelf::of(&Environment::from_process()).files() {
        if choices.iter().all(|(name, _)| *name != found.name) {
            choices.push((found.name.clone(), found.place.to_string()));
        }
    }
    fitting(typed, choices)
}

/// Ids of recent jobs that begin with what was typed.
pub fn jobs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let query = JobsQuery { limit: Some(CANDIDATES), ..JobsQuery::default() };
    let recent = |client: Client| async move {
        let described =
            |job: &runvoy_wire::Job| format!("{} {}", job.status.as_str().to_ascii_lowercase(), job.name.as_deref().unwrap_or_default());
        Ok(client.jobs(&query).await?.items.into_iter().map(|job| (job.job_id.clone(), described(&job))).collect())
    };
    fitting(typed, ask(recent))
}

/// Names of queues.
pub fn queues(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        Ok(client.queues().await?.into_iter().map(|queue| (queue.name, format!("{} waiting, {} dead", queue.depth, queue.dead))).collect())
    };
    fitting(typed, ask(all))
}

/// Accounts of workers, by name.
pub fn worker_accounts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        Ok(client.worker_accounts().await?.into_iter().map(|account| (account.name, account.queues.join(" "))).collect())
    };
    fitting(typed, ask(all))
}

/// Workers that are there, by name.
pub fn workers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        Ok(client.workers().await?.into_iter().map(|worker| (worker.name, worker.queues.join(" "))).collect())
    };
    fitting(typed, ask(all))
}

/// Names of locks that are held.
pub fn locks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move { Ok(client.locks().await?.into_iter().map(|lock| (lock.lock_name, lock.held_by)).collect()) };
    fitting(typed, ask(all))
}

/// First characters of keys: of the user that the line names, else one's own.
pub fn keys(typed: &OsStr) -> Vec<CompletionCandidate> {
    let user = flag_value(std::env::args(), &["--user", "-u"]);
    let all = |client: Client| async move {
        let email = match user {
            Some(email) => email,
            None => client.whoami().await?.email,
        };
        let working = client.keys(&email).await?.into_iter().filter(|key| !key.revoked);
        Ok(working.map(|key| (key.prefix, key.name.unwrap_or_default())).collect())
    };
    fitting(typed, ask(all))
}

/// Who can be let use a secret: users, groups and roles.
pub fn people(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = |client: Client| async move {
        let mut choices: Choices = client.users().await?.into_iter().map(|user| (user.email, user.role)).collect();
        choices.extend(client.groups().await?.into_iter().map(|group| (format!("group:{}", group.name), String::new())));
        Ok(choices)
    };
    let mut choices = ask(all);
    choices.extend(ROLES.iter().map(|role| (format!("role:{role}"), String::new())));
    fitting(typed, choices)
}

/// Parameters of the playbook that the line runs; where it has choices, with each.
pub fn parameters(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(name) = playbook_named(std::env::args()) else { return Vec::new() };
    let all = |client: Client| async move {
        let (name, version) = match name.split_once('@') {
            Some((name, version)) => (name, version.parse().ok()),
            None => (name.as_str(), None),
        };
        let parameters = client.playbook(name, version).await?.terms.parameters;
        Ok(parameters.iter().flat_map(|(name, parameter)| assignments(name, parameter)).collect())
    };
    fitting(typed, ask(all))
}

fn assignments(name: &str, parameter: &Parameter) -> Choices {
    let help = parameter.description.clone().unwrap_or_else(|| parameter.kind.to_string());
    let values = match parameter.kind {
        ParameterType::Choice => parameter.choices.clone(),
        ParameterType::Boolean => vec!["true".to_owned(), "false".to_owned()],
        ParameterType::String | ParameterType::Integer => vec![String::new()],
    };
    values.into_iter().map(|value| (format!("{name}={value}"), help.clone())).collect()
}

/// Actions that `access explain` can be asked about; nobody is asked.
pub fn actions(typed: &OsStr) -> Vec<CompletionCandidate> {
    fitting(typed, access::ACTIONS.map(|action| (action.to_owned(), String::new())).into())
}

/// What events of the audit trail are called, and the resources alone; nobody is asked.
pub fn audit_actions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut words: Vec<&str> = audit::ACTIONS.into_iter().flat_map(|action| [action.split('.').next().unwrap_or(action), action]).collect();
    words.sort_unstable();
    words.dedup();
    fitting(typed, words.into_iter().map(|word| (word.to_owned(), String::new())).collect())
}

/// Names of profiles; they are in the user file, and nobody is asked.
pub fn profiles(typed: &OsStr) -> Vec<CompletionCandidate> {
    let environment = Environment::from_process();
    let file = environment.runvoy_directory().and_then(|directory| UserFile::load(&directory.join("config.yaml")).ok()).unwrap_or_default();
    let described = |name: &str| file.text(Some(name), "api_endpoint").unwrap_or_default().to_owned();
    fitting(typed, file.profiles().into_iter().map(|name| (name.to_owned(), described(name))).collect())
}

fn fitting(typed: &OsStr, choices: Choices) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let fits = choices.into_iter().filter(|(name, _)| name.starts_with(typed));
    fits.map(|(name, help)| CompletionCandidate::new(one_line(&name)).help(Some(one_line(&help).into()).filter(|_| !help.is_empty())))
        .collect()
}

/// What the server says, if it says it at once.
fn ask<F>(question: impl FnOnce(Client) -> F) -> Choices
where
    F: Future<Output = Result<Choices, ClientError>>,
{
    let answer = || {
        let client = client()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async { tokio::time::timeout(LIMIT, question(client)).await }).ok()?.ok()
    };
    answer().unwrap_or_default()
}

/// A client of the server that the line names or that is configured, or of a local one that already runs.
fn client() -> Option<Client> {
    let (flags, environment) = (typed_flags(std::env::args()), Environment::from_process());
    let user = UserFile::load(&environment.user_file()).ok()?;
    let project = ProjectFile::find(&environment.directory).ok()?;
    let settings = Sources { flags: &flags, environment: &environment, project: &project, user: &user }.resolve().ok()?;
    let endpoint = match &settings.endpoint.value {
        // A profile that is not there would be answered by whatever server stands at the top of the file.
        _ if settings.profile_missing => return None,
        Some(text) => text.parse().ok()?,
        None => Endpoint::Unix(settings.data_dir.value.as_ref()?.join("sock")),
    };
    let api_key = settings.api_key.value.filter(|_| settings.endpoint.value.is_some());
    Client::new(Options { api_key, ca_file: settings.ca_file.value, retry: Retry::NONE, ..Options::new(endpoint) }).ok()
}

/// The value of a flag of the line so far.
fn flag_value(words: impl Iterator<Item = String>, names: &[&str]) -> Option<String> {
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => return Some(value.to_owned()),
            _ if names.contains(&word.as_str()) => return words.next().filter(|value| !value.is_empty()),
            _ => {}
        }
    }
    None
}

/// The playbook that the line so far runs: the first word after `run` that is no flag and no value of `-p`.
fn playbook_named(words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.skip_while(|word| word != "playbook" && word != "playbooks").skip_while(|word| word != "run").skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-p" | "--param" => drop(words.next()),
            flag if flag.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// The flags of the line so far that decide which server is meant.
fn typed_flags(words: impl Iterator<Item = String>) -> GlobalArgs {
    let mut flags = GlobalArgs::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || joined.clone().or_else(|| words.next());
        match name.as_str() {
            "--endpoint" => flags.endpoint = value(),
            "--profile" => flags.profile = value(),
            "--api-key-file" => flags.api_key_file = value().map(Into::into),
            "--ca-file" => flags.ca_file = value().map(Into::into),
            "--data-dir" => flags.data_dir = value().map(Into::into),
            _ => {}
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_decides_which_server_is_asked() {
        let words = ["runvoy", "--", "runvoy", "--profile", "prod", "status", "--endpoint=http://x", "01"];
        let flags = typed_flags(words.into_iter().map(str::to_owned));
        assert_eq!((flags.profile.as_deref(), flags.endpoint.as_deref()), (Some("prod"), Some("http://x")));
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
        assert_eq!(flag_value(line("runvoy keys -u ana@x revoke rv_"), &["--user", "-u"]).as_deref(), Some("ana@x"));
        assert_eq!(flag_value(line("runvoy keys revoke rv_ --user=bo@x"), &["--user", "-u"]).as_deref(), Some("bo@x"));
        assert_eq!(playbook_named(line("runvoy playbook run deploy@2 -p re")).as_deref(), Some("deploy@2"));
        assert_eq!(playbook_named(line("runvoy playbook run -p a=b deploy -p re")).as_deref(), Some("deploy"));
        assert_eq!(playbook_named(line("runvoy run make")), None);
        let open = typed_flags(["runvoy", "--profile"].into_iter().map(str::to_owned));
        assert_eq!(open.profile, None);
    }
}
