//! A YAML or JSON text that somebody wrote: read from a file or stdin, and parsed strictly. What is wrong in it is told with its place,
//! `FILE:LINE:COLUMN`, so that an editor can jump there.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use runvoy_wire::unknown;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use serde_saphyr::{DefaultMessageFormatter, MessageFormatter as _};

use crate::failure::Failure;

/// What the parser says of a number that does not fit.
const INTEGERS: [&str; 4] = ["invalid u8", "invalid u32", "invalid u64", "invalid i64"];
/// What the parser says, and what an author of YAML calls it.
const WORDS: [(&str, &str); 8] = [
    ("cannot deserialize null into string; use Option<String>", "it is empty: is a variable unset? Give it a value, or omit the key"),
    ("expected sequence start", "expected a list: [a, b], or one `- item` a line"),
    ("expected mapping start", "expected `key: value` pairs"),
    ("expected string scalar", "expected a text"),
    ("invalid boolean", "expected true or false"),
    ("unexpected end of input", "the file is empty or ends too early"),
    ("tabs disallowed within this context (block indentation)", "YAML is indented with spaces, not with tabs"),
    ("invalid indentation in multiline quoted scalar", "a quote is not closed"),
];

/// A text, and what to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Document {
    /// Reads a file; `-` is stdin.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let (name, text) = if path.as_os_str() == "-" {
            let mut text = String::new();
            ("stdin".to_owned(), io::stdin().read_to_string(&mut text).map(|_| text))
        } else {
            (path.display().to_string(), fs::read_to_string(path))
        };
        match text {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => Err(Failure::usage(format!("cannot read {name}")).why(error.to_string())),
        }
    }

    /// The whole text as one value.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_saphyr::from_str(&self.text).map_err(|error| Failure::usage(self.located(&error)))
    }

    /// The same for a text that may hold very many values.
    pub(crate) fn parse_large<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let options = serde_saphyr::options! { budget: None };
        serde_saphyr::from_str_with_options(&self.text, options).map_err(|error| Failure::usage(self.located(&error)))
    }

    /// The text as a list of values: one value alone is a list of one.
    pub(crate) fn parse_list<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        match self.parse::<Value>()? {
            Value::Array(_) => self.parse(),
            _ => Ok(vec![self.parse()?]),
        }
    }

    fn located(&self, error: &serde_saphyr::Error) -> String {
        let message = match DefaultMessageFormatter.format_message(error.without_snippet()).into_owned() {
            // The parser names its own types, which say nothing to the author of the file.
            message if INTEGERS.contains(&message.as_str()) => "expected a whole number, not negative and not too large".to_owned(),
            message => in_plain_words(message),
        };
        match error.location() {
            Some(at) => format!("{}:{}:{}: {message}", self.name, at.line(), at.column()),
            None => format!("{}: {message}", self.name),
        }
    }
}

/// A value of a key that is there. `lock: $NAME` with an unset variable leaves `lock:`, and must not run without the lock.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What the parser says, in words of the file.
fn in_plain_words(message: String) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(said, _)| *said == message) {
        return (*words).to_owned();
    }
    for (beginning, what) in [("unknown field `", "field"), ("unknown variant `", "value")] {
        if let Some((given, known)) = message.strip_prefix(beginning).and_then(|rest| rest.split_once("`, expected ")) {
            let known: Vec<&str> = known.trim_start_matches("one of ").split(", ").map(|name| name.trim_matches('`')).collect();
            return unknown(what, given, &known);
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Thing {
        name: String,
        #[serde(default)]
        count: u8,
    }

    fn document(text: &str) -> Document {
        Document { name: "thing.yaml".into(), text: text.into() }
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_column() {
        for (text, place, says) in [
            ("name: x\ncuont: 3\n", "thing.yaml:2:1: ", "cuont"),
            ("name: x\ncount: many\n", "thing.yaml:2:8: ", "expected a whole number"),
            ("name: x\nname: y\n", "thing.yaml:2:1: ", "name"),
            ("name: [x\n", "thing.yaml:", ""),
            ("{\"name\": \"x\",\n \"extra\": 1}", "thing.yaml:2:2: ", "extra"),
            ("count: 1\n", "thing.yaml:", "name"),
        ] {
            let told = document(text).parse::<Thing>().expect_err(text).text(false);
            assert!(told.contains(place) && told.contains(says), "{text:?}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }

    #[test]
    fn one_value_is_a_list_of_one_and_json_is_read_as_well() {
        let thing = |name: &str, count| Thing { name: name.into(), count };
        assert_eq!(document("name: a").parse_list::<Thing>().expect("one"), [thing("a", 0)]);
        assert_eq!(document("- name: a\n- name: b\n  count: 2\n").parse_list::<Thing>().expect("two"), [thing("a", 0), thing("b", 2)]);
        assert_eq!(document(r#"[{"name":"a","count":1}]"#).parse_list::<Thing>().expect("JSON"), [thing("a", 1)]);
        let told = document("- name: a\n- nmae: b\n").parse_list::<Thing>().expect_err("a slip").text(false);
        assert!(told.contains("thing.yaml:2:3: "), "{told}");
    }

    #[test]
    fn unknown_value_is_told_with_the_one_that_was_meant() {
        let told = document("name: a\neffect: alow\n").parse_list::<runvoy_wire::Rule>().expect_err("a slip").text(false);
        assert!(told.contains("thing.yaml:2:9: unknown value alow; did you mean allow?"), "{told}");
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let told = Document::open(Path::new("/nonexistent/x.yaml")).expect_err("not there");
        assert_eq!(told.exit_code(1), 2);
        assert!(told.text(false).contains("cannot read /nonexistent/x.yaml"));
    }
}
