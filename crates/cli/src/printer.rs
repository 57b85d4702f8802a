//! Turning log records into output: which go where, with which prefix. In a pipe the command's bytes pass exactly as they are.

use std::io::Write as _;
use std::sync::Arc;

use runvoy_wire::{Batch, LogEvent, LogPosition, Record, Rfc3339, Stream};

use crate::jq::Jq;
use crate::sanitize::Filter;
use crate::sink::Out;
use crate::terminal::{Tone, paint};

/// How records are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// The command's stderr goes to stderr; otherwise all of its output is data, and goes to stdout.
    pub(crate) split: bool,
    /// Only this stream, on stdout.
    pub(crate) only: Option<Stream>,
    /// Leave out the platform's own lines.
    pub(crate) no_platform: bool,
    /// Leave out what is older, in Unix milliseconds.
    pub(crate) since: Option<i64>,
    pub(crate) timestamps: bool,
    pub(crate) numbers: bool,
    /// The execution whose log it is, for JSON.
    pub(crate) execution_id: String,
    /// One JSON object per record, on stdout.
    pub(crate) json: bool,
    /// What each of those goes through.
    pub(crate) jq: Option<Arc<Jq>>,
    /// Stdout is a terminal that must be kept safe.
    pub(crate) guard_stdout: bool,
    /// Stderr is a terminal that must be kept safe.
    pub(crate) guard_stderr: bool,
    pub(crate) stderr_colour: bool,
}

/// Renders batches. It keeps state between them, for a line or an escape sequence may be cut.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    layout: Layout,
    filters: [Filter; 2],
    /// Stdout, stderr: the last byte was not a newline.
    open_line: [bool; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Stdout = 0,
    Stderr = 1,
}

impl Printer {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, ..Self::default() }
    }

    /// The output of a batch, neighbouring pieces joined.
    pub(crate) fn render(&mut self, batch: &Batch) -> Vec<Out> {
        let mut pieces: Vec<(Target, Vec<u8>)> = Vec::new();
        for (line, record) in batch.records() {
            let Some(target) = self.target(&record) else { continue };
            if pieces.last().is_none_or(|(last, _)| *last != target) {
                pieces.push((target, Vec::new()));
            }
            let (_, out) = pieces.last_mut().expect("just pushed");
            if self.layout.json {
                let event = LogEvent::from_record(
                    LogPosition { execution_id: &self.layout.execution_id, line, attempt: batch.attempt, late: batch.late },
                    &record,
                );
                let json = serde_json::to_vec(&event).expect("wire types are plain data");
                match &self.layout.jq {
                    // A record that a filter does not fit is none that it asks for.
                    Some(jq) => out.extend_from_slice(jq.apply(&json).unwrap_or_default().as_bytes()),
                    None => {
                        out.extend_from_slice(&json);
                        out.push(b'\n');
                    }
                }
            } else {
                self.record(target, line, &record, out);
            }
        }
        let wrap = |(target, bytes)| if target == Target::Stdout { Out::Stdout(bytes) } else { Out::Stderr(bytes) };
        pieces.into_iter().map(wrap).collect()
    }

    /// A line break on stderr, where a terminal's cursor stands in the middle of a line.
    pub(crate) fn break_line(&self) -> &'static str {
        let [stdout, stderr] = self.open_line;
        if stdout && self.layout.guard_stdout || stderr && self.layout.guard_stderr { "\n" } else { "" }
    }

    fn target(&self, record: &Record<'_>) -> Option<Target> {
        if self.layout.since.is_some_and(|since| record.at.0 < since) {
            return None;
        }
        match (self.layout.only, record.stream) {
            (Some(only), stream) => (only == stream).then_some(Target::Stdout),
            (None, Stream::Platform) if self.layout.no_platform => None,
            (None, _) if self.layout.json => Some(Target::Stdout),
            (None, Stream::Platform) => Some(Target::Stderr),
            (None, Stream::Stderr) if self.layout.split => Some(Target::Stderr),
            (None, Stream::Stderr | Stream::Stdout) => Some(Target::Stdout),
        }
    }

    fn record(&mut self, target: Target, line: u64, record: &Record<'_>, out: &mut Vec<u8>) {
        let prefixed = self.layout.timestamps || self.layout.numbers;
        let (platform, screen) = (record.stream == Stream::Platform, self.layout.guard_stdout && self.layout.guard_stderr);
        // On one screen a line that the other stream left open is in the way, too.
        let other_open = platform && screen && target == Target::Stderr && self.open_line[Target::Stdout as usize];
        if !record.cont && (self.open_line[target as usize] && (prefixed || platform) || other_open) {
            out.push(b'\n');
            self.open_line[Target::Stdout as usize] &= !other_open;
        }
        if !record.cont {
            self.prefix(line, record, out);
        }
        let guarded = if target == Target::Stdout { self.layout.guard_stdout } else { self.layout.guard_stderr };
        if record.stream == Stream::Platform && target == Target::Stderr {
            let text = crate::sanitize::one_line(&String::from_utf8_lossy(record.bytes));
            out.extend_from_slice(paint(&text, Tone::Dim, self.layout.stderr_colour).as_bytes());
        } else if guarded {
            self.filters[target as usize].push(record.bytes, out);
        } else {
            out.extend_from_slice(record.bytes);
        }
        if record.eol {
            out.push(b'\n');
            // What was open in a sequence does not outlive its line.
            self.filters[target as usize] = Filter::default();
        }
        self.open_line[target as usize] = !record.eol;
    }

    fn prefix(&self, line: u64, record: &Record<'_>, out: &mut Vec<u8>) {
        if self.layout.numbers {
            write!(out, "{line:>6} ").expect("a Vec takes everything");
        }
        if self.layout.timestamps {
            write!(out, "{} ", Rfc3339(record.at.0)).expect("a Vec takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use runvoy_wire::{BlockBuilder, UnixMs};

    use super::*;

    fn batch() -> Batch {
        let mut block = BlockBuilder::default();
        let mut push = |at, stream, cont, eol, bytes: &[u8]| block.push(Record { at: UnixMs(at), stream, cont, eol, bytes });
        push(0, Stream::Platform, false, true, b"### runvoy: started");
        push(1_000, Stream::Stdout, false, true, b"one \x1b]0;t\x07\xff");
        push(2_000, Stream::Stdout, false, false, b"name? ");
        push(3_000, Stream::Stderr, false, true, b"oops");
        push(4_000, Stream::Stdout, true, true, b"ana");
        Batch { first_line: 1, attempt: 1, late: false, block: block.take() }
    }

    fn texts(layout: Layout) -> Vec<(&'static str, String)> {
        let pieces = Printer::new(layout).render(&batch());
        let name = |piece| match piece {
            Out::Stdout(bytes) => ("stdout", String::from_utf8_lossy(&bytes).into_owned()),
            Out::Stderr(bytes) => ("stderr", String::from_utf8_lossy(&bytes).into_owned()),
        };
        pieces.into_iter().map(name).collect()
    }

    #[test]
    fn a_pipe_gets_the_very_bytes_of_each_stream() {
        let pieces = Printer::new(Layout { split: true, no_platform: true, ..Layout::default() }).render(&batch());
        let expected =
            vec![Out::Stdout(b"one \x1b]0;t\x07\xff\nname? ".to_vec()), Out::Stderr(b"oops\n".to_vec()), Out::Stdout(b"ana\n".to_vec())];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_terminal_is_kept_safe_and_the_platform_speaks_on_stderr() {
        let pieces = texts(Layout { split: true, guard_stdout: true, guard_stderr: true, stderr_colour: true, ..Layout::default() });
        let expected = [
            ("stderr", "\x1b[2m### runvoy: started\x1b[0m\n"),
            ("stdout", "one \u{fffd}\nname? "),
            ("stderr", "oops\n"),
            ("stdout", "ana\n"),
        ];
        assert_eq!(pieces, expected.map(|(name, text)| (name, text.to_owned())));
    }

    #[test]
    fn the_platform_begins_a_line_of_its_own_on_a_screen() {
        let mut block = BlockBuilder::default();
        block.push(Record { at: UnixMs(0), stream: Stream::Stdout, cont: false, eol: false, bytes: b"hi" });
        block.push(Record { at: UnixMs(0), stream: Stream::Platform, cont: false, eol: true, bytes: b"### runvoy: exit code 0" });
        let batch = Batch { first_line: 1, attempt: 1, late: false, block: block.take() };
        for (guard_stderr, said) in [(true, "\n### runvoy: exit code 0\n"), (false, "### runvoy: exit code 0\n")] {
            let mut printer = Printer::new(Layout { split: true, guard_stdout: true, guard_stderr, ..Layout::default() });
            let pieces = printer.render(&batch);
            assert_eq!(pieces, [Out::Stdout(b"hi".to_vec()), Out::Stderr(said.as_bytes().to_vec())]);
            assert_eq!(printer.break_line().is_empty(), guard_stderr, "broken once");
        }
    }

    #[test]
    fn prefixes_stand_at_the_beginning_of_lines_only() {
        let layout = Layout { no_platform: true, timestamps: true, numbers: true, guard_stdout: true, ..Layout::default() };
        let expected = "     2 1970-01-01T00:00:01.000Z one \u{fffd}\n     3 1970-01-01T00:00:02.000Z name? \n     \
                        4 1970-01-01T00:00:03.000Z oops\nana\n";
        assert_eq!(texts(layout), [("stdout", expected.to_owned())]);
    }

    #[test]
    fn one_stream_and_a_time_can_be_chosen() {
        assert_eq!(texts(Layout { only: Some(Stream::Stderr), ..Layout::default() }), [("stdout", "oops\n".to_owned())]);
        assert_eq!(texts(Layout { since: Some(3_500), ..Layout::default() }), [("stdout", "ana\n".to_owned())]);
    }

    #[test]
    fn json_is_one_object_a_line_and_keeps_odd_bytes() {
        let pieces = texts(Layout { json: true, ..Layout::default() });
        assert_eq!(pieces.len(), 1);
        let lines: Vec<LogEvent> = pieces[0].1.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[1].bytes().as_deref(), Some(&b"one \x1b]0;t\x07\xff"[..]));
    }
}
