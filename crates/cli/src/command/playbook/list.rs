//! `playbook list`: those on the server and those in files, side by side. A file that is broken is listed with what is wrong in it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::playbook::{Found, Shelf};
use crate::session::Session;
use crate::table::{Cell, list};
use crate::terminal::Tone;

/// Arguments of `playbook list`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Only those in files, without asking the server
    #[arg(long)]
    local: bool,
}

/// A playbook, wherever it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Listed {
    name: String,
    #[serde(rename = "where")]
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ListArgs {
    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let mut listed = Vec::new();
        if !self.local {
            let asked = async { Ok::<_, Failure>(session.connect().await?.playbooks().await?) };
            let playbooks = asked.await.map_err(|failure| failure.next("list only those in files: runvoy playbook list --local"))?;
            listed.extend(playbooks.into_iter().map(|playbook| Listed {
                name: playbook.name,
                place: "server".to_owned(),
                version: Some(playbook.version),
                description: playbook.terms.description,
                path: None,
                error: None,
            }));
        }
        listed.extend(Shelf::of(&session.environment).files().iter().map(local));
        let table =
            || list(&["PLAYBOOK", "SOURCE", "VERSION", "DESCRIPTION"], &listed.iter().map(row).collect::<Vec<_>>(), session.terminal);
        session.show(&listed, || names(&listed), table)?;
        if listed.is_empty() {
            session.note(Tone::Dim, "No playbooks.");
        }
        Ok(0)
    }
}

/// Each name once, also where both the server and a file have it.
fn names(listed: &[Listed]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for listed in listed {
        if !names.contains(&listed.name) {
            names.push(listed.name.clone());
        }
    }
    names
}

fn local(found: &Found) -> Listed {
    let (description, error) = match found.read() {
        Ok(file) => (file.description, None),
        Err(failure) => (None, Some(failure.what().to_owned())),
    };
    let (name, place) = (found.name.clone(), found.place.to_string());
    Listed { name, place, version: None, description, path: Some(found.path.clone()), error }
}

fn row(listed: &Listed) -> Vec<Cell> {
    let version = listed.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
    let said = match &listed.error {
        Some(error) => Cell::new(error, Tone::Bad),
        None => listed.description.as_deref().unwrap_or_default().into(),
    };
    vec![(&listed.name).into(), (&listed.place).into(), version.into(), said]
}
