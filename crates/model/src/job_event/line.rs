//! The lines of published output: as with any command, a record for each line, 64 KiB at most. What an event leaves unfinished is a record too, and the line
//! goes on with the next event: nobody knows when that comes.

use std::ops::RangeInclusive;

use super::Piece;
use crate::log::{BlockBuilder, MAX_RECORD_BYTES, Record, Stream};
use crate::time::UnixMs;

/// Which streams stand within a line, between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    stdout_open: bool,
    stderr_open: bool,
}

/// The unfinished line of one stream within an event.
struct Partial<'a> {
    stream: Stream,
    open: &'a mut bool,
    bytes: Vec<u8>,
    at: UnixMs,
}

impl Lines {
    /// As one byte, for the record of an event.
    pub(super) const fn to_bits(self) -> u8 {
        self.stdout_open as u8 | (self.stderr_open as u8) << 1
    }

    pub(super) const fn of_bits(bits: u8) -> Self {
        Self { stdout_open: bits & 1 != 0, stderr_open: bits & 2 != 0 }
    }

    /// Adds the output of one event; a time outside of `times` is moved to its nearer end.
    pub fn write(&mut self, pieces: &[Piece], times: &RangeInclusive<UnixMs>, builder: &mut BlockBuilder) {
        let at = *times.start();
        let mut stdout = Partial { stream: Stream::Stdout, open: &mut self.stdout_open, bytes: Vec::new(), at };
        let mut stderr = Partial { stream: Stream::Stderr, open: &mut self.stderr_open, bytes: Vec::new(), at };
        for piece in pieces {
            let partial = if piece.stream == Stream::Stderr { &mut stderr } else { &mut stdout };
            partial.at = piece.at.max(*times.start()).min(*times.end());
            partial.write(&piece.bytes, builder);
        }
        stdout.release(builder);
        stderr.release(builder);
    }
}

impl Partial<'_> {
    fn write(&mut self, bytes: &[u8], builder: &mut BlockBuilder) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.hold(text, builder);
            if ends {
                self.put(true, builder);
            }
        }
    }

    /// Adds to the line; what is more than a record may have goes out before.
    fn hold(&mut self, mut text: &[u8], builder: &mut BlockBuilder) {
        while self.bytes.len() + text.len() > MAX_RECORD_BYTES {
            let (now, later) = text.split_at(MAX_RECORD_BYTES - self.bytes.len());
            self.bytes.extend_from_slice(now);
            self.put(false, builder);
            text = later;
        }
        self.bytes.extend_from_slice(text);
    }

    fn release(&mut self, builder: &mut BlockBuilder) {
        if !self.bytes.is_empty() {
            self.put(false, builder);
        }
    }

    fn put(&mut self, eol: bool, builder: &mut BlockBuilder) {
        builder.push(Record { at: self.at, stream: self.stream, cont: *self.open, eol, bytes: &self.bytes });
        *self.open = !eol;
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIMES: RangeInclusive<UnixMs> = UnixMs(10)..=UnixMs(20);

    fn piece(stream: Stream, at: i64, bytes: &[u8]) -> Piece {
        Piece { stream, at: UnixMs(at), bytes: bytes.to_vec() }
    }

    fn seen(builder: &mut BlockBuilder) -> Vec<(Stream, i64, bool, bool, String)> {
        let block = builder.take();
        let shown = |r: Record<'_>| (r.stream, r.at.0, r.cont, r.eol, String::from_utf8_lossy(r.bytes).into_owned());
        block.records().map(|record| shown(record.expect("own encoding"))).collect()
    }

    #[test]
    fn a_line_goes_on_with_the_next_event() {
        let (mut lines, mut builder) = (Lines::default(), BlockBuilder::default());
        lines.write(&[piece(Stream::Stdout, 11, b"one\ntw"), piece(Stream::Stderr, 12, b"x")], &TIMES, &mut builder);
        lines = Lines::of_bits(lines.to_bits());
        lines.write(&[piece(Stream::Stdout, 5, b"o\n"), piece(Stream::Stderr, 99, b"\n\n")], &TIMES, &mut builder);
        let expected = [
            (Stream::Stdout, 11, false, true, "one"),
            (Stream::Stdout, 11, false, false, "tw"),
            (Stream::Stderr, 12, false, false, "x"),
            (Stream::Stdout, 10, true, true, "o"),
            (Stream::Stderr, 20, true, true, ""),
            (Stream::Stderr, 20, false, true, ""),
        ];
        assert_eq!(seen(&mut builder), expected.map(|(s, at, c, e, t)| (s, at, c, e, t.to_owned())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_byte_comes_back_and_no_record_is_too_long(
            events in prop::collection::vec(prop::collection::vec((prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..200), prop_oneof![4 => 1usize..4, 1 => 300usize..700]), 0..4), 0..6)
        ) {
            let (mut lines, mut builder, mut expected) = (Lines::default(), BlockBuilder::default(), Vec::new());
            for event in &events {
                let pieces: Vec<Piece> = event.iter().map(|(bytes, times)| piece(Stream::Stdout, 15, &bytes.repeat(*times))).collect();
                pieces.iter().for_each(|piece| expected.extend_from_slice(&piece.bytes));
                lines.write(&pieces, &TIMES, &mut builder);
            }
            let (mut back, mut open) = (Vec::new(), false);
            for record in builder.take().records() {
                let record = record.expect("own encoding");
                prop_assert!(record.bytes.len() <= MAX_RECORD_BYTES);
                prop_assert_eq!(record.cont, open);
                open = !record.eol;
                back.extend_from_slice(record.bytes);
                if record.eol {
                    back.push(b'\n');
                }
            }
            prop_assert_eq!(back, expected);
        }
    }
}
