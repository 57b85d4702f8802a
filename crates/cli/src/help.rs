//! How `--help` is laid out: what a command does, its usage, examples, arguments and options. The
//! commands are grouped, and the global options are in one place, `runvoy help options`. It changes
//! only what is printed, never what is parsed.

use clap::{Args as _, Command};

use crate::command::terms::HEADING as TERMS_HEADING;
use crate::global::GlobalArgs;

/// The commands by topic. A test holds this list to the commands that there are.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run and watch", &["run", "logs", "status", "list", "wait", "kill", "rerun", "playbook", "events"]),
    ("Jobs and queues", &["job", "queues", "workers", "locks", "images"]),
    ("People and access", &["users", "groups", "rules", "access", "secrets", "keys", "claim", "whoami"]),
    ("Operate", &["audit", "trace", "health", "alerts", "doctor", "backup", "restore", "admin"]),
    ("Set up", &["serve", "worker", "configure", "config", "profile", "completion", "version"]),
];

const EXAMPLES: &str = "\
Examples:
  runvoy run 'make deploy'                       run a command, follow it
  runvoy run --lock prod --wait 10m 'make apply' one at a time
  runvoy logs -f 4f2a9c                          six digits of an id are enough
  runvoy job submit build.yaml --follow          run a graph of commands";

const TOPICS: &str = "\
Details: runvoy COMMAND --help
Topics:  runvoy help options | exit-codes | environment | formatting | error
         runvoy help job-file | playbook-file";

/// Lays out the help of the program and of all its commands.
pub(crate) fn arrange(root: Command) -> Command {
    let globals: Vec<_> = root.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().clone()).collect();
    let root = globals.into_iter().fold(root, |root, id| root.mut_arg(id, |arg| arg.hide(true)));
    let groups = groups(&root);
    root.mut_subcommands(|command| lay_out(command, ""))
        .help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{EXAMPLES}\n\n{groups}{TOPICS}\n"))
}

/// How a command is laid out. Clap ends the examples with an empty line.
const COMMAND: &str = "{about}\n\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The options that every command takes: the text of `help options`.
pub(crate) fn options() -> String {
    let command = GlobalArgs::augment_args(Command::new("runvoy")).disable_help_flag(true);
    let mut command = command
        .next_help_heading(None)
        .help_template("Global options\n\nEvery command takes them, before or after its name.\n\n{options}")
        .term_width(80);
    command.render_help().to_string().replace("Global options:\n", "")
}

/// One line in the help of a command instead of the global options. A topic is all text.
fn lay_out(command: Command, parent: &str) -> Command {
    match command.get_name() {
        "options" => return command.long_about(options()),
        _ if command.is_hide_set() => return command,
        _ => {}
    }
    let command = if (parent, command.get_name()) == ("playbook", "run") { without_terms(command) } else { command };
    let line = "Global options: runvoy help options";
    let after = match command.get_after_help() {
        Some(after) => format!("{after}\n\n{line}"),
        None => line.to_owned(),
    };
    let name = command.get_name().to_owned();
    command.after_help(after).help_template(COMMAND).mut_subcommands(|command| lay_out(command, &name))
}

/// `playbook run` takes the options of `run` too: they are named there, and not listed twice.
fn without_terms(command: Command) -> Command {
    let is_term = |arg: &clap::Arg| arg.get_help_heading() == Some(TERMS_HEADING) || arg.is_last_set();
    command.mut_args(|arg| if is_term(&arg) { arg.hide(true) } else { arg })
}

fn groups(root: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let commands: Vec<_> = names.iter().filter_map(|name| root.find_subcommand(name)).collect();
        if commands.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}:\n"));
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:<11} {about}\n", command.get_name()));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::ClientCommand;

    #[derive(Debug, Parser)]
    #[command(name = "runvoy", about = "Run commands")]
    struct Root {
        #[command(flatten)]
        global: GlobalArgs,
        #[command(subcommand)]
        command: ClientCommand,
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let mut here: Vec<String> =
            Root::command().get_subcommands().filter(|command| !command.is_hide_set()).map(|c| c.get_name().to_owned()).collect();
        // The binary adds these.
        here.extend(["serve", "worker", "restore", "admin"].map(str::to_owned));
        here.sort_unstable();
        assert_eq!(here, grouped);
    }

    #[test]
    fn the_help_of_every_command_fits_a_screen() {
        let mut root = arrange(Root::command().term_width(80));
        root.build();
        assert!(check_size(&mut root, "runvoy") > 90, "subcommands are looked at as well");
    }

    /// Looks at everything below `command`; gives how many texts there were.
    fn check_size(command: &mut Command, path: &str) -> usize {
        let mut count = 0;
        for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let path = format!("{path} {}", command.get_name());
            let is_topic = command.get_long_about().is_some();
            assert!(is_topic || command.get_arguments().all(is_short), "{path}: an option is too long");
            let help = if is_topic { command.render_long_help() } else { command.render_help() }.to_string();
            assert!(help.lines().count() <= 40, "{path}: {} lines\n{help}", help.lines().count());
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{path}\n{help}");
            count += 1 + check_size(command, &path);
        }
        count
    }

    /// Whether `--help` needs no more lines for it than `-h`.
    fn is_short(arg: &clap::Arg) -> bool {
        let values = arg.get_possible_values();
        arg.get_long_help().is_none()
            && (arg.is_global_set() || arg.is_hide_possible_values_set() || values.iter().all(|value| value.get_help().is_none()))
    }

    #[test]
    fn help_lists_global_options_once() {
        let mut root = arrange(Root::command());
        root.build();
        let run = root.find_subcommand_mut("run").expect("run").render_long_help().to_string();
        assert!(run.contains("runvoy help options") && !run.contains("--endpoint"), "{run}");
        let top = root.render_long_help().to_string();
        assert!(top.contains("Run and watch:") && !top.contains("--endpoint"), "{top}");
        assert!(top.lines().count() <= 60 && top.lines().all(|line| line.len() <= 80), "{top}");
        for option in ["--endpoint", "--api-key-file", "--json", "--yes"] {
            assert!(options().contains(option), "{}", options());
        }
    }
}
