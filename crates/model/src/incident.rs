//! Incidents: what people are told of once when it begins and once when it is over. An incident is a record of the store, so that neither a
//! restart nor a webhook that is away loses one; whether and when somebody was told is kept with it. Pure: telling is an agent's matter.

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::id::ExecutionId;
use crate::phrase::counted;
use crate::time::UnixMs;

/// What is wrong, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// Nothing was heard of a running execution for long.
    Critical,
    /// The platform could not hand on what happened.
    Delivery,
    /// An execution used up its retries.
    Dead,
    /// An execution runs for very long.
    Overtime,
}

impl IncidentKind {
    /// Every kind, the worst first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::Delivery, Self::Dead, Self::Overtime];

    /// The word in the name of the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Delivery => "delivery",
            Self::Dead => "dead",
            Self::Overtime => "overtime",
        }
    }
}

/// Where an incident stands: whether it goes on, and whether people know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It goes on, and nobody was told.
    Begun,
    /// It goes on, and somebody was told.
    Told,
    /// It is over, and nobody was told of that.
    Over,
    /// It is over, and somebody was told.
    Closed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 4] = [Self::Begun, Self::Told, Self::Over, Self::Closed];
}

/// Something that people are told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// What is wrong.
    pub kind: IncidentKind,
    /// What it is about: the id of an execution, or a part of the platform.
    pub about: String,
    /// What people know the execution by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// What happened, for a person.
    pub message: String,
    /// Since when.
    pub began_at: UnixMs,
    /// When somebody was told that it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<UnixMs>,
    /// When it was over, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// Who is about to tell people of it, where several could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teller: Option<Teller>,
}

/// The turn to tell lasts so long: longer than a message takes, so that another server takes over where this one is gone.
pub const TURN_MS: i64 = 60_000;

/// One of several servers that could tell people, and has the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Teller {
    /// Which one.
    pub name: String,
    /// Another one may have the turn after this.
    pub until: UnixMs,
}

/// How an incident was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// When.
    pub at: UnixMs,
    /// How, for a person.
    pub why: String,
    /// When somebody was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<UnixMs>,
}

/// What people know an execution by. What could be a secret in its command is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The beginning of its command.
    pub command: String,
    /// Whose it is.
    pub created_by: String,
    /// The queue it came from.
    pub queue: String,
    /// The job and the task that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<(String, String)>,
}

/// One thing that happens to an incident. Each may be repeated: what has happened already is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// It is wrong from now on.
    Begin(Box<Incident>),
    /// It is not wrong any more.
    End {
        /// The name of its record.
        name: String,
        /// How, for a person.
        why: String,
    },
    /// Somebody is about to tell people of the incident that began then, unless another one is.
    Tell {
        /// The name of its record.
        name: String,
        /// Which one of that name.
        began_at: UnixMs,
        /// Who, and for how long.
        teller: Teller,
    },
    /// Somebody was told of the incident that began then.
    Told {
        /// The name of its record.
        name: String,
        /// Which one of that name.
        began_at: UnixMs,
        /// What they were told of.
        what: Told,
    },
    /// It is long over and is forgotten.
    Forget {
        /// The name of its record.
        name: String,
        /// Which one of that name.
        began_at: UnixMs,
    },
}

/// What somebody was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// That it began.
    Begin,
    /// That it is over, with or without having heard of it before.
    Over,
}

impl Incident {
    /// An incident that begins.
    pub fn begun(kind: IncidentKind, about: impl Into<String>, message: impl Into<String>, at: UnixMs) -> Self {
        Self { kind, about: about.into(), subject: None, message: message.into(), began_at: at, told_at: None, over: None, teller: None }
    }

    /// An incident about an execution.
    pub fn of(execution: &Execution, kind: IncidentKind, message: impl Into<String>, at: UnixMs) -> Self {
        Self { subject: Some(Subject::of(execution)), ..Self::begun(kind, execution.id.to_string(), message, at) }
    }

    /// An execution that used up its retries, as it stands after its last attempt.
    pub fn dead(execution: &Execution, at: UnixMs) -> Self {
        let why = execution.end_reason.as_ref().map_or("it failed", |reason| reason.message.as_str());
        let attempts = counted(u64::from(execution.attempt), "attempt");
        Self::of(execution, IncidentKind::Dead, format!("failed after {attempts}: {}", one_line(why, MOST_WHY)), at)
    }

    /// The name of its record.
    pub fn name(&self) -> String {
        name(self.kind, &self.about)
    }

    /// It goes on.
    pub const fn is_open(&self) -> bool {
        self.over.is_none()
    }

    /// Where it stands, and since when.
    pub fn phase(&self) -> (Phase, UnixMs) {
        match (&self.over, self.told_at) {
            (None, None) => (Phase::Begun, self.began_at),
            (None, Some(told_at)) => (Phase::Told, told_at),
            (Some(Over { told_at: Some(told_at), .. }), _) => (Phase::Closed, *told_at),
            (Some(over), _) => (Phase::Over, over.at),
        }
    }

    /// Who tells people of it at this time, and nobody else. Clocks differ a little; a turn that ends long after it could was written by one that
    /// was wrong, and would last for ever.
    pub fn told_by(&self, at: UnixMs) -> Option<&str> {
        let lasts = |teller: &&Teller| teller.until > at && teller.until <= at.plus_ms(2 * TURN_MS);
        self.teller.as_ref().filter(lasts).map(|teller| teller.name.as_str())
    }

    /// Nobody was told yet of what is to be told: that it began, or that it is over.
    pub fn is_to_be_told(&self) -> bool {
        matches!(self.phase().0, Phase::Begun | Phase::Over)
    }
}

impl Subject {
    fn of(execution: &Execution) -> Self {
        let spec = &execution.spec;
        Self {
            command: shown_command(&spec.command, spec.args.as_deref().unwrap_or_default()),
            created_by: execution.created_by.clone(),
            queue: spec.queue.to_string(),
            task: spec.task.as_ref().map(|task| (task.job.to_string(), task.task.to_string())),
        }
    }
}

/// The name of the record of an incident.
pub fn name(kind: IncidentKind, about: &str) -> String {
    format!("{}:{about}", kind.as_str())
}

/// The name of the record of an incident about an execution.
pub fn name_for(kind: IncidentKind, execution: ExecutionId) -> String {
    name(kind, &execution.to_string())
}

/// So much of a command is shown.
const MOST_COMMAND: usize = 80;
/// So much of a reason is shown.
const MOST_WHY: usize = 300;
/// Stands for what is not shown.
const HIDDEN: &str = "…";
/// A longer word may be a key.
const MOST_WORD: usize = 24;

/// What comes after a word with one of these in it may be a secret.
const SECRET_WORDS: [&str; 10] = ["pass", "secret", "token", "key", "cred", "login", "auth", "bearer", "basic", "sign"];
/// Between two commands.
const BETWEEN: [&str; 4] = ["&&", "||", "|", ";"];

/// The beginning of a command on one line, up to the first thing that could be a value: a message goes to more people than the record, and what is
/// secret in a command cannot be told from what is not. Shown are programs, plain words behind them, names of variables and names of options.
pub fn shown_command(command: &str, args: &[String]) -> String {
    let mut shown = String::new();
    let mut reading = Reading::Program;
    for word in command.split_whitespace().chain(args.iter().flat_map(|arg| arg.split_whitespace())) {
        let (part, next) = reading.show(word);
        for text in part.into_iter().chain(next.is_none().then(|| HIDDEN.to_owned())) {
            shown.push_str(if shown.is_empty() { "" } else { " " });
            shown.push_str(&text);
        }
        match next {
            Some(next) => reading = next,
            None => break,
        }
    }
    shortened(&shown, MOST_COMMAND)
}

/// What the words of a command may be at some place.
#[derive(Clone, Copy)]
enum Reading {
    /// The name of a program, or what is assigned for it.
    Program,
    /// A plain word or an option.
    Words,
    /// Another option; anything else may be the value of the last one.
    Options,
    /// A value that may be secret.
    Secret,
}

impl Reading {
    /// What is shown of a word, and how to go on; nothing after it is shown where that is `None`.
    fn show(self, word: &str) -> (Option<String>, Option<Self>) {
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/+".contains(c));
        let is_name = |text: &str| text.len() <= MOST_WORD && text.chars().all(|c| c.is_ascii_alphabetic() || "_-".contains(c));
        let announces = |text: &str| SECRET_WORDS.iter().any(|secret| text.to_ascii_lowercase().contains(secret));
        let after = |text: &str| Some(if announces(text) { Self::Secret } else { Self::Words });
        if BETWEEN.contains(&word) {
            return (Some(word.to_owned()), Some(Self::Program));
        }
        if let (Self::Program, Some((name, value))) = (self, word.split_once('=')) {
            // A value in quotes may go on behind a blank.
            let ends_here = !value.contains(['"', '\'', '`', '\\', '$', '(', '{', '<']);
            return if is_name(name) && ends_here { (Some(format!("{name}={HIDDEN}")), Some(self)) } else { (None, None) };
        }
        let (shown, next) = match (self, word) {
            (Self::Program, program) => {
                let name = program.rsplit('/').next().filter(|name| is_plain(name) && name.len() <= MOST_WORD && !name.starts_with('-'));
                (name, name.and_then(after))
            }
            (Self::Secret, _) => (None, None),
            // What follows the one letter of an option may be its value.
            (_, option) if option.starts_with('-') => {
                let is_long = option.starts_with("--") && is_name(option);
                let is_short = option.len() <= 3 && is_name(option);
                let name = option.split_once('=').map(|(name, _)| name).filter(|name| name.starts_with("--") && is_name(name));
                if is_long || is_short { (Some(option), Some(Self::Options)) } else { (name, None) }
            }
            (Self::Options, _) => (None, None),
            (Self::Words, word) => {
                let is_number = word.len() <= 6 && word.chars().all(|c| c.is_ascii_digit());
                let is_word = word.len() <= MOST_WORD && is_plain(word) && !word.chars().any(|c| c.is_ascii_digit());
                if is_number || is_word { (Some(word), after(word)) } else { (None, None) }
            }
        };
        (shown.map(str::to_owned), next)
    }
}

/// A text on one line, without what turns its direction or is not seen, of at most so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control() || is_unseen(c);
    let words = text.split(blank).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    shortened(&line, most)
}

/// Characters that turn the direction of the text around them, or take no room in it.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// A text of at most so many characters, with a mark where it was cut.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
