//! `playbook show`: what a playbook says, wherever it is.

use std::path::Path;

use clap::Args;
use clap_complete::ArgValueCompleter;
use runvoy_client::{Client, ClientError};
use runvoy_wire::{Parameter, PlaybookTerms};
use serde::Serialize;

use super::Named;
use crate::command::status::quoted;
use crate::complete;
use crate::duration::Human;
use crate::failure::Failure;
use crate::playbook::{Found, Place, Shelf};
use crate::session::Session;
use crate::table::{Cell, facts, render};
use crate::terminal::Tone;

/// Arguments of `playbook show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Name of the playbook; NAME@VERSION on the server
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::playbooks))]
    named: Named,
    /// Show the file, not the playbook on the server
    #[arg(long)]
    local: bool,
}

#[derive(Serialize)]
struct Local<'a> {
    name: &'a str,
    #[serde(rename = "where")]
    place: Place,
    path: &'a Path,
    #[serde(flatten)]
    terms: &'a PlaybookTerms,
}

impl ShowArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let colour = session.terminal.stdout_colour;
        let shelf = Shelf::of(&session.environment);
        let Named { name, version } = &self.named;
        let found = shelf.find(name)?;
        if self.local {
            return show_file(session, &must_be_there(found, &self.named)?);
        }
        let client = session.connect().await?;
        match client.playbook(name, *version).await {
            Ok(playbook) => {
                let heading = [
                    ("playbook", Some(format!("{}@{}", playbook.name, playbook.version))),
                    ("source", Some("server".to_owned())),
                    ("pushed", Some(format!("{} by {}", playbook.created_at, playbook.created_by))),
                ];
                session.show(&playbook, || vec![playbook.name.clone()], || describe(heading, &playbook.terms, colour))?;
                note_hidden(session, found);
                Ok(0)
            }
            Err(ClientError::NotFound(_)) if found.is_some() && version.is_none() => {
                show_file(session, &must_be_there(found, &self.named)?)
            }
            Err(error) => Err(not_there(&client, error, &self.named).await),
        }
    }
}

/// Why a playbook of the server was not had; where only its version is missing, that alone.
pub(super) async fn not_there(client: &Client, error: ClientError, named: &Named) -> Failure {
    let Named { name, version } = named;
    if let (ClientError::NotFound(_), Some(version)) = (&error, version)
        && let Ok(newest) = client.playbook(name, None).await
    {
        let newest = newest.version;
        return Failure::other(format!("playbook {name} has no version {version}"))
            .why(format!("its newest version is {newest}"))
            .next(format!("see it: runvoy playbook show {name}"));
    }
    error.into()
}

/// The file of a playbook that must be in one.
pub(super) fn must_be_there(found: Option<&Found>, named: &Named) -> Result<Found, Failure> {
    if named.version.is_some() {
        return Err(Failure::usage("a playbook in a file has no versions").next("omit --local, or the version after @"));
    }
    let missing = || Failure::usage(format!("no file for playbook {}", named.name)).next("list the playbooks: runvoy playbook list");
    found.cloned().ok_or_else(missing)
}

/// Says that a file of the same name was passed over.
pub(super) fn note_hidden(session: &Session, found: Option<&Found>) {
    if let Some(found) = found {
        session.note(Tone::Warning, &format!("Using the playbook on the server. For the file {} add --local.", found.path.display()));
    }
}

fn show_file(session: &Session, found: &Found) -> Result<u8, Failure> {
    let colour = session.terminal.stdout_colour;
    let terms = found.read()?.terms();
    let shown = Local { name: &found.name, place: found.place, path: &found.path, terms: &terms };
    let heading = [
        ("playbook", Some(found.name.clone())),
        ("source", Some(found.place.to_string())),
        ("file", Some(found.path.display().to_string())),
    ];
    session.show(&shown, || vec![found.name.clone()], || describe(heading, &terms, colour))?;
    Ok(0)
}

fn describe(heading: [(&'static str, Option<String>); 3], terms: &PlaybookTerms, colour: bool) -> String {
    let seconds = |seconds: u64| Human::from_ms(seconds.saturating_mul(1_000)).to_string();
    let pairs = |pairs: &std::collections::BTreeMap<String, String>| {
        Some(pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
    };
    let git = [&terms.git_repo, &terms.git_ref, &terms.git_path].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    let rows: Vec<Vec<Cell>> = terms.parameters.iter().map(|(name, parameter)| row(name, parameter)).collect();
    let described = [
        ("description", terms.description.clone()),
        ("image", terms.image.clone()),
        ("git", Some(git)),
        ("git token", terms.git_token.clone()),
        ("secrets", Some(terms.secrets.join(" "))),
        ("env", pairs(&terms.env)),
        ("timeout", terms.timeout.map(seconds)),
        ("lock", terms.lock.clone()),
        ("lock wait", terms.lock_wait.map(seconds)),
        ("queue", terms.queue.clone()),
        ("priority", terms.priority.map(|priority| priority.to_string())),
        ("retries", terms.retries.map(|retries| retries.to_string())),
        ("labels", pairs(&terms.labels)),
        ("worker labels", pairs(&terms.worker_labels)),
        ("terminal", terms.terminal.then(|| "yes".to_owned())),
        ("command", Some(quoted(&terms.command, terms.args.as_deref()))),
        ("parameters", Some(render(&[], &rows, None, false))),
    ];
    facts(heading.into_iter().chain(described), colour)
}

fn row(name: &str, parameter: &Parameter) -> Vec<Cell> {
    let mut limits = vec![parameter.kind.to_string()];
    limits.extend((!parameter.choices.is_empty()).then(|| format!("one of {}", parameter.choices.join(", "))));
    limits.extend(parameter.pattern.as_ref().map(|pattern| format!("matching {pattern}")));
    limits.extend(parameter.max_length.map(|length| format!("at most {length} characters")));
    limits.extend(parameter.min.map(|min| format!("from {min}")));
    limits.extend(parameter.max.map(|max| format!("to {max}")));
    let default = parameter.default.as_ref().map_or_else(|| "required".to_owned(), |default| format!("default {default}"));
    let variable = format!("RUNVOY_PARAM_{}", name.to_ascii_uppercase());
    let description = parameter.description.as_deref().unwrap_or_default();
    vec![name.into(), limits.join(" ").into(), default.into(), variable.into(), description.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_the_commands_as_they_are_and_each_parameter_with_its_limits() {
        let text = r#"{"description":"Deploy","command":"set -eu\nmake build\nmake deploy","env":{"REGION":"eu"},"timeout":600,"lock":"prod",
            "parameters":{"count":{"type":"integer","default":3,"min":1,"max":9},"region":{"type":"choice","choices":["eu","us"],"description":"where"}}}"#;
        let terms: PlaybookTerms = serde_json::from_str(text).expect("the contract's fields");
        let heading = [("playbook", Some("deploy@2".to_owned())), ("source", Some("server".to_owned())), ("pushed", None)];
        insta::assert_snapshot!(describe(heading, &terms, false), @r"
        playbook     deploy@2
        source       server
        description  Deploy
        env          REGION=eu
        timeout      10m 00s
        lock         prod
        command      set -eu
                     make build
                     make deploy
        parameters   count   integer from 1 to 9   default 3  RUNVOY_PARAM_COUNT
                     region  choice one of eu, us  required   RUNVOY_PARAM_REGION  where
        ");
    }
}
