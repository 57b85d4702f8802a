//! What is wrong with a body of JSON, in words: the parser speaks of types of this program, which say nothing to a client.

use runvoy_model::phrase::unknown;

/// The field that is wrong, and why. No value of a text is repeated.
pub(crate) fn refusal(error: &str) -> (String, String) {
    let (said, place) = match error.rsplit_once(" at line ") {
        Some((said, place)) => (said, format!(" (at line {place})")),
        None => (error, String::new()),
    };
    let (path, said) = match said.split_once(": ") {
        Some((path, rest)) if !path.contains([' ', '`', '"']) => (Some(path), rest),
        _ => (None, said),
    };
    let field = path.unwrap_or("body").to_owned();
    if let Some(name) = said.strip_prefix("missing field `").and_then(|name| name.strip_suffix('`')) {
        let field = path.map_or_else(|| name.to_owned(), |path| format!("{path}.{name}"));
        return (field, "is missing".to_owned());
    }
    let message = if let Some((given, known)) = unknown_word(said, "unknown field `") {
        unknown("field", given, &known)
    } else if let Some((given, known)) = unknown_word(said, "unknown variant `") {
        unknown("value", given, &known)
    } else if let Some((given, expected)) = wrong_type(said) {
        format!("must be {}, not {}", wanted(expected), kind(given))
    } else if said.starts_with("EOF while parsing") {
        format!("is incomplete JSON{place}")
    } else if path.is_none() {
        format!("is not the expected JSON: {said}{place}")
    } else {
        said.to_owned()
    };
    (field, message)
}

/// The word that is not known, and those that are.
fn unknown_word<'a>(said: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (given, known) = said.strip_prefix(prefix)?.split_once("`, ")?;
    Some((given, known.split('`').skip(1).step_by(2).collect()))
}

fn wrong_type(said: &str) -> Option<(&str, &str)> {
    let rest = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: "))?;
    rest.rsplit_once(", expected ")
}

fn wanted(expected: &str) -> &str {
    match expected {
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "i8" | "i16" | "i32" | "i64" => "a whole number that is not too large",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is neither negative nor too large",
        of_ours if of_ours.starts_with("struct ") => "an object",
        other => other,
    }
}

fn kind(given: &str) -> &str {
    match given.split([' ', '`']).next().unwrap_or_default() {
        "integer" => given.split('`').nth(1).unwrap_or("a number"),
        "floating" => "a number with a fraction",
        "string" => "a text",
        "boolean" => "true or false",
        "sequence" => "a list",
        "map" => "an object",
        _ => given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_says_is_told_in_words() {
        for (said, field, message) in [
            ("missing field `command` at line 1 column 2", "command", "is missing"),
            ("tasks[0]: missing field `taskId` at line 1 column 2", "tasks[0].taskId", "is missing"),
            ("command: invalid type: integer `5`, expected a string at line 1 column 12", "command", "must be a text, not 5"),
            (
                "timeout: invalid value: integer `-1`, expected u64 at line 1 column 27",
                "timeout",
                "must be a whole number that is neither negative nor too large, not -1",
            ),
            ("value: invalid type: string \"hunter2, expected it\", expected u8 at line 1 column 3", "value", "not a text"),
            (
                "effect: unknown variant `forbid`, expected `allow` or `deny` at line 1 column 29",
                "effect",
                "unknown value forbid; expected allow or deny",
            ),
            (
                "tasks[0].comand: unknown field `comand`, expected one of `command`, `args` at line 1 column 9",
                "tasks[0].comand",
                "did you mean command?",
            ),
            ("EOF while parsing an object at line 1 column 1", "body", "is incomplete JSON (at line 1 column 1)"),
            ("expected value at line 1 column 1", "body", "is not the expected JSON: expected value (at line 1 column 1)"),
            ("invalid type: string \"x\", expected struct RunRequest at line 1 column 3", "body", "must be an object, not a text"),
        ] {
            let (told_field, told) = refusal(said);
            assert!(told_field == field && told.contains(message), "{said}: {told_field}: {told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
