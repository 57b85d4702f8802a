//! From the words of a command line to what they mean. `run` is the one command whose words are partly another program's: its own options end
//! at the program's name. One text with a space in it is a whole shell command: there is no program after it that an option could be meant for.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser};

use crate::help;

const RUN: &str = "run";
/// The words of the command in the arguments of `run`.
const COMMAND: &str = "command";

/// What the words mean, the program's own name first.
pub fn parse<P: Parser>(words: Vec<OsString>) -> Result<P, clap::Error> {
    let words = with_help_of_codes(words);
    let strict = command::<P>().try_get_matches_from(&words).map_err(in_plain_words)?;
    let matches = if has_options_after_text(&words, &strict) { loose::<P>(&words)? } else { strict };
    if refuse_empty(&command::<P>(), &matches).is_err() {
        // Only a built command says in its usage line which command it is a part of.
        let mut built = command::<P>();
        built.build();
        refuse_empty(&built, &matches)?;
    }
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut command::<P>()))
}

/// `help error CODE` is the command `error CODE`: `help` itself takes only names of commands.
fn with_help_of_codes(mut words: Vec<OsString>) -> Vec<OsString> {
    if matches!(&words[..], [_, help, error, ..] if help == "help" && error == "error") {
        words.remove(1);
    }
    words
}

/// Says which number an option takes, where the parser of numbers speaks of digits and ranges of Rust.
fn in_plain_words(error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let Some(cause) = error.source().map(ToString::to_string) else { return error };
    let (value, arg) = (text(ContextKind::InvalidValue), text(ContextKind::InvalidArg));
    let expected = match cause.split_once(" is not in ") {
        Some((_, range)) => match range.split_once("..=") {
            Some((least, most)) if most.len() < 10 => format!("expected a number from {least} to {most}"),
            _ if value.starts_with('-') => "expected a positive number".to_owned(),
            _ => "the number is too large".to_owned(),
        },
        None if cause == "invalid digit found in string" => "expected a whole number".to_owned(),
        None if cause.starts_with("number too ") => "the number is too large".to_owned(),
        None => return error,
    };
    let message = format!("invalid value '{value}' for '{arg}': {expected}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(error.kind(), message)
}

/// The program, with its help laid out.
fn command<P: Parser>() -> clap::Command {
    help::arrange(P::command())
}

/// Options whose empty value says something: no description, no filter.
const MAY_BE_EMPTY: [&str; 3] = ["description", "reason", "text"];

/// Refuses an option whose value is empty. `--lock "$NAME"` with an unset variable must not run without the lock.
fn refuse_empty(command: &clap::Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    for option in command.get_opts().filter(|option| !MAY_BE_EMPTY.contains(&option.get_id().as_str())) {
        let id = option.get_id().as_str();
        // A default and the environment are not the words of this command line.
        let is_given = matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_given && matches.get_raw(id).is_some_and(|mut values| values.any(OsStr::is_empty)) {
            let flag = option.get_long().map_or_else(|| format!("-{}", option.get_short().unwrap_or('?')), |long| format!("--{long}"));
            let message = format!("{flag} is empty: is a variable unset?\n\n  give it a value, or omit {flag}");
            return Err(command.clone().error(ErrorKind::InvalidValue, message));
        }
    }
    match matches.subcommand() {
        Some((name, matches)) => command.find_subcommand(name).map_or(Ok(()), |command| refuse_empty(command, matches)),
        None => Ok(()),
    }
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
    let matches = command::<P>().mut_subcommand(RUN, anywhere).try_get_matches_from(words)?;
    if let [text, more, ..] = command_of(&matches)[..] {
        let message = format!(
            "`{text}` is a shell command and takes no arguments such as `{more}`\n\n  \
             put options first; put -- before a program whose name has a space"
        );
        return Err(command::<P>().error(ErrorKind::TooManyValues, message));
    }
    Ok(matches)
}

fn command_of(matches: &ArgMatches) -> Vec<&str> {
    let run = matches.subcommand_matches(RUN);
    run.and_then(|run| run.get_many::<String>(COMMAND)).into_iter().flatten().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    use super::*;

    #[derive(Debug, Parser)]
    struct Root {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Run {
            command: Vec<String>,
        },
        Error {
            code: Option<String>,
        },
        Count {
            #[arg(long, value_parser = clap::value_parser!(u8).range(1..=5))]
            priority: Option<u8>,
            #[arg(long)]
            limit: Option<u32>,
        },
    }

    fn parsed(words: &[&str]) -> Result<Command, String> {
        let words = ["runvoy"].iter().chain(words).map(OsString::from).collect();
        parse::<Root>(words).map(|root| root.command).map_err(|error| error.to_string())
    }

    #[test]
    fn help_takes_a_code_after_error() {
        for (words, expected) in [(&["help", "error", "LOCK_HELD"][..], Some("LOCK_HELD")), (&["help", "error"], None)] {
            let Ok(Command::Error { code }) = parsed(words) else { panic!("{words:?} is help") };
            assert_eq!(code.as_deref(), expected);
        }
    }

    #[test]
    fn a_wrong_number_is_refused_in_plain_words() {
        for (words, told) in [
            (["count", "--priority", "9"], "invalid value '9' for '--priority <PRIORITY>': expected a number from 1 to 5"),
            (["count", "--priority", "hi"], "'--priority <PRIORITY>': expected a whole number"),
            (["count", "--limit", "x"], "'--limit <LIMIT>': expected a whole number"),
            (["count", "--limit", "99999999999"], "'--limit <LIMIT>': the number is too large"),
        ] {
            let error = parsed(&words).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }
}
