//! `profile`: the servers of the user file by name, and which of them commands talk to.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use serde::Serialize;

use super::config::mask;
use crate::complete;
use crate::config_file::UserFile;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Origin;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy configure --profile prod --endpoint https://runvoy.example.com
  runvoy profile list
  runvoy profile use prod
  runvoy profile show prod
  runvoy --profile test run 'make test'   # for one command";

/// Arguments of `profile`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

/// What to do with profiles.
#[derive(Debug, Clone, Subcommand)]
enum ProfileCommand {
    /// List the profiles
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy profile list --json")]
    List,
    /// Choose the profile that commands use
    #[command(before_help = "Examples:\n  runvoy profile use prod\n  runvoy profile use --none   # the settings outside all profiles")]
    Use {
        /// Name of the profile
        #[arg(required_unless_present = "none", add = ArgValueCompleter::new(complete::profiles))]
        name: Option<String>,
        /// Use no profile
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// Show a profile, without its key
    #[command(before_help = "Examples:\n  runvoy profile show\n  runvoy profile show prod")]
    Show {
        /// Name of the profile [default: the one in use]
        #[arg(add = ArgValueCompleter::new(complete::profiles))]
        name: Option<String>,
    },
}

/// A profile as it is shown. The key is never in it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Shown {
    /// Absent: what stands at the top of the file, outside of every profile.
    name: Option<String>,
    api_endpoint: Option<String>,
    /// Enough of the key to recognise it.
    api_key: Option<String>,
    web_url: Option<String>,
    ca_file: Option<String>,
    in_use: bool,
}

impl Shown {
    fn of(file: &UserFile, name: Option<&str>, in_use: Option<&str>) -> Self {
        let text = |key| file.text(name, key).map(str::to_owned);
        Self {
            name: name.map(str::to_owned),
            api_endpoint: text("api_endpoint"),
            api_key: file.text(name, "api_key").map(mask),
            web_url: text("web_url"),
            ca_file: text("ca_file"),
            in_use: name == in_use,
        }
    }

    fn is_empty(&self) -> bool {
        self.api_endpoint.is_none() && self.api_key.is_none()
    }

    fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("(none)")
    }
}

impl ProfileArgs {
    pub(crate) fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            ProfileCommand::List => show_all(session),
            ProfileCommand::Use { name, .. } => choose(session, name.as_deref()),
            ProfileCommand::Show { name } => {
                let in_use = session.settings.profile.value.as_deref();
                let name = name.as_deref().or(in_use);
                must_exist(session, name)?;
                let shown = Shown::of(&session.user_file, name, in_use);
                session.show(&shown, || vec![shown.label().to_owned()], || describe(&shown, session.terminal.stdout_colour))?;
                Ok(0)
            }
        }
    }
}

fn must_exist(session: &Session, name: Option<&str>) -> Result<(), Failure> {
    match name {
        Some(name) if !session.user_file.has_profile(name) => {
            let known = session.user_file.profiles().join(", ");
            let failure = Failure::usage(format!("no profile `{name}` in {}", session.user_file.path.display()));
            let failure = if known.is_empty() { failure } else { failure.why(format!("the profiles are: {known}")) };
            Err(failure.next(format!("create it: runvoy configure --profile {name}")))
        }
        _ => Ok(()),
    }
}

fn choose(session: &Session, name: Option<&str>) -> Result<u8, Failure> {
    must_exist(session, name)?;
    let mut file = session.user_file.clone();
    file.set(None, "profile", name)?;
    file.save()?;
    let chosen = Shown::of(&file, name, name);
    let endpoint = chosen.api_endpoint.as_deref().unwrap_or("the local server");
    session.report(&chosen, chosen.label(), &format!("Commands now use {endpoint}, profile {}.", chosen.label()))?;
    // What is stronger than the user file stays stronger.
    if matches!(session.settings.profile.origin, Origin::Flag(_) | Origin::Variable(_) | Origin::Project(_)) {
        let stronger = session.settings.profile.value.as_deref().unwrap_or_default();
        session.note(Tone::Warning, &format!("Here profile {stronger} still applies: {}", session.settings.profile.origin));
    }
    Ok(0)
}

fn show_all(session: &Session) -> Result<u8, Failure> {
    let (file, in_use) = (&session.user_file, session.settings.profile.value.as_deref());
    let top = Some(Shown::of(file, None, in_use)).filter(|top| !top.is_empty());
    let named = file.profiles().into_iter().map(|name| Shown::of(file, Some(name), in_use));
    let profiles: Vec<Shown> = top.into_iter().chain(named).collect();
    let table = || {
        let row = |shown: &Shown| {
            let mark = if shown.in_use { Cell::new("*", Tone::Good) } else { Cell::from("") };
            let endpoint = shown.api_endpoint.as_deref().unwrap_or("-");
            vec![mark, shown.label().into(), endpoint.into(), shown.api_key.as_deref().unwrap_or("-").into()]
        };
        list(&["", "PROFILE", "ENDPOINT", "KEY"], &profiles.iter().map(row).collect::<Vec<_>>(), session.terminal)
    };
    session.show(&profiles, || profiles.iter().filter_map(|shown| shown.name.clone()).collect(), table)?;
    if profiles.is_empty() {
        session.note(Tone::Dim, "No profiles. Create one: runvoy configure --profile NAME");
    }
    Ok(0)
}

fn describe(shown: &Shown, colour: bool) -> String {
    facts(
        [
            ("profile", Some(shown.label().to_owned())),
            ("in use", Some(if shown.in_use { "yes" } else { "no" }.to_owned())),
            ("endpoint", shown.api_endpoint.clone()),
            ("key", shown.api_key.clone()),
            ("web page", shown.web_url.clone()),
            ("ca file", shown.ca_file.clone()),
        ],
        colour,
    )
}
