//! Log lines as JSON: one event per record, exact bytes kept where they are not UTF-8.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use runvoy_model::log::{Record, Stream};
use runvoy_model::time::UnixMs;
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// The log of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogsResponse {
    /// The execution's id.
    pub execution_id: String,
    /// The lines; null while the execution runs, unless the request selects lines.
    pub events: Option<Vec<LogEvent>>,
    /// The execution's status.
    pub status: Status,
    /// Where to follow the log; absent once the execution has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_url: Option<String>,
    /// The number of the line after the last one returned.
    #[serde(default)]
    pub next_line: u64,
}

/// One line of a log. The WebSocket sends each line as one text message of this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogEvent {
    /// A unique id, `<execution>-<line>`; a client resumes after it.
    pub event_id: String,
    /// The time in Unix milliseconds.
    pub timestamp: i64,
    /// The text. Invalid UTF-8 is replaced; `message_b64` then has the exact bytes.
    pub message: String,
    /// The line's number, counted from 1 over all attempts.
    #[serde(default)]
    pub line: u64,
    /// The stream: `stdout`, `stderr` or `platform`.
    #[serde(default = "stdout")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub stream: Stream,
    /// The attempt that wrote it; 0 for lines of the server.
    #[serde(default)]
    pub attempt: u32,
    /// Whether it continues the line before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cont: bool,
    /// Whether a newline ends it; absent: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub eol: bool,
    /// The exact bytes in base64, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_b64: Option<String>,
    /// Whether it arrived after its attempt had lost its lease.
    #[serde(default, skip_serializing_if = "is_false")]
    pub late: bool,
}

/// Where a record stands: in which log, at which line, and from which attempt.
#[derive(Debug, Clone, Copy)]
pub struct LogPosition<'a> {
    /// The execution whose log it is.
    pub execution_id: &'a str,
    /// The record's number.
    pub line: u64,
    /// The attempt that wrote it.
    pub attempt: u32,
    /// Whether it arrived after its attempt had lost its lease.
    pub late: bool,
}

/// The line after which a client resumes: an `event_id` of this execution, or a plain line number.
pub fn line_of_event_id(event_id: &str, execution_id: &str) -> Option<u64> {
    let line = match event_id.rsplit_once('-') {
        Some((execution, line)) if execution == execution_id => line,
        Some(_) => return None,
        None => event_id,
    };
    line.bytes().all(|byte| byte.is_ascii_digit()).then(|| line.parse().ok())?
}

impl LogEvent {
    /// The event of a record at its position.
    pub fn from_record(position: LogPosition<'_>, record: &Record<'_>) -> Self {
        let LogPosition { execution_id, line, attempt, late } = position;
        let (message, message_b64) = match std::str::from_utf8(record.bytes) {
            Ok(text) => (text.to_owned(), None),
            Err(_) => (String::from_utf8_lossy(record.bytes).into_owned(), Some(BASE64_STANDARD.encode(record.bytes))),
        };
        Self {
            event_id: format!("{execution_id}-{line}"),
            timestamp: record.at.0,
            message,
            line,
            stream: record.stream,
            attempt,
            cont: record.cont,
            eol: record.eol,
            message_b64,
            late,
        }
    }

    /// The bytes as the command wrote them, or `None` where `message_b64` is not base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.message_b64 {
            None => Some(self.message.clone().into_bytes()),
            Some(encoded) => BASE64_STANDARD.decode(encoded).ok(),
        }
    }

    /// The record of this event, over bytes that [`LogEvent::bytes`] gave.
    pub fn record<'a>(&self, bytes: &'a [u8]) -> Record<'a> {
        Record { at: UnixMs(self.timestamp), stream: self.stream, cont: self.cont, eol: self.eol, bytes }
    }
}

const fn stdout() -> Stream {
    Stream::Stdout
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back_exactly(bytes in prop::collection::vec(any::<u8>(), 0..64), cont: bool, eol: bool, late: bool) {
            let record = Record { at: UnixMs(7), stream: Stream::Stderr, cont, eol, bytes: &bytes };
            let event = LogEvent::from_record(LogPosition { execution_id: "e", line: 9, attempt: 2, late }, &record);
            let text = serde_json::to_string(&event).expect("plain data");
            let back: LogEvent = serde_json::from_str(&text).expect("own encoding");
            prop_assert_eq!(&back, &event);
            let exact = back.bytes().expect("own base64");
            prop_assert_eq!(back.record(&exact), record);
        }
    }

    #[test]
    fn clients_resume_by_event_id_or_line_number() {
        let id = "0193-ab-7";
        for (given, line) in
            [("0193-ab-7-12", Some(12)), ("12", Some(12)), ("0", Some(0)), ("0193-ab-8-12", None), ("x", None), ("0193-ab-7-", None)]
        {
            assert_eq!(line_of_event_id(given, id), line, "{given}");
        }
        for bad in ["+1", "-1", "", "0193-ab-7-+1", "18446744073709551616"] {
            assert_eq!(line_of_event_id(bad, id), None, "{bad}");
        }
    }

    #[test]
    fn an_ordinary_line_has_only_ordinary_fields() {
        let record = Record { at: UnixMs(5), stream: Stream::Stdout, cont: false, eol: true, bytes: b"hello" };
        let position = LogPosition { execution_id: "01a0", line: 1, attempt: 1, late: false };
        insta::assert_json_snapshot!(LogEvent::from_record(position, &record), @r#"
        {
          "event_id": "01a0-1",
          "timestamp": 5,
          "message": "hello",
          "line": 1,
          "stream": "stdout",
          "attempt": 1
        }
        "#);
    }
}
