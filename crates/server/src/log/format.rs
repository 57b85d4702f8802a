//! The forms that records are written in.

use http::HeaderValue;
use runvoy_model::log::{Record, Stream};
use runvoy_wire::{LogEvent, LogPosition};

use crate::fault::Fault;
use crate::query::Query;

/// The forms of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON object with all events.
    Json,
    /// One JSON event a line.
    Ndjson,
    /// Lines as a person reads them, the platform's own among them.
    Text,
    /// The command's very bytes.
    Raw,
}

impl Form {
    /// The parameter `format`.
    pub(crate) fn of(query: &Query) -> Result<Self, Fault> {
        match query.text("format")? {
            None | Some("json") => Ok(Self::Json),
            Some("ndjson") => Ok(Self::Ndjson),
            Some("text") => Ok(Self::Text),
            Some("raw") => Ok(Self::Raw),
            Some(_) => Err(Fault::invalid("format", "must be json, text, raw or ndjson")),
        }
    }

    /// Its content type.
    pub(crate) const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Text => "text/plain; charset=utf-8",
            Self::Raw => "application/octet-stream",
        })
    }
}

/// Writes one record after another.
#[derive(Debug)]
pub(crate) enum Writer {
    /// The items of a JSON array, with the commas between them.
    Items {
        /// Nothing was written yet.
        first: bool,
    },
    /// One JSON event a line.
    Lines,
    /// Text; `open` is the stream of a line that no newline has ended yet.
    Text {
        /// That stream.
        open: Option<Stream>,
    },
    /// Bytes, from the `skip`th on, `left` of them.
    Raw {
        /// Bytes still to be left out.
        skip: u64,
        /// Bytes still to be written.
        left: u64,
    },
}

impl Writer {
    /// The writer of a form, for a whole log.
    pub(crate) const fn new(form: Form) -> Self {
        match form {
            Form::Json => Self::Items { first: true },
            Form::Ndjson => Self::Lines,
            Form::Text => Self::Text { open: None },
            Form::Raw => Self::Raw { skip: 0, left: u64::MAX },
        }
    }

    /// Nothing more is to be written, whatever the log still has.
    pub(crate) const fn is_full(&self) -> bool {
        matches!(self, Self::Raw { left: 0, .. })
    }

    /// Writes a record.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, position: LogPosition<'_>, record: &Record<'_>) {
        let event = || LogEvent::from_record(position, record);
        match self {
            Self::Items { first } => {
                if !std::mem::replace(first, false) {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, &event()).expect("wire types are plain data");
            }
            Self::Lines => {
                serde_json::to_writer(&mut *out, &event()).expect("wire types are plain data");
                out.push(b'\n');
            }
            Self::Text { open } => {
                // A prompt that another stream breaks into keeps its own line.
                if open.is_some_and(|open| open != record.stream || !record.cont) {
                    out.push(b'\n');
                }
                out.extend_from_slice(record.bytes);
                if record.eol {
                    out.push(b'\n');
                }
                *open = (!record.eol).then_some(record.stream);
            }
            Self::Raw { skip, left } => {
                if record.stream != Stream::Platform {
                    put(out, record.bytes, skip, left);
                    put(out, if record.eol { b"\n" } else { b"" }, skip, left);
                }
            }
        }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8], skip: &mut u64, left: &mut u64) {
    let skipped = usize::try_from(*skip).unwrap_or(usize::MAX).min(bytes.len());
    *skip -= skipped as u64;
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - skipped);
    *left -= taken as u64;
    out.extend_from_slice(&bytes[skipped..skipped + taken]);
}

#[cfg(test)]
mod tests {
    use runvoy_model::time::UnixMs;

    use super::*;

    fn written(mut writer: Writer, records: &[(Stream, bool, bool, &[u8])]) -> String {
        let mut out = Vec::new();
        for (line, (stream, cont, eol, bytes)) in (1..).zip(records) {
            let record = Record { at: UnixMs(0), stream: *stream, cont: *cont, eol: *eol, bytes };
            let position = LogPosition { execution_id: "e", line, attempt: 1, late: false };
            writer.write(&mut out, position, &record);
        }
        String::from_utf8(out).expect("test text")
    }

    const RECORDS: [(Stream, bool, bool, &[u8]); 6] = [
        (Stream::Platform, false, true, b"### runvoy: started"),
        (Stream::Stdout, false, false, b"name? "),
        (Stream::Stdout, true, true, b"ana"),
        (Stream::Stdout, false, false, b"wait"),
        (Stream::Stderr, false, true, b"oops"),
        (Stream::Stdout, false, false, b"end"),
    ];

    #[test]
    fn text_joins_what_belongs_together_and_parts_the_rest() {
        let text = written(Writer::new(Form::Text), &RECORDS);
        assert_eq!(text, "### runvoy: started\nname? ana\nwait\noops\nend");
    }

    #[test]
    fn raw_is_exactly_what_the_command_wrote_and_any_part_of_it() {
        let whole = "name? ana\nwaitoops\nend";
        assert_eq!(written(Writer::new(Form::Raw), &RECORDS), whole);
        for skip in 0..whole.len() {
            for left in 0..=whole.len() - skip {
                let part = written(Writer::Raw { skip: skip as u64, left: left as u64 }, &RECORDS);
                assert_eq!(part, whole[skip..skip + left]);
            }
        }
    }
}
