//! From the words of a command line to what they mean. `run` is the one command whose words are partly another program's: its own options end
//! at the program's name. One text with a space in it is a whole shell command: there is no program after it that an option could be meant for.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Parser};

const RUN: &str = "run";
/// The words of the command in the arguments of `run`.
const COMMAND: &str = "command";

/// What the words mean, the program's own name first.
pub fn parse<P: Parser>(words: Vec<OsString>) -> Result<P, clap::Error> {
    let strict = P::command().try_get_matches_from(&words)?;
    let matches = if has_options_after_text(&words, &strict) { loose::<P>(&words)? } else { strict };
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut P::command()))
}

/// Whether a shell command stands before words that are options of ours. What stands after `--` never is one.
fn has_options_after_text(words: &[OsString], matches: &ArgMatches) -> bool {
    let command = command_of(matches);
    // The command is the last of the words.
    let fenced = words.len() > command.len() && words[words.len() - command.len() - 1] == "--";
    !fenced && matches!(command[..], [text, next, ..] if text.contains(char::is_whitespace) && next.starts_with('-'))
}

/// The same words, with options anywhere among them.
fn loose<P: Parser>(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let anywhere = |run: clap::Command| run.mut_arg(COMMAND, |command| command.trailing_var_arg(false));
    let matches = P::command().mut_subcommand(RUN, anywhere).try_get_matches_from(words)?;
    if let [text, more, ..] = command_of(&matches)[..] {
        let message = format!(
            "`{text}` is a shell command and takes no further word, such as `{more}`\n\n  \
             give options first; put -- before a program whose name has a space"
        );
        return Err(P::command().error(ErrorKind::TooManyValues, message));
    }
    Ok(matches)
}

fn command_of(matches: &ArgMatches) -> Vec<&str> {
    let run = matches.subcommand_matches(RUN);
    run.and_then(|run| run.get_many::<String>(COMMAND)).into_iter().flatten().map(String::as_str).collect()
}
