//! Why an execution ended, in words.

use runvoy_wire::Reason;

use crate::sanitize::one_line;

/// `timeout: ran longer than 5 s`; where the message begins with the code's own word, the message alone.
pub(crate) fn told(reason: &Reason) -> String {
    let Reason { code, message } = reason;
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let repeats = message.strip_prefix(code.as_str()).is_some_and(|rest| !goes_on(rest));
    let told = match message.as_str() {
        "" => one_line(code),
        _ if repeats => one_line(message),
        _ => one_line(&format!("{code}: {message}")),
    };
    match hint(reason) {
        Some(hint) => format!("{told} ({hint})"),
        None => told,
    }
}

/// What to do about words of git that say it only to who knows git.
fn hint(reason: &Reason) -> Option<&'static str> {
    let message = &reason.message;
    if reason.code != "git_failed" || message.contains("--git-token") || message.contains("full id") {
        return None;
    }
    if message.contains("could not read Username") || message.contains("could not read Password") {
        return Some("pass a secret with a token: --git-token SECRET");
    }
    // A commit that is named by its first digits is looked for as a branch.
    let (_, rest) = message.split_once("couldn't find remote ref ").or_else(|| message.split_once("Remote branch "))?;
    let asked = rest.split_whitespace().next()?;
    let is_short_commit = (4..40).contains(&asked.len()) && asked.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_short_commit.then_some("give the full commit id of 40 digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_said_twice() {
        for (code, message, expected) in [
            ("killed", "killed by ana; it had not started", "killed by ana; it had not started"),
            ("exit", "exit code 3", "exit code 3"),
            ("exit", "exited", "exit: exited"),
            ("timeout", "ran longer than 5 s", "timeout: ran longer than 5 s"),
            ("oom", "", "oom"),
            ("git_failed", "couldn't find remote ref main", "git_failed: couldn't find remote ref main"),
        ] {
            assert_eq!(told(&Reason { code: code.into(), message: message.into() }), expected);
        }
    }

    #[test]
    fn what_git_wants_is_told_in_words_of_ours() {
        for (message, says) in [
            ("x could not be cloned: fatal: could not read Username for 'https://x': terminal prompts disabled", "--git-token SECRET"),
            ("x could not be cloned: fatal: couldn't find remote ref 1a2b3c4", "commit id of 40 digits"),
            ("x could not be cloned: fatal: Remote branch 1a2b3c4 not found in upstream origin", "commit id of 40 digits"),
        ] {
            let told = told(&Reason { code: "git_failed".into(), message: message.into() });
            assert!(told.contains(message) && told.contains(says), "{told}");
        }
    }
}
