//! Why a command failed: what, why, what to do next; and the one map to exit codes.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use runvoy_client::ClientError;
use runvoy_wire::Code;
use serde_json::json;

use crate::error_page;
use crate::sanitize::one_line;
use crate::terminal::{Tone, paint};

/// What kind of failure it is; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line or the configuration is wrong.
    Usage,
    /// A question was answered with no, or could not be asked.
    Cancelled,
    /// There is no key, or it is not accepted.
    Authentication,
    /// Everything else.
    Other,
    /// Whoever read stdout has enough.
    BrokenPipe,
}

/// The code for failures of our own in most commands.
pub(crate) const GENERAL: u8 = 1;
/// The code for failures of our own where the exit code is otherwise the command's.
pub(crate) const PLATFORM: u8 = 125;
/// Every exit code, as `docs/errors.md` explains them.
#[cfg(test)]
pub(crate) const EXIT_CODES: [u8; 9] = [0, GENERAL, 2, 4, 124, PLATFORM, 126, 127, INTERRUPTED];
const UNREACHABLE: &str = "UNREACHABLE";
const TLS: &str = "TLS";
const FOREIGN_SERVER: &str = "FOREIGN_SERVER";
const PROTOCOL: &str = "PROTOCOL";
/// The codes of errors that no server answered with.
#[cfg(test)]
pub(crate) const CLIENT_CODES: [&str; 4] = [UNREACHABLE, TLS, FOREIGN_SERVER, PROTOCOL];
/// What to do where an execution was not found.
const SEE_EXECUTIONS: &str = "see what there is: runvoy list";
/// The code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure on its way to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    told: Box<Told>,
}

/// What is told about it.
#[derive(Debug, Default)]
struct Told {
    what: String,
    why: Vec<String>,
    choices: Vec<String>,
    next: Vec<String>,
    code: Option<String>,
    request_id: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, told: Box::new(Told { what: what.into(), ..Told::default() }) }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Kind::Usage, what)
    }

    pub(crate) fn other(what: impl Into<String>) -> Self {
        Self::new(Kind::Other, what)
    }

    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.told.why.push(without_errno(why.into()));
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.told.next.push(next.into());
        self
    }

    /// What the user can choose from; a person sees it in place of the why.
    pub(crate) fn choices(mut self, choices: Vec<String>) -> Self {
        self.told.choices = choices;
        self
    }

    /// Says what to do next, and nothing else.
    pub(crate) fn instead(mut self, next: impl Into<String>) -> Self {
        self.told.next = vec![next.into()];
        self
    }

    /// Tells in other words what happened; the answer's code and request id stay.
    pub(crate) fn reworded(mut self, what: impl Into<String>) -> Self {
        self.told.what = what.into();
        self.told.why.clear();
        self
    }

    /// Whether it was refused with this code.
    pub(crate) fn has_code(&self, code: Code) -> bool {
        self.told.code.as_deref() == Some(code.as_str())
    }

    /// Names the command that lists what was looked for and not found.
    pub(crate) fn listed_by(mut self, command: &str) -> Self {
        if self.has_code(Code::NotFound) || self.has_code(Code::SecretNotFound) {
            self.told.next.retain(|next| next != SEE_EXECUTIONS);
            self.told.next.push(format!("see what there is: {command}"));
        }
        self
    }

    /// Names the option of the command instead of the field of the request, where the server refused one.
    pub(crate) fn in_options(mut self, options: &[(&str, &str)]) -> Self {
        let named = self.told.what.split_once(": ").and_then(|(path, message)| {
            let (field, rest) = path.split_once('.').unwrap_or((path, ""));
            let (_, option) = options.iter().find(|(name, _)| *name == field)?;
            Some(format!("{} {rest}", option).trim_end().to_owned() + ": " + message)
        });
        if let Some(what) = named.filter(|_| self.has_code(Code::InvalidRequest)) {
            self.told.what = what;
            self.told.next = vec!["correct the option and run it again".to_owned()];
        }
        self
    }

    /// Names the file to correct, where the server refused what it says.
    pub(crate) fn in_file(mut self, file: &str) -> Self {
        if self.has_code(Code::InvalidRequest) {
            self.told.next = vec![format!("correct {file} and submit it again")];
        }
        self
    }

    /// What happened, in one line.
    pub(crate) fn what(&self) -> &str {
        &self.told.what
    }

    /// The exit code, where failures of our own have the code `own`.
    pub(crate) fn exit_code(&self, own: u8) -> u8 {
        match self.kind {
            Kind::BrokenPipe => 0,
            Kind::Usage | Kind::Cancelled => 2,
            Kind::Authentication => 4,
            Kind::Other => own,
        }
    }

    /// The lines for a person.
    pub(crate) fn text(&self, colour: bool) -> String {
        let mut text = format!("{} {}\n", paint("error:", Tone::Bad, colour), one_line(&self.told.what));
        for choice in &self.told.choices {
            writeln!(text, "  {}", one_line(choice)).expect("a String takes everything");
        }
        for why in self.told.why.iter().filter(|_| self.told.choices.is_empty()) {
            writeln!(text, "  why: {}", one_line(why)).expect("a String takes everything");
        }
        for next in &self.told.next {
            writeln!(text, "  {} {}", paint("next:", Tone::Bold, colour), one_line(next)).expect("a String takes everything");
        }
        let facts: Vec<String> = [("code", &self.told.code), ("request id", &self.told.request_id)]
            .into_iter()
            .filter_map(|(name, fact)| fact.as_ref().map(|fact| format!("{name} {}", one_line(fact))))
            .collect();
        if !facts.is_empty() {
            writeln!(text, "  {}", paint(&facts.join(" · "), Tone::Dim, colour)).expect("a String takes everything");
        }
        if let Some(hint) = self.told.code.as_deref().and_then(error_page::hint) {
            writeln!(text, "  {} {hint}", paint("help:", Tone::Bold, colour)).expect("a String takes everything");
        }
        text
    }

    /// Writes it to stderr; gives the exit code of the process, where failures of our own have the code `own`.
    pub(crate) fn tell(&self, json: bool, colour: bool, own: u8) -> u8 {
        let code = self.exit_code(own);
        if code != 0 {
            let text = if json { self.json() } else { self.text(colour) };
            // There is nobody to tell that stderr is gone.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        code
    }

    /// The same for a program.
    pub(crate) fn json(&self) -> String {
        let value = json!({
            "error": self.told.what, "why": self.told.why, "choices": self.told.choices, "next": self.told.next,
            "code": self.told.code, "request_id": self.told.request_id,
        });
        format!("{value}\n")
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Kind::BrokenPipe, "broken pipe"),
            _ => Self::other("cannot write the output").why(error.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let mut failure = match &error {
            ClientError::Unreachable { .. } => Self::other(error.to_string())
                .next("check that the server runs (`runvoy serve`) and that the address is right; `runvoy doctor` tests each step"),
            ClientError::Tls { advice, .. } => Self::other(error.to_string()).next(*advice),
            ClientError::ForeignServer { peer, .. } => Self::other(error.to_string())
                .next(format!("run this as the server's user (sudo -u '#{peer}' runvoy …), or choose another server with --endpoint URL")),
            ClientError::Unauthorized(_) => {
                Self::new(Kind::Authentication, error.to_string()).next("store a valid key with `runvoy configure`, or set RUNVOY_API_KEY")
            }
            ClientError::LockHeld { held, .. } => Self::other(format!("lock {} is held by {}", held.lock_name, held.held_by))
                .why(format!("execution {} has held it since {}", held.execution_id, held.since))
                .next("wait for it: add --wait 10m"),
            ClientError::Protocol { .. } => {
                Self::other(error.to_string()).next("check that the endpoint is a runvoy server; `runvoy doctor` tests each step")
            }
            ClientError::Invalid { what, why } => Self::usage(format!("invalid {what}")).why(why),
            ClientError::NotFound(_) | ClientError::Refused(_) => Self::other(error.to_string()),
        };
        failure.told.why.extend(error.causes().into_iter().map(without_errno));
        match (&error, error.refusal()) {
            (_, Some(refusal)) => {
                let details = Some(refusal.details.clone()).filter(|details| !details.is_empty());
                let details = details.filter(|_| !matches!(error, ClientError::LockHeld { .. }));
                let (why, step) = details.as_deref().map_or((None, None), why_and_step);
                failure.told.why.extend(why.map(str::to_owned));
                // The server says what to do itself, and knows better.
                failure.told.next.extend(step.or_else(|| advice(&refusal.code)).map(str::to_owned));
                failure.told.code = Some(refusal.code.clone());
                failure.told.request_id = Some(refusal.request_id.clone());
            }
            (ClientError::Unreachable { .. }, _) => failure.told.code = Some(UNREACHABLE.to_owned()),
            (ClientError::ForeignServer { .. }, _) => failure.told.code = Some(FOREIGN_SERVER.to_owned()),
            (ClientError::Tls { .. }, _) => failure.told.code = Some(TLS.to_owned()),
            (ClientError::Protocol { request_id, .. }, _) => {
                failure.told.code = Some(PROTOCOL.to_owned());
                failure.told.request_id = Some(request_id.clone()).filter(|id| !id.is_empty());
            }
            _ => {}
        }
        failure
    }
}

/// The words of an error of the system, without its number.
pub(crate) fn without_errno(mut why: String) -> String {
    if let Some(reason) = why.strip_prefix("failed to lookup address information: ") {
        why = format!("the name cannot be resolved: {reason}");
    }
    if why.ends_with(')')
        && let Some(at) = why.rfind(" (os error ")
    {
        why.truncate(at);
    }
    why
}

/// The reason and the next step in the details of a refusal.
fn why_and_step(details: &str) -> (Option<&str>, Option<&str>) {
    const NOTHING_CHANGED: &str = "nothing was changed";
    if let Some(step) = details.strip_prefix(NOTHING_CHANGED).and_then(|rest| rest.strip_prefix("; ")) {
        return (Some(NOTHING_CHANGED), Some(step));
    }
    let is_step = ["ask ", "check ", "correct ", "send ", "set ", "try again"].iter().any(|beginning| details.starts_with(beginning))
        || details.contains("`runvoy access explain`");
    if is_step { (None, Some(details)) } else { (Some(details), None) }
}

/// What to do about a code that is not explained by its error alone.
fn advice(code: &str) -> Option<&'static str> {
    match Code::parse(code)? {
        Code::NotFound => Some(SEE_EXECUTIONS),
        Code::Forbidden => Some("ask an admin; `runvoy whoami` shows your role"),
        Code::RateLimited | Code::ServiceUnavailable | Code::DatabaseError => Some("try again in a few seconds"),
        Code::InternalError => Some("report it as a bug, with the request id"),
        Code::PayloadTooLarge => Some("send less: pass large input as a file or in a repository"),
        Code::InvalidRequest
        | Code::Unauthorized
        | Code::InvalidApiKey
        | Code::ApiKeyRevoked
        | Code::SecretNotFound
        | Code::MethodNotAllowed
        | Code::Conflict
        | Code::LockHeld
        | Code::SecretAlreadyExists => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_platform_and_command_apart() {
        for (kind, for_run, for_others) in
            [(Kind::Usage, 2, 2), (Kind::Cancelled, 2, 2), (Kind::Authentication, 4, 4), (Kind::Other, 125, 1), (Kind::BrokenPipe, 0, 0)]
        {
            let failure = Failure::new(kind, "x");
            assert_eq!((failure.exit_code(PLATFORM), failure.exit_code(GENERAL)), (for_run, for_others), "{kind:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do_once() {
        let refusal = |code: Code, message: &str, details: &str| {
            ClientError::Refused(Box::new(runvoy_client::Refusal {
                status: code.status(),
                code: code.as_str().into(),
                message: message.into(),
                details: details.into(),
                confirm: false,
                request_id: "r1".into(),
                retry_after: None,
            }))
        };
        let refused = |code, message: &str, details: &str| Failure::from(refusal(code, message, details)).text(false);
        insta::assert_snapshot!(refused(Code::Forbidden, "your role (viewer) does not allow this", "ask an admin for a role that allows it"), @r"
        error: your role (viewer) does not allow this
          next: ask an admin for a role that allows it
          code FORBIDDEN · request id r1
          help: runvoy help error forbidden
        ");
        insta::assert_snapshot!(refused(Code::Forbidden, "lock prod is denied", "rule no-prod decided; see why: `runvoy access explain`"), @r"
        error: lock prod is denied
          next: rule no-prod decided; see why: `runvoy access explain`
          code FORBIDDEN · request id r1
          help: runvoy help error forbidden
        ");
        insta::assert_snapshot!(refused(Code::RateLimited, "too many requests at once", "try again in a second"), @r"
        error: too many requests at once
          next: try again in a second
          code RATE_LIMITED · request id r1
          help: runvoy help error rate_limited
        ");
        insta::assert_snapshot!(refused(Code::Conflict, "user ana@example.com exists already", "nothing was changed; choose another name"), @r"
        error: user ana@example.com exists already
          why: nothing was changed
          next: choose another name
          code CONFLICT · request id r1
          help: runvoy help error conflict
        ");
        insta::assert_snapshot!(refused(Code::InvalidRequest, "timeout: must be at least 1", "correct timeout and send it again"), @r"
        error: timeout: must be at least 1
          next: correct timeout and send it again
          code INVALID_REQUEST · request id r1
          help: runvoy help error invalid_request
        ");
        let field = refusal(Code::InvalidRequest, "env.1A: a variable name must match X", "correct env.1A and send it again");
        insta::assert_snapshot!(Failure::from(field).in_options(&[("env", "--env")]).text(false), @r"
        error: --env 1A: a variable name must match X
          next: correct the option and run it again
          code INVALID_REQUEST · request id r1
          help: runvoy help error invalid_request
        ");
        assert!(refused(Code::Forbidden, "no", "").contains("next: ask an admin; `runvoy whoami` shows your role"));
    }

    #[test]
    fn a_failure_says_what_why_and_what_next() {
        let failure = Failure::other("cannot reach the server").why("connection refused").next("runvoy serve");
        insta::assert_snapshot!(failure.text(false), @r"
        error: cannot reach the server
          why: connection refused
          next: runvoy serve
        ");
        assert!(Failure::other("\x1b]0;x\x07evil").text(false).starts_with("error: evil\n"));
    }
}
