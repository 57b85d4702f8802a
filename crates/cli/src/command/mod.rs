//! The commands, one file each, and the way from a parsed command line to an exit code.

pub mod access;
pub mod alerts;
pub mod audit;
pub mod backup;
pub mod claim;
pub mod completion;
pub mod config;
pub mod configure;
pub mod cost;
pub mod doctor;
mod dry_run;
pub mod events;
pub mod groups;
pub mod health;
pub mod images;
pub mod job;
pub mod keys;
pub mod kill;
pub mod list;
pub mod locks;
pub mod logs;
pub mod playbook;
pub mod profile;
pub mod queues;
pub mod rerun;
pub mod rules;
pub mod run;
pub mod secrets;
pub mod status;
pub mod terms;
pub mod topic;
pub mod trace;
pub mod users;
pub mod version;
pub mod wait;
pub mod whoami;
pub mod workers;

use clap::Subcommand;

use crate::environment::Environment;
use crate::error_page;
use crate::failure::{Failure, GENERAL, PLATFORM};
use crate::global::{Format, GlobalArgs};
use crate::help;
use crate::local::LocalServer;
use crate::session::Session;
use crate::terminal::Terminal;

/// The commands of a client.
#[derive(Debug, Clone, Subcommand)]
pub enum ClientCommand {
    /// Run a command, follow its output and exit with its exit code
    Run(Box<run::RunArgs>),
    /// Show or follow the log of an execution
    Logs(logs::LogsArgs),
    /// Show the status of an execution
    Status(status::StatusArgs),
    /// List executions, newest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Kill an execution: SIGTERM, then SIGKILL
    Kill(kill::KillArgs),
    /// Wait for an execution, and exit with its exit code
    Wait(wait::WaitArgs),
    /// Run an execution again, as a new one
    Rerun(rerun::RerunArgs),
    /// Submit, watch and manage jobs: graphs of tasks
    #[command(visible_alias = "jobs")]
    Job(job::JobArgs),
    /// Show and manage queues and dead letters
    Queues(queues::QueuesArgs),
    /// Show workers and manage their accounts
    Workers(workers::WorkersArgs),
    /// Show or follow the event log
    Events(events::EventsArgs),
    /// List locks, or release one by force
    Locks(locks::LocksArgs),
    /// Run and manage playbooks: stored commands
    #[command(visible_alias = "playbooks")]
    Playbook(playbook::PlaybookArgs),
    /// Manage the images that commands run in
    Images(images::ImagesArgs),
    /// Manage secrets for commands
    Secrets(secrets::SecretsArgs),
    /// Invite, list, change and revoke users
    Users(users::UsersArgs),
    /// Create, list, rotate and revoke API keys
    Keys(keys::KeysArgs),
    /// Exchange an invitation token for your API key
    Claim(claim::ClaimArgs),
    /// Manage groups of users
    Groups(groups::GroupsArgs),
    /// Manage access rules, which narrow a role
    Rules(rules::RulesArgs),
    /// Explain why a user may do something, or not
    Access(access::AccessArgs),
    /// Sum up costs by user, image, queue, job or month
    Cost(cost::CostArgs),
    /// Search, verify and export the audit trail
    Audit(audit::AuditArgs),
    /// Show everything that a request did
    Trace(trace::TraceArgs),
    /// Find stuck tasks and repair inconsistencies
    Health(health::HealthArgs),
    /// Test whether alerts are delivered
    Alerts(alerts::AlertsArgs),
    /// Back up the local server while it runs
    Backup(backup::BackupArgs),
    /// Save the address of a server and your API key
    Configure(configure::ConfigureArgs),
    /// Show the configuration in effect
    Config(config::ConfigArgs),
    /// Switch between servers
    Profile(profile::ProfileArgs),
    /// Show your user and role
    Whoami(whoami::WhoamiArgs),
    /// Diagnose the client, the connection and the server
    Doctor(doctor::DoctorArgs),
    /// Show the versions of the client and the server
    Version(version::VersionArgs),
    /// Print a shell completion script
    Completion(completion::CompletionArgs),
    /// Exit codes
    #[command(hide = true, term_width = 0, long_about = topic::EXIT_CODES, help_template = "{about}\n")]
    ExitCodes,
    /// Environment variables and files
    #[command(hide = true, term_width = 0, long_about = topic::ENVIRONMENT, help_template = "{about}\n")]
    Environment,
    /// Global options
    #[command(hide = true, term_width = 0, help_template = "{about}\n")]
    Options,
    /// Output formats
    #[command(hide = true, term_width = 0, long_about = topic::FORMATTING, help_template = "{about}\n")]
    Formatting,
    /// The format of a job file
    #[command(hide = true, term_width = 0, long_about = job::JOB_FILE, help_template = "{about}\n")]
    JobFile,
    /// The format of a playbook file
    #[command(hide = true, term_width = 0, long_about = playbook::PLAYBOOK_FILE, help_template = "{about}\n")]
    PlaybookFile,
    /// What an error code or exit code means
    #[command(hide = true)]
    Error {
        /// Such as LOCK_HELD or 125; without it, the list of codes
        code: Option<String>,
    },
}

/// Carries out a command; gives the exit code of the process.
pub async fn execute(global: GlobalArgs, command: ClientCommand, local: &'static dyn LocalServer) -> u8 {
    let environment = Environment::from_process();
    let terminal = Terminal::of_process(global.color, &environment);
    let (json, own) = (global.format() == Format::Json, command.own_failure());
    let session = match Session::new(global.clone(), environment.clone(), terminal, local) {
        Err(failure) if command.works_without_files() => Session::without_files(global, environment, (terminal, local), &failure),
        session => session,
    };
    let outcome = match session {
        Ok(session) => {
            session.remark_on_user_file();
            command.carry_out(&session).await
        }
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| failure.tell(json, terminal.stderr_colour, own))
}

impl ClientCommand {
    /// The exit code of failures of our own: where the code is otherwise the command's, it must be told apart.
    fn own_failure(&self) -> u8 {
        match self {
            Self::Run(args) if args.is_dry() => GENERAL,
            Self::Run(_) | Self::Rerun(_) | Self::Wait(_) => PLATFORM,
            Self::Playbook(args) => args.own_failure(),
            _ => GENERAL,
        }
    }

    /// Whether it changes something on the server. `configure` and `profile` change files of this machine alone.
    fn changes(&self) -> bool {
        match self {
            Self::Run(args) => !args.is_dry(),
            Self::Logs(args) => args.changes(),
            Self::Job(args) => args.changes(),
            Self::Queues(args) => args.changes(),
            Self::Workers(args) => args.changes(),
            Self::Locks(args) => args.changes(),
            Self::Playbook(args) => args.changes(),
            Self::Images(args) => args.changes(),
            Self::Secrets(args) => args.changes(),
            Self::Users(args) => args.changes(),
            Self::Keys(args) => args.changes(),
            Self::Groups(args) => args.changes(),
            Self::Rules(args) => args.changes(),
            Self::Health(args) => args.changes(),
            Self::Kill(_) | Self::Rerun(_) | Self::Claim(_) | Self::Alerts(_) => true,
            Self::Status(_)
            | Self::List(_)
            | Self::Wait(_)
            | Self::Events(_)
            | Self::Access(_)
            | Self::Cost(_)
            | Self::Audit(_)
            | Self::Trace(_)
            | Self::Backup(_)
            | Self::Configure(_)
            | Self::Config(_)
            | Self::Profile(_)
            | Self::Whoami(_)
            | Self::Doctor(_)
            | Self::Version(_)
            | Self::Completion(_)
            | Self::ExitCodes
            | Self::Environment
            | Self::Formatting
            | Self::JobFile
            | Self::PlaybookFile
            | Self::Error { .. }
            | Self::Options => false,
        }
    }

    /// What needs nothing of the configuration, or is there to look at it.
    fn works_without_files(&self) -> bool {
        matches!(
            self,
            Self::Doctor(_)
                | Self::Version(_)
                | Self::Completion(_)
                | Self::ExitCodes
                | Self::Environment
                | Self::Formatting
                | Self::JobFile
                | Self::PlaybookFile
                | Self::Options
                | Self::Error { .. }
        )
    }

    /// The command that lists what this one is about, where that is not executions.
    fn listed_by(&self) -> Option<&'static str> {
        match self {
            Self::Job(_) => Some("runvoy job list"),
            Self::Queues(_) => Some("runvoy queues list"),
            Self::Workers(args) => Some(args.listed_by()),
            Self::Locks(_) => Some("runvoy locks list"),
            Self::Playbook(_) => Some("runvoy playbook list"),
            Self::Images(_) => Some("runvoy images list"),
            Self::Secrets(_) => Some("runvoy secrets list"),
            // Which key is meant is found out here: what a server does not find is its user.
            Self::Users(_) | Self::Keys(_) | Self::Access(_) => Some("runvoy users list"),
            Self::Groups(_) => Some("runvoy groups list"),
            Self::Rules(_) => Some("runvoy rules list"),
            Self::Audit(_) | Self::Trace(_) => Some("runvoy audit list"),
            _ => None,
        }
    }

    async fn carry_out(self, session: &Session) -> Result<u8, Failure> {
        let listed_by = self.listed_by();
        if self.changes() {
            session.confirm_profile()?;
        }
        let done = self.dispatch(session).await;
        session.remark_on_version();
        match listed_by {
            Some(command) => done.map_err(|failure| failure.listed_by(command)),
            None => done,
        }
    }

    async fn dispatch(self, session: &Session) -> Result<u8, Failure> {
        match self {
            Self::Run(args) => args.execute(session).await,
            Self::Logs(args) => args.execute(session).await,
            Self::Status(args) => args.execute(session).await,
            Self::List(args) => args.execute(session).await,
            Self::Kill(args) => args.execute(session).await,
            Self::Wait(args) => args.execute(session).await,
            Self::Rerun(args) => args.execute(session).await,
            Self::Job(args) => args.execute(session).await,
            Self::Queues(args) => args.execute(session).await,
            Self::Workers(args) => args.execute(session).await,
            Self::Events(args) => args.execute(session).await,
            Self::Locks(args) => args.execute(session).await,
            Self::Playbook(args) => args.execute(session).await,
            Self::Images(args) => args.execute(session).await,
            Self::Secrets(args) => args.execute(session).await,
            Self::Users(args) => args.execute(session).await,
            Self::Keys(args) => args.execute(session).await,
            Self::Claim(args) => args.execute(session).await,
            Self::Groups(args) => args.execute(session).await,
            Self::Rules(args) => args.execute(session).await,
            Self::Access(args) => args.execute(session).await,
            Self::Cost(args) => args.execute(session).await,
            Self::Audit(args) => args.execute(session).await,
            Self::Trace(args) => args.execute(session).await,
            Self::Health(args) => args.execute(session).await,
            Self::Alerts(args) => args.execute(session).await,
            Self::Backup(args) => args.execute(session).await,
            Self::Configure(args) => args.execute(session).await,
            Self::Config(args) => args.execute(session),
            Self::Profile(args) => args.execute(session),
            Self::Whoami(args) => args.execute(session).await,
            Self::Doctor(args) => args.execute(session).await,
            Self::Version(args) => args.execute(session).await,
            Self::Completion(args) => args.execute(session),
            Self::ExitCodes => session.print(topic::EXIT_CODES).map(|()| 0),
            Self::Environment => session.print(topic::ENVIRONMENT).map(|()| 0),
            Self::Options => session.print(&help::options()).map(|()| 0),
            Self::Formatting => session.print(topic::FORMATTING).map(|()| 0),
            Self::JobFile => session.print(job::JOB_FILE).map(|()| 0),
            Self::PlaybookFile => session.print(playbook::PLAYBOOK_FILE).map(|()| 0),
            Self::Error { code } => session.print(&error_page::page(code.as_deref())?).map(|()| 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "runvoy")]
    struct Root {
        #[command(flatten)]
        global: GlobalArgs,
        #[command(subcommand)]
        command: ClientCommand,
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Root::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_has_examples_that_parse() {
        let mut root = Root::command();
        root.build();
        assert!(check_examples(&mut root, "runvoy") > 50, "subcommands are looked at as well");
    }

    /// Looks at everything below `command`; gives how many examples there were.
    fn check_examples(command: &mut clap::Command, path: &str) -> usize {
        let mut count = 0;
        for command in command.get_subcommands_mut().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
            let path = format!("{path} {}", command.get_name());
            let help = command.render_long_help().to_string();
            assert!(help.starts_with("Examples:\n"), "{path}");
            let shown = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            assert!(shown.lines().all(|line| line.chars().count() <= 80), "{path}: an example would be wrapped");
            let examples =
                help.lines().skip(1).take_while(|line| line.starts_with("  ")).map(|line| line.split("  #").next().unwrap_or_default());
            for example in
                examples.map(str::trim).filter(|example| example.starts_with("runvoy ") && !example.contains(['|', '$', '<', '>']))
            {
                let words = split(example);
                let error = Root::try_parse_from(&words).err().map(|error| error.to_string());
                assert_eq!(error, None, "{example}");
                count += 1;
            }
            count += check_examples(command, &path);
        }
        count
    }

    /// Words of a shell line, with single quotes only.
    fn split(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                _ => words.last_mut().expect("never empty").push(c),
            }
        }
        words
    }

    #[test]
    fn a_slip_gets_a_suggestion_and_help_topics_are_found() {
        let slip = Root::try_parse_from(["runvoy", "lost"]).expect_err("no such command").to_string();
        assert!(slip.contains("similar"), "{slip}");
        for (topic, text) in [
            ("exit-codes", topic::EXIT_CODES),
            ("environment", topic::ENVIRONMENT),
            ("formatting", topic::FORMATTING),
            ("job-file", job::JOB_FILE),
            ("playbook-file", playbook::PLAYBOOK_FILE),
        ] {
            let help = Root::try_parse_from(["runvoy", "help", topic]).expect_err("help is not a command").to_string();
            assert_eq!(help.trim_end(), text.trim_end(), "{topic}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{topic} fits an ordinary terminal");
        }
    }

    #[test]
    fn global_flags_may_stand_anywhere() {
        let words = ["runvoy", "-q", "run", "echo hello", "--json", "-vv"].map(std::ffi::OsString::from).to_vec();
        let root: Root = crate::words::parse(words).expect("parses");
        assert_eq!((root.global.quiet, root.global.json, root.global.verbose), (1, true, 2));
        assert!(matches!(root.command, ClientCommand::Run(_)));
    }
}
