//! `playbook`: stored commands. Those on the server are versioned, have checked parameters, and are what rules can limit people to; those
//! in files of the client are a convenience. A name that is both means the one on the server, unless `--local` says otherwise.

mod list;
mod push;
mod run;
mod show;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::complete;
use crate::failure::{Failure, GENERAL, PLATFORM};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  runvoy playbook list
  runvoy playbook run deploy -p region=eu        # on the server
  runvoy playbook run plan --git-ref my-branch   # from a file
  runvoy playbook push .runvoy/deploy.yaml

The format of a playbook file: runvoy help playbook-file";

/// `help playbook-file`.
pub(crate) const PLAYBOOK_FILE: &str = "\
Playbook file

  A playbook is a stored command: a file .runvoy/NAME.yaml of the project, a
  file ~/.runvoy/NAME.yaml, or a version on the server. It is YAML or JSON:

  description: Deploy a service
  image: terraform:1.9
  git_repo: https://github.com/org/infra.git
  git_ref: main
  secrets: [aws]
  env: {STAGE: prod}
  timeout: 10m
  lock: prod
  command: ./deploy
  args: ['{{service}}', '--replicas={{replicas}}']
  parameters:               # on the server only, checked before the run
    service:                # a-z, 0-9 and _
      type: string          # or integer, boolean, choice [default: string]
      pattern: 'web-*'      # strings: * and ?
      max_length: 40        # strings: characters
    replicas: {type: integer, min: 1, max: 9, default: 2}
    region: {type: choice, choices: [eu, us], default: eu}
    force: {type: boolean, default: false}

  Also: commands (a list of shell commands, run after `set -eu`, in place of
  command and args), git_path, git_token, lock_wait, queue, priority, retries,
  labels, worker_labels, terminal.

  A parameter without a default is required. The command finds each one in its
  environment (service as RUNVOY_PARAM_SERVICE), and {{service}} in an argument
  becomes its value; \\{{service}} stays as it is. In a shell command write
  \"$RUNVOY_PARAM_SERVICE\" with the double quotes.
";

const SHOW_EXAMPLES: &str = "\
Examples:
  runvoy playbook show deploy
  runvoy playbook show deploy@3 --json
  runvoy playbook show plan --local

How commands use parameters: runvoy help playbook-file";

/// Arguments of `playbook`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct PlaybookArgs {
    #[command(subcommand)]
    command: PlaybookCommand,
}

/// What to do with playbooks.
#[derive(Debug, Clone, Subcommand)]
enum PlaybookCommand {
    /// List the playbooks on the server and in files
    #[command(
        visible_alias = "ls",
        before_help = "Examples:\n  runvoy playbook list\n  runvoy playbook list --local   # files only, without asking the server"
    )]
    List(list::ListArgs),
    /// Show a playbook
    #[command(before_help = SHOW_EXAMPLES)]
    Show(show::ShowArgs),
    /// Run a playbook, follow its output and exit with its exit code
    #[command(before_help = run::EXAMPLES)]
    Run(Box<run::RunArgs>),
    /// Upload a file as the next version of a playbook
    #[command(before_help = push::EXAMPLES)]
    Push(push::PushArgs),
    /// Remove a playbook from the server, in all versions
    #[command(before_help = "Examples:\n  runvoy playbook remove deploy --yes")]
    Remove {
        /// Name of the playbook
        #[arg(add = ArgValueCompleter::new(complete::playbooks))]
        name: String,
    },
}

impl PlaybookArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            PlaybookCommand::List(_) | PlaybookCommand::Show(_) => false,
            PlaybookCommand::Run(args) => !args.is_dry(),
            PlaybookCommand::Push(_) | PlaybookCommand::Remove { .. } => true,
        }
    }

    /// The exit code of failures of our own: a run's code is otherwise the command's.
    pub(crate) fn own_failure(&self) -> u8 {
        match &self.command {
            PlaybookCommand::Run(args) if !args.is_dry() => PLATFORM,
            _ => GENERAL,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            PlaybookCommand::List(args) => args.execute(session).await,
            PlaybookCommand::Show(args) => args.execute(session).await,
            PlaybookCommand::Run(args) => args.execute(session).await,
            PlaybookCommand::Push(args) => args.execute(session).await,
            PlaybookCommand::Remove { name } => {
                session.confirm(&format!("Remove playbook {name} and all its versions from the server"))?;
                let answer = session.connect().await?.remove_playbook(&name).await?;
                session.report(&answer, &answer.name, &answer.message)
            }
        }
    }
}

/// A name, and the version of it that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    name: String,
    version: Option<u32>,
}

impl std::str::FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.rsplit_once('@') {
            None => (text, None),
            Some((name, version)) => (name, Some(version.parse().map_err(|_| "the version after @ must be a number")?)),
        };
        if name.is_empty() { Err("the name is missing") } else { Ok(Self { name: name.to_owned(), version }) }
    }
}
