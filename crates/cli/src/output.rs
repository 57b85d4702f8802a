//! Writing data in the format that was asked for.

use serde::Serialize;

use crate::failure::Failure;
use crate::global::Format;
use crate::session::Session;

impl Session {
    /// Writes `value`: for programs as it is, for people as `table` makes it, or only its `names`.
    pub(crate) fn show(
        &self,
        value: &impl Serialize,
        names: impl FnOnce() -> Vec<String>,
        table: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = match self.format() {
            Format::Json => serde_json::to_string_pretty(value).expect("wire types are plain data") + "\n",
            Format::Yaml => serde_saphyr::to_string(value).map_err(|error| Failure::other("cannot write YAML").why(error.to_string()))?,
            Format::Name => names().iter().map(|name| format!("{name}\n")).collect(),
            Format::Table => table(),
        };
        self.print(&text)
    }
}
