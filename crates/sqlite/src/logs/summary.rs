//! What is known of a log without its records: how far it goes, what each attempt sent, whether it is sealed.
//! Folded from entry headers; the decision which records of an append are new is made here, purely.

use runvoy_model::log::Block;
use runvoy_ports::log::LogError;

use super::format::{Header, u32_at, u64_at};

/// How a log was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The last line's number as the execution's record has it.
    pub(crate) log_end: u64,
    /// The next line's number when the seal was set.
    pub(crate) at_line: u64,
}

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) next_line: u64,
    /// The first line still kept: not 1 if retention took the log and only output that came late is left.
    pub(crate) first_line: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) max_at: i64,
    pub(crate) seal: Option<Seal>,
    /// Per attempt, the sequence expected next; only those that sent numbered records.
    attempts: Vec<(u32, u64)>,
}

impl Default for Summary {
    fn default() -> Self {
        Self { next_line: 1, first_line: 1, raw_bytes: 0, stored_bytes: 0, max_at: i64::MIN, seal: None, attempts: Vec::new() }
    }
}

impl Summary {
    /// Whether the entry adds something that is not known yet.
    pub(crate) fn lacks(&self, header: &Header) -> bool {
        if header.seal { self.seal.is_none() } else { header.next_line() > self.next_line }
    }

    /// Takes an entry into account; one that is known already changes nothing.
    pub(crate) fn apply(&mut self, header: &Header) {
        if !self.lacks(header) {
            return;
        }
        if self.stored_bytes == 0 && header.late {
            self.first_line = header.first_line;
        }
        self.stored_bytes += header.stored_len();
        if header.seal {
            self.seal = Some(Seal { log_end: header.first_seq, at_line: header.first_line });
            // The mark also tells how far the log went, should entries before it be damaged.
            self.next_line = self.next_line.max(header.first_line);
            self.raw_bytes = self.raw_bytes.max(header.raw_start);
            return;
        }
        self.next_line = header.next_line();
        self.raw_bytes = header.raw_end();
        self.max_at = self.max_at.max(header.max_at);
        if header.first_seq > 0 {
            self.expect_seq(header.attempt, header.first_seq + u64::from(header.count));
        }
    }

    fn expect_seq(&mut self, attempt: u32, next: u64) {
        match self.attempts.iter_mut().find(|(known, _)| *known == attempt) {
            Some((_, expected)) => *expected = next.max(*expected),
            None => self.attempts.push((attempt, next)),
        }
    }

    /// The sequence expected next from an attempt.
    pub(crate) fn next_seq(&self, attempt: u32) -> u64 {
        self.attempts.iter().find(|(known, _)| *known == attempt).map_or(1, |(_, next)| *next)
    }

    /// What of a numbered block is new: its first number and the rest of it; `None` if all of it is a repeat.
    pub(crate) fn admit(&self, attempt: u32, first_seq: u64, block: &Block) -> Result<Option<(u64, Block)>, LogError> {
        let expected = self.next_seq(attempt);
        if first_seq == 0 || first_seq > expected {
            return Err(LogError::Gap { expected });
        }
        let known = expected - first_seq;
        if known == 0 {
            return Ok(Some((first_seq, block.clone())));
        }
        match u32::try_from(known) {
            Ok(known) if known < block.count => Ok(Some((expected, block.skip(known)))),
            _ => Ok(None),
        }
    }

    /// How many records the execution's record promises that the log did not have when it was sealed.
    pub(crate) fn lost_records(&self) -> u64 {
        self.seal.map_or(0, |seal| (seal.log_end + 1).saturating_sub(seal.at_line))
    }

    /// The summary as bytes in the footer of a compressed segment.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 12 * self.attempts.len());
        for number in [self.next_line, self.first_line, self.raw_bytes, self.stored_bytes, self.max_at.cast_unsigned()] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&u32::from(self.seal.is_some()).to_le_bytes());
        let seal = self.seal.unwrap_or(Seal { log_end: 0, at_line: 0 });
        out.extend_from_slice(&seal.log_end.to_le_bytes());
        out.extend_from_slice(&seal.at_line.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.attempts.len()).expect("attempts are few").to_le_bytes());
        for (attempt, next) in &self.attempts {
            out.extend_from_slice(&attempt.to_le_bytes());
            out.extend_from_slice(&next.to_le_bytes());
        }
        out
    }

    /// The summary from a footer; `None` if the bytes are too few.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < 64 {
            return None;
        }
        let count = u32_at(bytes, 60) as usize;
        let attempts = bytes.get(64..64 + count.checked_mul(12)?)?;
        let seal = Seal { log_end: u64_at(bytes, 44), at_line: u64_at(bytes, 52) };
        Some(Self {
            next_line: u64_at(bytes, 0),
            first_line: u64_at(bytes, 8),
            raw_bytes: u64_at(bytes, 16),
            stored_bytes: u64_at(bytes, 24),
            max_at: u64_at(bytes, 32).cast_signed(),
            seal: (u32_at(bytes, 40) == 1).then_some(seal),
            attempts: attempts.chunks_exact(12).map(|pair| (u32_at(pair, 0), u64_at(pair, 4))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};
    use runvoy_model::time::UnixMs;

    use super::*;

    fn block(count: u32) -> Block {
        let mut builder = BlockBuilder::default();
        for _ in 0..count {
            builder.push(Record { at: UnixMs(1), stream: Stream::Stdout, cont: false, eol: true, bytes: b"x" });
        }
        builder.take()
    }

    #[test]
    fn a_repeat_is_dropped_an_overlap_trimmed_and_a_hole_told() {
        let mut log = Summary::default();
        log.expect_seq(2, 11);
        let admitted = |first_seq, count| log.admit(2, first_seq, &block(count)).map(|new| new.map(|(seq, b)| (seq, b.count)));
        assert_eq!(admitted(11, 3).expect("next"), Some((11, 3)));
        assert_eq!(admitted(9, 2).expect("repeat"), None);
        assert_eq!(admitted(1, 4).expect("old repeat"), None);
        assert_eq!(admitted(9, 5).expect("overlap"), Some((11, 3)));
        assert!(matches!(admitted(12, 1), Err(LogError::Gap { expected: 11 })));
        assert!(matches!(admitted(0, 1), Err(LogError::Gap { expected: 11 })));
        assert!(matches!(log.admit(3, 2, &block(1)), Err(LogError::Gap { expected: 1 })));
    }

    #[test]
    fn a_summary_survives_its_bytes() {
        let mut log = Summary { next_line: 9, raw_bytes: 100, stored_bytes: 300, max_at: -5, ..Summary::default() };
        assert_eq!(Summary::decode(&log.encode()).as_ref(), Some(&log));
        log.seal = Some(Seal { log_end: 12, at_line: 9 });
        log.expect_seq(1, 4);
        log.expect_seq(7, 2);
        assert_eq!(Summary::decode(&log.encode()).as_ref(), Some(&log));
        assert_eq!(log.lost_records(), 4);
        assert_eq!(Summary::decode(&log.encode()[..70]), None);
    }
}
