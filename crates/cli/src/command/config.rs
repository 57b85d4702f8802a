//! `config show`: every setting and, on request, where it comes from. The key itself is never shown.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::Failure;
use crate::session::Session;
use crate::settings::{Origin, Settings, without_user};
use crate::table::{Cell, render};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy config show
  runvoy config show --origin   # also where each value comes from";

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

/// What to do with the configuration.
#[derive(Debug, Clone, Subcommand)]
enum ConfigCommand {
    /// Show every setting in effect
    #[command(before_help = EXAMPLES)]
    Show {
        /// Show which flag, variable or file each value comes from
        #[arg(long)]
        origin: bool,
    },
}

#[derive(Serialize)]
struct Shown {
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

impl ConfigArgs {
    pub(crate) fn execute(self, session: &Session) -> Result<u8, Failure> {
        let ConfigCommand::Show { origin } = self.command;
        let settings = shown(&session.settings, origin);
        let names = || settings.iter().map(|(name, _)| (*name).to_owned()).collect();
        let table = || {
            let row = |(name, shown): &(&str, Shown)| {
                let value = Cell::from(shown.value.as_deref().unwrap_or("-"));
                let origin = shown.origin.iter().map(|origin| Cell::new(origin, Tone::Dim));
                [Cell::new(name, Tone::Bold), value].into_iter().chain(origin).collect()
            };
            render(&[], &settings.iter().map(row).collect::<Vec<_>>(), None, session.terminal.stdout_colour)
        };
        let by_name: BTreeMap<&str, &Shown> = settings.iter().map(|(name, shown)| (*name, shown)).collect();
        session.show(&by_name, names, table)?;
        if let Some(withheld) = &session.settings.withheld {
            session.note(Tone::Warning, &format!("{withheld}, and is not used"));
        }
        Ok(0)
    }
}

fn shown(settings: &Settings, with_origin: bool) -> Vec<(&'static str, Shown)> {
    let path = |path: &std::path::Path| path.display().to_string();
    let rows: [(&'static str, Option<String>, &Origin); 6] = [
        ("api_endpoint", settings.endpoint.value.as_deref().map(without_user), &settings.endpoint.origin),
        ("api_key", settings.api_key.value.as_deref().map(mask), &settings.api_key.origin),
        ("web_url", settings.web_url.value.clone(), &settings.web_url.origin),
        ("profile", settings.profile.value.clone(), &settings.profile.origin),
        ("ca_file", settings.ca_file.value.as_deref().map(path), &settings.ca_file.origin),
        ("data_dir", settings.data_dir.value.as_deref().map(path), &settings.data_dir.origin),
    ];
    rows.into_iter().map(|(name, value, origin)| (name, Shown { value, origin: with_origin.then(|| origin.to_string()) })).collect()
}

/// Enough of a long key to recognise it, and nothing of a short one.
pub(crate) fn mask(key: &str) -> String {
    let shown: String = if key.chars().count() >= 24 { key.chars().take(6).collect() } else { String::new() };
    format!("{shown}********")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_recognised_and_not_given_away() {
        assert_eq!(mask("rv_abc0123456789012345678901234567890"), "rv_abc********");
        assert_eq!(mask("hunter2"), "********");
    }
}
