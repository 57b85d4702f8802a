//! What the output goes to: terminals or pipes, with or without colours, how wide.

use std::io::IsTerminal as _;

use clap::builder::styling::{AnsiColor, Style};

use crate::environment::Environment;
use crate::global::ColourChoice;

/// The columns of a terminal that does not tell them.
const DEFAULT_WIDTH: usize = 80;

/// What the three standard streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) stdin_tty: bool,
    pub(crate) stdout_tty: bool,
    pub(crate) stderr_tty: bool,
    pub(crate) stdout_colour: bool,
    pub(crate) stderr_colour: bool,
    /// Cursor movement works, so that a spinner can be drawn.
    pub(crate) moves: bool,
    /// Columns of stdout, where it is a terminal.
    pub(crate) width: Option<usize>,
}

impl Terminal {
    /// Neither a terminal nor a color.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            stdin_tty: false,
            stdout_tty: false,
            stderr_tty: false,
            stdout_colour: false,
            stderr_colour: false,
            moves: false,
            width: None,
        }
    }

    /// Looks at this process' streams.
    pub(crate) fn of_process(choice: ColourChoice, environment: &Environment) -> Self {
        let stdin_tty = std::io::stdin().is_terminal();
        let (stdout_tty, stderr_tty) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let width = || terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        Self {
            stdin_tty,
            stdout_tty,
            stderr_tty,
            stdout_colour: use_colour(choice, environment, stdout_tty),
            stderr_colour: use_colour(choice, environment, stderr_tty),
            moves: stderr_tty && environment.get("TERM") != Some("dumb"),
            width: stdout_tty.then(width),
        }
    }
}

/// The flag decides, then `NO_COLOR`, then `CLICOLOR_FORCE`, then `TERM`, then what the stream is.
pub(crate) fn use_colour(choice: ColourChoice, environment: &Environment, tty: bool) -> bool {
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if environment.get("NO_COLOR").is_some() => false,
        ColourChoice::Auto if environment.get("CLICOLOR_FORCE").is_some_and(|force| force != "0") => true,
        ColourChoice::Auto => tty && environment.get("TERM") != Some("dumb"),
    }
}

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Dim,
    Bold,
    Good,
    Warning,
    Bad,
    Busy,
}

/// `text` in its colour, or as it is.
pub(crate) fn paint(text: &str, tone: Tone, colour: bool) -> String {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Bold => Style::new().bold(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Warning => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Busy => AnsiColor::Cyan.on_default(),
    };
    if colour && tone != Tone::Plain { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_colour_matrix() {
        use ColourChoice::{Always, Auto, Never};
        for (choice, variables, tty, expected) in [
            (Auto, &[][..], true, true),
            (Auto, &[], false, false),
            (Auto, &[("NO_COLOR", "1")], true, false),
            (Auto, &[("NO_COLOR", "")], true, true),
            (Auto, &[("CLICOLOR_FORCE", "1")], false, true),
            (Auto, &[("CLICOLOR_FORCE", "0")], false, false),
            (Auto, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false),
            (Auto, &[("TERM", "dumb")], true, false),
            (Always, &[("NO_COLOR", "1")], false, true),
            (Never, &[("CLICOLOR_FORCE", "1")], true, false),
        ] {
            let environment = Environment::new(variables.iter().copied(), Path::new("/"));
            assert_eq!(use_colour(choice, &environment, tty), expected, "{choice:?} {variables:?} tty {tty}");
        }
    }

    #[test]
    fn paint_changes_no_byte_without_colour() {
        assert_eq!(paint("x", Tone::Bad, false), "x");
        assert_eq!(paint("x", Tone::Plain, true), "x");
        assert_eq!(paint("x", Tone::Good, true), "\x1b[32mx\x1b[0m");
    }
}
