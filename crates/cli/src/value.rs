//! Secret text on its way in: from a file, from stdin or from a hidden prompt. Never from an argument, which every process list shows.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use runvoy_wire::Sensitive;

use crate::failure::{Failure, Kind};
use crate::session::Session;

/// Reads a value: from `file` where one is named (`-` is stdin), else hidden from the terminal, else from stdin.
pub(crate) fn read(session: &Session, what: &str, file: Option<&Path>) -> Result<Sensitive, Failure> {
    let bytes = match file {
        Some(path) if path.as_os_str() != "-" => {
            fs::read(path).map_err(|error| Failure::usage(format!("cannot read {}", path.display())).why(error.to_string()))?
        }
        None if session.may_ask() => rpassword::prompt_password(format!("{what} (hidden): "))
            .map_err(|error| Failure::other(format!("cannot read {what}")).why(error.to_string()))?
            .into_bytes(),
        None if session.terminal.stdin_tty => {
            return Err(Failure::new(Kind::Cancelled, format!("{what} is missing, and prompts are disabled"))
                .next("pass it on stdin, or with --value-file FILE"));
        }
        _ => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{what} is not UTF-8")).next("encode it, for example as base64"))?;
    let text = without_line_end(text);
    if text.is_empty() {
        return Err(Failure::usage(format!("{what} is empty")).next("pass it on stdin, or with --value-file FILE"));
    }
    Ok(Sensitive::new(text))
}

/// What `echo` and editors add to a single line is not meant; a text of several lines, a certificate for one, stays as it is.
fn without_line_end(mut text: String) -> String {
    if text.trim_end_matches(['\r', '\n']).contains('\n') {
        return text;
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_end_of_a_single_line_is_not_part_of_the_value() {
        for (given, meant) in [
            ("hunter2", "hunter2"),
            ("hunter2\n", "hunter2"),
            ("hunter2\r\n", "hunter2"),
            (" spaced ", " spaced "),
            ("-----BEGIN\nabc\n-----END\n", "-----BEGIN\nabc\n-----END\n"),
            ("\n", ""),
        ] {
            assert_eq!(without_line_end(given.to_owned()), meant, "{given:?}");
        }
    }
}
