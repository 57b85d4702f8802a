//! Writing data in the format that was asked for.

use serde::Serialize;

use crate::failure::Failure;
use crate::global::Format;
use crate::jq::Jq;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;

impl Session {
    /// Writes `value`: for programs as it is, for people as `table` makes it, or only its `names`.
    pub(crate) fn show(
        &self,
        value: &impl Serialize,
        names: impl FnOnce() -> Vec<String>,
        table: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.print(&written(self.format(), self.jq.as_deref(), value, names, table)?)
    }

    /// One value as a line of JSON, or what `--jq` makes of it.
    pub(crate) fn filtered(&self, value: &impl Serialize) -> Result<String, Failure> {
        filtered(self.jq.as_deref(), value)
    }

    /// Refuses the formats that a log, which is written as it comes, does not have.
    pub(crate) fn check_stream(&self) -> Result<(), Failure> {
        match self.format() {
            Format::Table | Format::Json => Ok(()),
            Format::Yaml | Format::Name => Err(Failure::usage("a log is printed as text or as JSON lines").next("omit -o, or use -o json")),
        }
    }

    /// Says that something was done: to a person on stderr by `message`, a program on stdout by the whole `answer`, or by `name`.
    pub(crate) fn report(&self, answer: &impl Serialize, name: &str, message: &str) -> Result<u8, Failure> {
        match self.format() {
            Format::Table => self.note(Tone::Plain, &one_line(message)),
            _ => self.show(answer, || vec![name.to_owned()], String::new)?,
        }
        Ok(0)
    }

    /// The same for a thing of a `kind` that not every server names in its message.
    pub(crate) fn report_on(&self, answer: &impl Serialize, (kind, name): (&str, &str), message: &str) -> Result<u8, Failure> {
        self.report(answer, name, &named(kind, name, message))
    }
}

/// The message with its subject, which is not said twice.
fn named(kind: &str, name: &str, message: &str) -> String {
    let mut words = message.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '.', '`']));
    if words.any(|word| word == name) { message.to_owned() } else { format!("{kind} {name}: {message}") }
}

/// `value` as it is written in this format.
pub(crate) fn written(
    format: Format,
    jq: Option<&Jq>,
    value: &impl Serialize,
    names: impl FnOnce() -> Vec<String>,
    table: impl FnOnce() -> String,
) -> Result<String, Failure> {
    Ok(match format {
        Format::Json if jq.is_some() => filtered(jq, value)?,
        Format::Json => serde_json::to_string_pretty(value).expect("wire types are plain data") + "\n",
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| Failure::other("cannot write YAML").why(error.to_string()))?,
        Format::Name => names().iter().map(|name| format!("{name}\n")).collect(),
        Format::Table => table(),
    })
}

fn filtered(jq: Option<&Jq>, value: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(value).expect("wire types are plain data");
    match jq {
        Some(jq) => jq.apply(json.as_bytes()),
        None => Ok(json + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_is_about_is_named_once() {
        assert_eq!(named("group", "ops", "it has 2 members"), "group ops: it has 2 members");
        assert_eq!(named("group", "ops", "group ops: it has 2 members"), "group ops: it has 2 members");
    }
}
