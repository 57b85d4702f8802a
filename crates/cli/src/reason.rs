//! Why an execution ended, in words.

use runvoy_wire::Reason;

use crate::sanitize::one_line;

/// `timeout: ran longer than 5 s`; where the message begins with the code's own word, the message alone.
pub(crate) fn told(reason: &Reason) -> String {
    let Reason { code, message } = reason;
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let repeats = message.strip_prefix(code.as_str()).is_some_and(|rest| !goes_on(rest));
    match message.as_str() {
        "" => one_line(code),
        _ if repeats => one_line(message),
        _ => one_line(&format!("{code}: {message}")),
    }
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
        ] {
            assert_eq!(told(&Reason { code: code.into(), message: message.into() }), expected);
        }
    }
}
