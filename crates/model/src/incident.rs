//! Incidents: what people are told of once when it begins and once when it is over. An incident is a record of the store, so that neither a
//! restart nor a webhook that is away loses one; whether and when somebody was told is kept with it. Pure: telling is an agent's matter.

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::id::ExecutionId;
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
        Self { kind, about: about.into(), subject: None, message: message.into(), began_at: at, told_at: None, over: None }
    }

    /// An incident about an execution.
    pub fn of(execution: &Execution, kind: IncidentKind, message: impl Into<String>, at: UnixMs) -> Self {
        Self { subject: Some(Subject::of(execution)), ..Self::begun(kind, execution.id.to_string(), message, at) }
    }

    /// An execution that used up its retries, as it stands after its last attempt.
    pub fn dead(execution: &Execution, at: UnixMs) -> Self {
        let why = execution.end_reason.as_ref().map_or("it failed", |reason| reason.message.as_str());
        Self::of(execution, IncidentKind::Dead, format!("gave up after {} attempts: {}", execution.attempt, shortened(why, MOST_WHY)), at)
    }

    /// The name of its record.
    pub fn name(&self) -> String {
        name(self.kind, &self.about)
    }

    /// It goes on.
    pub const fn is_open(&self) -> bool {
        self.over.is_none()
    }

    /// Nobody was told yet of what is to be told: that it began, or that it is over.
    pub fn is_to_be_told(&self) -> bool {
        match &self.over {
            Some(over) => over.told_at.is_none(),
            None => self.told_at.is_none(),
        }
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
const MASK: &str = "***";

/// Words in names of what is secret.
const SECRET_WORDS: [&str; 10] =
    ["password", "passwd", "secret", "token", "apikey", "api_key", "api-key", "access_key", "private_key", "credential"];
/// How tokens of well-known services begin, and our own keys.
const TOKEN_BEGINNINGS: [&str; 9] = ["rv_", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk-", "AKIA"];

/// The beginning of a command on one line, without what looks like a secret: a message goes to more people than the record.
pub fn shown_command(command: &str, args: &[String]) -> String {
    let mut words = Vec::new();
    let mut next_is_secret = false;
    for word in command.split_whitespace().chain(args.iter().flat_map(|arg| arg.split_whitespace())) {
        let (shown, names_secret) = if next_is_secret { (MASK.to_owned(), false) } else { masked(word) };
        next_is_secret = names_secret;
        words.push(shown);
    }
    let printable = |c: char| if c.is_control() || is_direction(c) { '\u{fffd}' } else { c };
    let line: String = words.join(" ").chars().map(printable).collect();
    shortened(&line, MOST_COMMAND)
}

/// A word without what looks like a secret, and whether the next word is one.
fn masked(word: &str) -> (String, bool) {
    let bare = word.trim_matches(['"', '\'']);
    let lower = bare.to_ascii_lowercase();
    let names_secret = |name: &str| SECRET_WORDS.iter().any(|secret| name.contains(secret));
    if TOKEN_BEGINNINGS.iter().any(|beginning| bare.starts_with(beginning)) {
        return (MASK.to_owned(), false);
    }
    if let Some((name, _)) = bare.split_once('=')
        && names_secret(&name.to_ascii_lowercase())
    {
        return (format!("{name}={MASK}"), false);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest.split_once('@')
    {
        return (format!("{scheme}://{MASK}@{host}"), false);
    }
    let announces = matches!(lower.as_str(), "bearer" | "basic") || (bare.starts_with('-') && names_secret(&lower)) || {
        lower.ends_with(':') && (names_secret(&lower) || lower == "x-auth:")
    };
    (word.to_owned(), announces)
}

/// Characters that turn the direction of the text around them.
const fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of at most so many characters, with a mark where it was cut.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_13_what_looks_like_a_secret_is_in_no_message() {
        for (command, shown) in [
            ("make deploy", "make deploy"),
            ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=*** make"),
            ("tool --token abc --verbose", "tool --token *** --verbose"),
            ("tool --api-key=abc x", "tool --api-key=*** x"),
            ("curl -H \"Authorization: Bearer abc.def\" https://x", "curl -H \"Authorization: Bearer *** https://x"),
            ("git clone https://me:pw@example.com/x", "git clone https://***@example.com/x"),
            ("login ghp_abcdef", "login ***"),
            ("a\n\tb\u{202e}c\u{1b}[31m", "a b\u{fffd}c\u{fffd}[31m"),
        ] {
            assert_eq!(shown_command(command, &[]), shown, "{command}");
        }
        assert_eq!(shown_command("psql", &["--password".into(), "x".into()]), "psql --password ***");
        assert_eq!(shown_command(&"é".repeat(200), &[]).chars().count(), MOST_COMMAND + 1);
    }

    #[test]
    fn an_incident_is_to_be_told_until_somebody_was() {
        let mut incident = Incident::begun(IncidentKind::Dead, "x", "gave up", UnixMs(1));
        assert!(incident.is_to_be_told() && incident.is_open());
        incident.told_at = Some(UnixMs(2));
        assert!(!incident.is_to_be_told());
        incident.over = Some(Over { at: UnixMs(3), why: "redriven".into(), told_at: None });
        assert!(incident.is_to_be_told() && !incident.is_open());
        incident.over = Some(Over { at: UnixMs(3), why: "redriven".into(), told_at: Some(UnixMs(4)) });
        assert!(!incident.is_to_be_told());
        assert_eq!(incident.name(), "dead:x");
    }
}
