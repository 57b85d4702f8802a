//! `secrets`: named values that commands get in their environment. A value comes from a file, from stdin or from a hidden prompt, and is
//! shown only with `--show-value`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_wire::{CreateSecretRequest, Secret, UpdateSecretRequest};

use crate::complete;
use crate::failure::Failure;
use crate::global::Format;
use crate::sanitize::Filter;
use crate::session::Session;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;
use crate::value;

const EXAMPLES: &str = "\
Examples:
  runvoy secrets create github GITHUB_TOKEN   # prompts for the value
  pass show github | runvoy secrets create github GITHUB_TOKEN
  runvoy secrets create tls TLS_KEY --value-file key.pem --use-by group:ops
  runvoy run --secret github 'gh release create v1'
  runvoy secrets get github --show-value";

/// Arguments of `secrets`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct SecretsArgs {
    #[command(subcommand)]
    command: SecretsCommand,
}

/// What to do with secrets.
#[derive(Debug, Clone, Subcommand)]
enum SecretsCommand {
    /// Create a secret: value from a file, stdin or a hidden prompt
    #[command(
        before_help = "Examples:\n  runvoy secrets create github GITHUB_TOKEN\n  runvoy secrets create tls TLS_KEY --value-file key.pem --use-by group:ops"
    )]
    Create(CreateArgs),
    /// Show a secret
    #[command(before_help = "Examples:\n  runvoy secrets get github\n  runvoy secrets get github --show-value")]
    Get {
        /// Name of the secret
        #[arg(add = ArgValueCompleter::new(complete::secrets))]
        name: String,
        /// Print the value, and nothing else
        #[arg(long)]
        show_value: bool,
    },
    /// List the secrets, without their values
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy secrets list --json")]
    List,
    /// Change a secret: its value, or only what the options name
    #[command(before_help = "Examples:\n  runvoy secrets update github                   # prompts for the value\n  \
        runvoy secrets update github --description CI  # keeps the value\n  \
        runvoy secrets update github --value-file - --use-by role:operator")]
    Update(UpdateArgs),
    /// Delete a secret
    #[command(before_help = "Examples:\n  runvoy secrets delete github --yes")]
    Delete {
        /// Name of the secret
        #[arg(add = ArgValueCompleter::new(complete::secrets))]
        name: String,
    },
    /// Encrypt all secrets with a new key
    #[command(before_help = "Examples:\n  runvoy secrets rotate-key")]
    RotateKey,
}

/// What a secret is to be. There is no flag for its value: arguments are in every process list.
#[derive(Debug, Clone, Args)]
struct CreateArgs {
    /// Name of the secret
    name: String,
    /// Environment variable that holds it in commands
    #[arg(value_name = "VARIABLE")]
    key: String,
    /// File with the value; - reads stdin
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Let a user, group:NAME or role:NAME use it
    #[arg(long, value_name = "WHO", add = ArgValueCompleter::new(complete::people))]
    use_by: Vec<String>,
}

/// What is to change.
#[derive(Debug, Clone, Args)]
struct UpdateArgs {
    /// Name of the secret
    #[arg(add = ArgValueCompleter::new(complete::secrets))]
    name: String,
    /// Environment variable that holds it in commands
    #[arg(long, value_name = "VARIABLE")]
    key: Option<String>,
    /// File with the new value; - reads stdin
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Replace who else may use it; repeatable
    #[arg(long, value_name = "WHO", add = ArgValueCompleter::new(complete::people))]
    use_by: Vec<String>,
    /// Let only its owners use it
    #[arg(long, conflicts_with = "use_by")]
    use_by_nobody: bool,
}

impl SecretsArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            SecretsCommand::List | SecretsCommand::Get { .. } => false,
            SecretsCommand::Create(_) | SecretsCommand::Update(_) | SecretsCommand::Delete { .. } | SecretsCommand::RotateKey => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            SecretsCommand::Create(args) => {
                let value = value::read(session, "the value", args.value_file.as_deref())?;
                let CreateArgs { name, key, description, use_by, .. } = args;
                let request = CreateSecretRequest { name, key_name: key, value, description, use_by };
                let answer = session.connect().await?.create_secret(&request).await?;
                session.report_on(&answer, ("secret", &request.name), &answer.message)
            }
            SecretsCommand::Get { name, show_value } => get(session, &name, show_value).await,
            SecretsCommand::List => show_all(session).await,
            SecretsCommand::Update(args) => args.execute(session).await,
            SecretsCommand::Delete { name } => {
                session.confirm(&format!("Delete secret {name}"))?;
                let answer = session.connect().await?.delete_secret(&name).await?;
                session.report_on(&answer, ("secret", &answer.name), &answer.message)
            }
            SecretsCommand::RotateKey => {
                let answer = session.connect().await?.rotate_sealing_key().await?;
                session.report(&answer, &answer.key_id, &answer.message)
            }
        }
    }
}

impl UpdateArgs {
    async fn execute(self, session: &Session) -> Result<u8, Failure> {
        let only_value = self.key.is_none() && self.description.is_none() && self.use_by.is_empty() && !self.use_by_nobody;
        let value = if only_value || self.value_file.is_some() {
            Some(value::read(session, "the new value", self.value_file.as_deref())?)
        } else {
            None
        };
        let use_by = (self.use_by_nobody || !self.use_by.is_empty()).then_some(self.use_by);
        let request = UpdateSecretRequest { key_name: self.key, value, description: self.description, use_by };
        let answer = session.connect().await?.update_secret(&self.name, &request).await?;
        session.report_on(&answer, ("secret", &self.name), &answer.message)
    }
}

async fn get(session: &Session, name: &str, show_value: bool) -> Result<u8, Failure> {
    let mut secret = session.connect().await?.secret(name).await?;
    if !show_value {
        let readable = secret.value.take().is_some();
        session.show(&secret, || vec![secret.name.clone()], || describe(&secret, readable, session.terminal.stdout_colour))?;
        return Ok(0);
    }
    let Some(value) = &secret.value else {
        return Err(Failure::other(format!("you may not read the value of secret {name}"))
            .next(format!("use it without reading it: runvoy run --secret {name} COMMAND")));
    };
    if session.format() != Format::Table {
        session.show(&secret, || vec![secret.name.clone()], String::new)?;
        return Ok(0);
    }
    let mut text = format!("{}\n", value.expose());
    if session.terminal.stdout_tty {
        let mut safe = Vec::new();
        Filter::default().push(text.as_bytes(), &mut safe);
        text = String::from_utf8_lossy(&safe).into_owned();
    }
    session.print(&text).map(|()| 0)
}

fn describe(secret: &Secret, readable: bool, colour: bool) -> String {
    let value = if readable { "******** (use --show-value to print it)" } else { "******** (you may not read it)" };
    facts(
        [
            ("secret", Some(secret.name.clone())),
            ("variable", Some(secret.key_name.clone())),
            ("value", Some(value.to_owned())),
            ("description", secret.description.clone()),
            ("owners", Some(secret.owned_by.join(" "))),
            ("used by", Some(secret.use_by.join(" "))),
            ("created", Some(format!("{} by {}", secret.created_at, secret.created_by))),
            ("updated", Some(format!("{} by {}", secret.updated_at, secret.updated_by))),
        ],
        colour,
    )
}

async fn show_all(session: &Session) -> Result<u8, Failure> {
    let mut secrets = session.connect().await?.secrets().await?;
    // A list shows no values, whatever the server sent.
    secrets.iter_mut().for_each(|secret| secret.value = None);
    let table = || {
        let row = |secret: &Secret| {
            let description = secret.description.clone().unwrap_or_default();
            vec![
                Cell::from(&secret.name),
                (&secret.key_name).into(),
                (&secret.created_by).into(),
                session.times().show(secret.updated_at).into(),
                description.into(),
            ]
        };
        list(&["SECRET", "VARIABLE", "OWNER", "UPDATED", "DESCRIPTION"], &secrets.iter().map(row).collect::<Vec<_>>(), session.terminal)
    };
    session.show(&secrets, || secrets.iter().map(|secret| secret.name.clone()).collect(), table)?;
    if secrets.is_empty() {
        session.note(Tone::Dim, "No secrets yet. Create one: runvoy secrets create NAME VARIABLE");
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Parser)]
    #[command(name = "secrets")]
    struct Root {
        #[command(flatten)]
        _secrets: SecretsArgs,
    }

    #[test]
    fn no_argument_takes_a_value() {
        for words in [
            &["secrets", "create", "n", "K", "hunter2"][..],
            &["secrets", "create", "n", "K", "--value", "hunter2"],
            &["secrets", "update", "n", "hunter2"],
        ] {
            assert!(Root::try_parse_from(words).is_err(), "{words:?}");
        }
        for command in Root::command().get_subcommands() {
            let flags: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
            assert!(!flags.contains(&"value"), "{}: {flags:?}", command.get_name());
        }
    }
}
