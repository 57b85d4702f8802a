//! Turns the bytes a command writes into log records: one per line, at most 64 KiB each, in the order they were
//! read. A line that is not finished is held back until it is, or until the command falls silent.

use std::sync::Arc;

use runvoy_model::log::{Block, BlockBuilder, MAX_RECORD_BYTES, Record, Stream};
use runvoy_model::time::UnixMs;

use crate::mask::{Mask, Masker};

/// Collects records of both streams into blocks. Secrets are masked where bytes come in, so nothing in here has any.
#[derive(Default)]
pub(crate) struct Recorder {
    builder: BlockBuilder,
    stdout: Partial,
    stderr: Partial,
    mask: Option<Arc<Mask>>,
}

/// The unfinished line of one stream.
#[derive(Default)]
struct Partial {
    masker: Option<Masker>,
    bytes: Vec<u8>,
    /// A record of this line has been written already.
    cont: bool,
}

impl Recorder {
    /// A recorder that masks.
    pub(crate) fn new(mask: Option<Arc<Mask>>) -> Self {
        let partial = || Partial { masker: mask.clone().map(Masker::new), ..Partial::default() };
        Self { stdout: partial(), stderr: partial(), mask, ..Self::default() }
    }

    /// Takes bytes as they were read.
    pub(crate) fn write(&mut self, stream: Stream, at: UnixMs, bytes: &[u8]) {
        let Self { builder, stdout, stderr, .. } = self;
        let partial = if stream == Stream::Stderr { stderr } else { stdout };
        match &mut partial.masker {
            None => partial.write(builder, stream, at, bytes),
            Some(masker) => {
                let mut masked = Vec::with_capacity(bytes.len());
                masker.push(bytes, &mut masked);
                partial.write(builder, stream, at, &masked);
            }
        }
    }

    /// Adds a line of the platform's own.
    pub(crate) fn platform(&mut self, at: UnixMs, text: &str) {
        let text = format!("### runvoy: {}", self.masked(text));
        for (i, piece) in text.as_bytes().chunks(MAX_RECORD_BYTES).enumerate() {
            let eol = (i + 1) * MAX_RECORD_BYTES >= text.len();
            self.builder.push(Record { at, stream: Stream::Platform, cont: i > 0, eol, bytes: piece });
        }
    }

    /// What is masked.
    pub(crate) fn mask(&self) -> Option<Arc<Mask>> {
        self.mask.clone()
    }

    /// A text without secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.mask.as_ref().map_or_else(|| text.to_owned(), |mask| mask.text(text))
    }

    /// There are records to take, or an unfinished line is held back.
    pub(crate) fn has_news(&self) -> bool {
        !self.builder.is_empty() || !self.stdout.bytes.is_empty() || !self.stderr.bytes.is_empty()
    }

    /// Both streams have ended: whatever is left becomes records.
    pub(crate) fn finish(&mut self, at: UnixMs) {
        for (partial, stream) in [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)] {
            if let Some(masker) = &mut partial.masker {
                let mut masked = Vec::new();
                masker.finish(&mut masked);
                partial.write(&mut self.builder, stream, at, &masked);
            }
        }
        self.release(at);
    }

    /// The command has fallen silent: unfinished lines become records as they are, but for what may be half a secret.
    pub(crate) fn release(&mut self, at: UnixMs) {
        self.stdout.release(&mut self.builder, Stream::Stdout, at);
        self.stderr.release(&mut self.builder, Stream::Stderr, at);
    }

    /// The records since the last call, if there are any.
    pub(crate) fn take(&mut self) -> Option<Block> {
        (!self.builder.is_empty()).then(|| self.builder.take())
    }
}

impl Partial {
    fn write(&mut self, builder: &mut BlockBuilder, stream: Stream, at: UnixMs, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.finish_line(builder, stream, at, &rest[..end]);
            rest = &rest[end + 1..];
        }
        self.hold(builder, stream, at, rest);
    }

    fn finish_line(&mut self, builder: &mut BlockBuilder, stream: Stream, at: UnixMs, tail: &[u8]) {
        if self.bytes.is_empty() && tail.len() <= MAX_RECORD_BYTES {
            builder.push(Record { at, stream, cont: self.cont, eol: true, bytes: tail });
        } else {
            self.bytes.extend_from_slice(tail);
            self.write_whole_pieces(builder, stream, at, false);
            builder.push(Record { at, stream, cont: self.cont, eol: true, bytes: &self.bytes });
            self.bytes.clear();
        }
        self.cont = false;
    }

    fn hold(&mut self, builder: &mut BlockBuilder, stream: Stream, at: UnixMs, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
            self.write_whole_pieces(builder, stream, at, true);
        }
    }

    /// Writes pieces of the largest size; the last one is kept for its newline unless it may go `too`.
    fn write_whole_pieces(&mut self, builder: &mut BlockBuilder, stream: Stream, at: UnixMs, full_too: bool) {
        let mut written = 0;
        let goes = |left: usize| if full_too { left >= MAX_RECORD_BYTES } else { left > MAX_RECORD_BYTES };
        while goes(self.bytes.len() - written) {
            let bytes = &self.bytes[written..written + MAX_RECORD_BYTES];
            builder.push(Record { at, stream, cont: self.cont, eol: false, bytes });
            self.cont = true;
            written += MAX_RECORD_BYTES;
        }
        self.bytes.drain(..written);
    }

    fn release(&mut self, builder: &mut BlockBuilder, stream: Stream, at: UnixMs) {
        if !self.bytes.is_empty() {
            builder.push(Record { at, stream, cont: self.cont, eol: false, bytes: &self.bytes });
            self.bytes.clear();
            self.cont = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT: UnixMs = UnixMs(5);

    fn texts(recorder: &mut Recorder) -> Vec<(String, bool, bool)> {
        let Some(block) = recorder.take() else { return Vec::new() };
        let text = |r: Record<'_>| (String::from_utf8_lossy(r.bytes).into_owned(), r.cont, r.eol);
        block.records().map(|record| text(record.expect("own encoding"))).collect()
    }

    #[test]
    fn a_line_is_a_record() {
        let mut recorder = Recorder::default();
        recorder.write(Stream::Stdout, AT, b"one\ntwo\n\nthr");
        assert_eq!(texts(&mut recorder), [("one".into(), false, true), ("two".into(), false, true), (String::new(), false, true)]);
        assert!(recorder.has_news());
        recorder.write(Stream::Stdout, AT, b"ee\n");
        assert_eq!(texts(&mut recorder), [("three".into(), false, true)]);
        assert!(!recorder.has_news());
    }

    #[test]
    fn a_prompt_becomes_a_record_in_the_silence_and_its_line_goes_on() {
        let mut recorder = Recorder::default();
        recorder.write(Stream::Stdout, AT, b"name? ");
        recorder.release(AT);
        recorder.write(Stream::Stdout, AT, b"Ada\nnext\n");
        let seen = texts(&mut recorder);
        assert_eq!(seen, [("name? ".into(), false, false), ("Ada".into(), true, true), ("next".into(), false, true)]);
    }

    #[test]
    fn streams_keep_their_order_and_their_own_unfinished_lines() {
        let mut recorder = Recorder::default();
        recorder.write(Stream::Stdout, AT, b"a");
        recorder.write(Stream::Stderr, AT, b"x\n");
        recorder.write(Stream::Stdout, AT, b"b\n");
        assert_eq!(texts(&mut recorder), [("x".into(), false, true), ("ab".into(), false, true)]);
    }

    #[test]
    fn a_secret_written_in_two_halves_with_a_silence_between_is_masked() {
        let mut recorder = Recorder::new(Mask::new(&["hunter2-hunter2"]).expect("few bytes"));
        recorder.write(Stream::Stdout, AT, b"it is hunter2-");
        recorder.release(AT);
        recorder.write(Stream::Stderr, AT, b"hunter2-hunter2\n");
        recorder.write(Stream::Stdout, AT, b"hunter2!\n");
        recorder.finish(AT);
        let seen = texts(&mut recorder);
        assert_eq!(seen, [("it is ".into(), false, false), ("***".into(), false, true), ("***!".into(), true, true)]);
    }

    #[test]
    fn the_platforms_own_lines_are_masked() {
        let mut recorder = Recorder::new(Mask::new(&["hunter2-hunter2"]).expect("few bytes"));
        recorder.platform(AT, "git: fatal: hunter2-hunter2");
        assert_eq!(texts(&mut recorder)[0].0, "### runvoy: git: fatal: ***");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_byte_comes_back_and_no_record_is_too_long(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..200), prop_oneof![4 => 1usize..4, 1 => 300usize..700]), 0..12)
        ) {
            let mut recorder = Recorder::default();
            let mut expected = Vec::new();
            for (silence, piece, times) in &pieces {
                let bytes = piece.repeat(*times);
                recorder.write(Stream::Stdout, AT, &bytes);
                expected.extend(bytes);
                if *silence {
                    recorder.release(AT);
                }
            }
            recorder.release(AT);
            let mut back = Vec::new();
            if let Some(block) = recorder.take() {
                let mut line_open = false;
                for record in block.records() {
                    let record = record.expect("own encoding");
                    prop_assert!(record.bytes.len() <= MAX_RECORD_BYTES);
                    prop_assert_eq!(record.cont, line_open);
                    line_open = !record.eol;
                    back.extend_from_slice(record.bytes);
                    if record.eol {
                        back.push(b'\n');
                    }
                }
            }
            prop_assert_eq!(back, expected);
        }
    }
}
