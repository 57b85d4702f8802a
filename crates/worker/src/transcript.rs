//! What git writes while it clones, as lines of the platform's own: one per line, without control characters, so that a hostile server
//! cannot draw on anybody's terminal. Masking is the recorder's.

use runvoy_model::log::Stream;

/// A line that never ends is cut here.
const LONGEST_LINE: usize = 8 * 1024;
/// So much is kept of what git said last.
const LAST_WORDS: usize = 500;

/// So many lines of git's, and bytes of them, are kept: a server may have it say whatever it likes.
const MOST_LINES: usize = 10_000;
const MOST_BYTES: usize = 1 << 20;

/// Collects both streams of a clone.
#[derive(Default)]
pub(crate) struct Transcript {
    lines: usize,
    bytes: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    last: String,
    /// `last` says what went wrong.
    is_failure: bool,
}

impl Transcript {
    /// Takes bytes as they were read and gives back the lines that are whole.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<String> {
        let mut open = std::mem::take(self.open(stream));
        let mut lines = Vec::new();
        for byte in bytes {
            match byte {
                // Progress is drawn over and over on one line.
                b'\n' | b'\r' => lines.extend(self.line(&std::mem::take(&mut open))),
                byte => open.push(*byte),
            }
            if open.len() >= LONGEST_LINE {
                lines.extend(self.line(&std::mem::take(&mut open)));
            }
        }
        *self.open(stream) = open;
        lines
    }

    /// Gives back what was written without a newline at its end.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let open = [std::mem::take(&mut self.stdout), std::mem::take(&mut self.stderr)];
        open.iter().filter_map(|open| self.line(open)).collect()
    }

    /// What git said last; what it said of a failure, if it did.
    pub(crate) fn last_words(self) -> String {
        if self.last.is_empty() { "git did not say why".to_owned() } else { self.last }
    }

    fn open(&mut self, stream: Stream) -> &mut Vec<u8> {
        if stream == Stream::Stderr { &mut self.stderr } else { &mut self.stdout }
    }

    fn line(&mut self, bytes: &[u8]) -> Option<String> {
        let text: String = String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let failure = ["fatal: ", "error: "].iter().find_map(|mark| text.strip_prefix(mark));
        if failure.is_some() || !self.is_failure {
            self.last = failure.unwrap_or(text).chars().take(LAST_WORDS).collect();
            self.is_failure |= failure.is_some();
        }
        if self.lines > MOST_LINES || self.bytes > MOST_BYTES {
            return None;
        }
        (self.lines, self.bytes) = (self.lines + 1, self.bytes + text.len());
        let is_kept = self.lines <= MOST_LINES && self.bytes <= MOST_BYTES;
        Some(if is_kept { format!("git: {text}") } else { "git wrote more, which was left out".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_harmless() {
        let mut transcript = Transcript::default();
        assert_eq!(transcript.push(Stream::Stderr, b"Clon"), Vec::<String>::new());
        let lines = transcript.push(Stream::Stderr, b"ing\rremote: \x1b[31mred\x07\n\n");
        assert_eq!(lines, ["git: Cloning", "git: remote: [31mred"]);
        transcript.push(Stream::Stdout, b"rest");
        assert_eq!(transcript.finish(), ["git: rest"]);
        assert!(transcript.finish().is_empty());
    }

    #[test]
    fn the_failure_is_what_is_remembered() {
        let mut transcript = Transcript::default();
        transcript.push(Stream::Stderr, b"Cloning\nfatal: repository not found\nPlease make sure\n");
        assert_eq!(transcript.last_words(), "repository not found");
        let mut other = Transcript::default();
        other.push(Stream::Stderr, b"Killed\n");
        assert_eq!(other.last_words(), "Killed");
        assert_eq!(Transcript::default().last_words(), "git did not say why");
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_failure_is_heard_all_the_same() {
        for line in ["x\n".to_owned(), format!("{}\n", "x".repeat(LONGEST_LINE - 1))] {
            let mut transcript = Transcript::default();
            let (mut lines, mut bytes, mut last) = (0, 0, String::new());
            for _ in 0..MOST_LINES * 2 {
                for kept in transcript.push(Stream::Stderr, line.as_bytes()) {
                    (lines, bytes, last) = (lines + 1, bytes + kept.len(), kept);
                }
            }
            assert_eq!(last, "git wrote more, which was left out");
            assert!(
                lines <= MOST_LINES + 1 && bytes <= MOST_BYTES + MOST_LINES * "git: ".len() + last.len(),
                "{lines} lines, {bytes} bytes"
            );
            assert!(transcript.push(Stream::Stderr, b"fatal: early EOF\n").is_empty());
            assert_eq!(transcript.last_words(), "early EOF");
        }
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut transcript = Transcript::default();
        assert_eq!(transcript.push(Stream::Stdout, &vec![b'x'; LONGEST_LINE * 2 + 1]).len(), 2);
    }
}
