//! How `--help` is laid out: commands in groups, and the options that every command takes in one place, `runvoy help options`. It changes only
//! what is printed, never what is parsed.

use clap::{Args as _, Command};

use crate::global::GlobalArgs;

/// The commands by what people do with them. A test holds this list to the commands that there are.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run and watch", &["run", "logs", "status", "list", "wait", "kill", "rerun", "playbook", "events"]),
    ("Jobs and queues", &["job", "queues", "workers", "locks", "images"]),
    ("People and access", &["users", "groups", "rules", "access", "secrets", "keys", "claim", "whoami"]),
    ("Operate", &["audit", "trace", "health", "alerts", "doctor", "backup", "restore", "admin"]),
    ("Set up", &["serve", "worker", "configure", "config", "profile", "completion", "version"]),
];

const EXAMPLES: &str = "\
Examples:
  runvoy run 'make deploy'                       run a command and follow its output
  runvoy run --lock prod --wait 10m 'make apply' one at a time
  runvoy logs -f 4f2a9c                          the last six digits of an id are enough
  runvoy job submit build.yaml --follow          run a graph of commands";

const TOPICS: &str = "\
Run `runvoy COMMAND --help` for one command.
Topics: runvoy help options | exit-codes | environment | formatting";

/// Lays out the help of the program and of all its commands.
pub(crate) fn arrange(root: Command) -> Command {
    let globals: Vec<_> = root.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.get_id().clone()).collect();
    let root = globals.into_iter().fold(root, |root, id| root.mut_arg(id, |arg| arg.hide(true)));
    let groups = groups(&root);
    root.mut_subcommands(lay_out).help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{EXAMPLES}\n\n{groups}{TOPICS}\n"))
}

/// The options that every command takes: the text of `help options`.
pub(crate) fn options() -> String {
    let command = GlobalArgs::augment_args(Command::new("runvoy")).disable_help_flag(true);
    let mut command = command.next_help_heading(None).help_template("Options of every command\n\n{options}").max_term_width(100);
    command.render_help().to_string().replace("Global options:\n", "")
}

/// One line in the help of a command instead of the list. A topic is all text.
fn lay_out(command: Command) -> Command {
    match command.get_name() {
        "options" => return command.long_about(options()),
        _ if command.is_hide_set() => return command,
        _ => {}
    }
    let line = "Options of every command: runvoy help options";
    let after = match command.get_after_help() {
        Some(after) => format!("{after}\n\n{line}"),
        None => line.to_owned(),
    };
    command.after_help(after).mut_subcommands(lay_out)
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
    fn help_lists_global_options_once() {
        let mut root = arrange(Root::command());
        root.build();
        let run = root.find_subcommand_mut("run").expect("run").render_long_help().to_string();
        assert!(run.contains("runvoy help options") && !run.contains("--endpoint"), "{run}");
        let top = root.render_long_help().to_string();
        assert!(top.contains("Run and watch:") && !top.contains("--endpoint"), "{top}");
        assert!(top.lines().count() <= 64 && top.lines().all(|line| line.len() <= 100), "{top}");
        for option in ["--endpoint", "--api-key-file", "--json", "--yes"] {
            assert!(options().contains(option), "{}", options());
        }
    }
}
