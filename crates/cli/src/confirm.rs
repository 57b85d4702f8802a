//! Questions before something happens. Two rules: what cannot be undone asks a person at a terminal, and a profile that was made with
//! `configure --confirm` asks for its name before anything that changes.

use std::io::{self, Write as _};

use crate::failure::{Failure, Kind};
use crate::session::Session;

impl Session {
    /// Asks before something that cannot be undone; without a terminal, `--yes` is needed.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.global.yes {
            return Ok(());
        }
        if !self.may_ask() {
            return Err(Failure::new(Kind::Cancelled, format!("confirmation required: {question}")).next("add --yes"));
        }
        let answer = ask(&format!("{question}? [y/N] "))?;
        if matches!(answer.as_str(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(Failure::new(Kind::Cancelled, "cancelled: nothing was changed"))
        }
    }

    /// Asks before something that cannot be undone and that scripts do: without a terminal it goes ahead.
    pub(crate) fn confirm_at_terminal(&self, question: &str) -> Result<(), Failure> {
        if self.terminal.stdin_tty && self.terminal.stderr_tty { self.confirm(question) } else { Ok(()) }
    }

    /// Has the name of the profile typed, where it asks for that. `--yes` is no answer: it says nothing about where.
    pub(crate) fn confirm_profile(&self) -> Result<(), Failure> {
        let used = self.settings.profile.value.as_deref();
        let given = self.global.confirm.as_ref().map(Option::as_deref);
        match (given, &self.settings.confirm) {
            (Some(None), _) => Err(Failure::usage("--confirm needs the name of the profile").next("use --confirm NAME")),
            (Some(Some(given)), Some(name)) if given == name => Ok(()),
            (Some(Some(given)), None) if Some(given) == used => Ok(()),
            (Some(Some(given)), asking) => {
                let used = asking.as_deref().or(used);
                let used = used.map_or_else(|| "no profile is active".to_owned(), |used| format!("profile `{used}` is active"));
                Err(Failure::new(Kind::Cancelled, format!("--confirm names `{given}`, but {used}: nothing was changed")))
            }
            (None, None) => Ok(()),
            (None, Some(name)) if self.may_ask() && self.terminal.stderr_tty => {
                match ask(&format!("This makes a change on profile {name}. Type its name to continue: "))? == *name {
                    true => Ok(()),
                    false => Err(Failure::new(Kind::Cancelled, "cancelled: the name does not match")),
                }
            }
            (None, Some(name)) => Err(Failure::new(Kind::Cancelled, format!("profile `{name}` requires its name for every change"))
                .next(format!("add --confirm {name}"))),
        }
    }
}

fn ask(question: &str) -> Result<String, Failure> {
    let mut stderr = io::stderr();
    write!(stderr, "{question}").and_then(|()| stderr.flush())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}
