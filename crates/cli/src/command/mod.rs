//! The commands, one file each, and the way from a parsed command line to an exit code.

pub mod backup;
pub mod completion;
pub mod config;
pub mod configure;
pub mod doctor;
pub mod kill;
pub mod list;
pub mod locks;
pub mod logs;
pub mod rerun;
pub mod run;
pub mod status;
pub mod topic;
pub mod version;
pub mod wait;
pub mod whoami;

use std::io::Write as _;

use clap::Subcommand;

use crate::environment::Environment;
use crate::failure::{Failure, GENERAL, PLATFORM};
use crate::global::{Format, GlobalArgs};
use crate::local::LocalServer;
use crate::session::Session;
use crate::terminal::Terminal;

/// The commands of a client.
#[derive(Debug, Clone, Subcommand)]
pub enum ClientCommand {
    /// Run a command, follow its output and return its exit code
    Run(Box<run::RunArgs>),
    /// Show or follow the log of an execution
    Logs(logs::LogsArgs),
    /// Show where an execution is, and why
    Status(status::StatusArgs),
    /// List executions, newest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// End an execution
    Kill(kill::KillArgs),
    /// Wait until an execution ends and return its exit code
    Wait(wait::WaitArgs),
    /// Run the same work again as a new execution
    Rerun(rerun::RerunArgs),
    /// List locks, or take one away from its holder
    Locks(locks::LocksArgs),
    /// Copy the local server's store, logs and keys while it runs
    Backup(backup::BackupArgs),
    /// Store the server's address and your API key
    Configure(configure::ConfigureArgs),
    /// Show the configuration
    Config(config::ConfigArgs),
    /// Show who you are to the server
    Whoami(whoami::WhoamiArgs),
    /// Look for what is wrong between here and the server
    Doctor(doctor::DoctorArgs),
    /// Show the versions of this program and of the server
    Version(version::VersionArgs),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
    /// What the exit codes mean
    #[command(hide = true, term_width = 0, long_about = topic::EXIT_CODES, help_template = "{about}\n")]
    ExitCodes,
    /// Variables and files that are read
    #[command(hide = true, term_width = 0, long_about = topic::ENVIRONMENT, help_template = "{about}\n")]
    Environment,
    /// How data is written
    #[command(hide = true, term_width = 0, long_about = topic::FORMATTING, help_template = "{about}\n")]
    Formatting,
}

/// Carries out a command; gives the exit code of the process.
pub async fn execute(global: GlobalArgs, command: ClientCommand, local: &'static dyn LocalServer) -> u8 {
    let environment = Environment::from_process();
    let terminal = Terminal::of_process(global.color, &environment);
    let (json, own) = (global.format() == Format::Json, command.own_failure());
    let outcome = match Session::new(global, environment, terminal, local) {
        Ok(session) => {
            session.remark_on_user_file();
            command.carry_out(&session).await
        }
        Err(failure) => Err(failure),
    };
    outcome.unwrap_or_else(|failure| {
        let code = failure.exit_code(own);
        if code != 0 {
            let text = if json { failure.json() } else { failure.text(terminal.stderr_colour) };
            // There is nobody to tell that stderr is gone.
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        code
    })
}

impl ClientCommand {
    /// The exit code of failures of our own: where the code is otherwise the command's, it must be told apart.
    fn own_failure(&self) -> u8 {
        match self {
            Self::Run(_) | Self::Rerun(_) | Self::Wait(_) => PLATFORM,
            _ => GENERAL,
        }
    }

    async fn carry_out(self, session: &Session) -> Result<u8, Failure> {
        match self {
            Self::Run(args) => args.execute(session).await,
            Self::Logs(args) => args.execute(session).await,
            Self::Status(args) => args.execute(session).await,
            Self::List(args) => args.execute(session).await,
            Self::Kill(args) => args.execute(session).await,
            Self::Wait(args) => args.execute(session).await,
            Self::Rerun(args) => args.execute(session).await,
            Self::Locks(args) => args.execute(session).await,
            Self::Backup(args) => args.execute(session).await,
            Self::Configure(args) => args.execute(session).await,
            Self::Config(args) => args.execute(session),
            Self::Whoami(args) => args.execute(session).await,
            Self::Doctor(args) => args.execute(session).await,
            Self::Version(args) => args.execute(session).await,
            Self::Completion(args) => args.execute(session),
            Self::ExitCodes => session.print(topic::EXIT_CODES).map(|()| 0),
            Self::Environment => session.print(topic::ENVIRONMENT).map(|()| 0),
            Self::Formatting => session.print(topic::FORMATTING).map(|()| 0),
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
    fn the_help_of_every_command_opens_with_examples_that_parse() {
        let mut root = Root::command();
        root.build();
        for command in root.get_subcommands_mut().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
            let help = command.render_long_help().to_string();
            assert!(help.starts_with("Examples:\n"), "{}", command.get_name());
            let examples =
                help.lines().skip(1).take_while(|line| line.starts_with("  ")).map(|line| line.split("  #").next().unwrap_or_default());
            for example in examples.map(str::trim).filter(|example| example.starts_with("runvoy ") && !example.contains(['|', '$', '<'])) {
                let words = split(example);
                assert!(
                    Root::try_parse_from(&words).is_ok(),
                    "{example}: {:?}",
                    Root::try_parse_from(&words).err().map(|error| error.to_string())
                );
            }
        }
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
        for (topic, text) in [("exit-codes", topic::EXIT_CODES), ("environment", topic::ENVIRONMENT), ("formatting", topic::FORMATTING)] {
            let help = Root::try_parse_from(["runvoy", "help", topic]).expect_err("help is not a command").to_string();
            assert_eq!(help.trim_end(), text.trim_end(), "{topic}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{topic} fits an ordinary terminal");
        }
    }

    #[test]
    fn global_flags_may_stand_anywhere() {
        let root = Root::try_parse_from(["runvoy", "-q", "run", "true", "--json", "-vv"]).expect("parses");
        assert_eq!((root.global.quiet, root.global.json, root.global.verbose), (1, true, 2));
        assert!(matches!(root.command, ClientCommand::Run(_)));
    }
}
