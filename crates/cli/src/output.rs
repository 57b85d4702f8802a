//! Writing data in the format that was asked for.

use serde::Serialize;

use crate::failure::Failure;
use crate::global::Format;
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
        let text = match self.format() {
            Format::Json if self.jq.is_some() => self.filtered(value)?,
            Format::Json => serde_json::to_string_pretty(value).expect("wire types are plain data") + "\n",
            Format::Yaml => serde_saphyr::to_string(value).map_err(|error| Failure::other("cannot write YAML").why(error.to_string()))?,
            Format::Name => names().iter().map(|name| format!("{name}\n")).collect(),
            Format::Table => table(),
        };
        self.print(&text)
    }

    /// One value as a line of JSON, or what `--jq` makes of it.
    pub(crate) fn filtered(&self, value: &impl Serialize) -> Result<String, Failure> {
        let json = serde_json::to_string(value).expect("wire types are plain data");
        match &self.jq {
            Some(jq) => jq.apply(json.as_bytes()),
            None => Ok(json + "\n"),
        }
    }

    /// Tells that something was done: a person on stderr by `message`, a program on stdout by the whole `answer`, or by `name`.
    pub(crate) fn report(&self, answer: &impl Serialize, name: &str, message: &str) -> Result<u8, Failure> {
        match self.format() {
            Format::Table => self.note(Tone::Plain, &one_line(message)),
            _ => self.show(answer, || vec![name.to_owned()], String::new)?,
        }
        Ok(0)
    }
}
