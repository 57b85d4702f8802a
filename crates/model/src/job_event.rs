//! Job events as they are kept: what a worker published about an attempt, with output and texts taken out of it, so that they can be masked and become
//! lines without anybody here knowing the protocol. The envelope is for the edge alone. How an event becomes records of its log is in `record`, how its output becomes
//! lines is in `line`. Pure.

mod line;
mod record;

pub use self::line::Lines;
pub use self::record::{Assembler, InvalidEvent, Kept, Mark, Peeked, encode, peek};
use crate::log::Stream;
use crate::time::UnixMs;

/// The sequences of an attempt, as readers see them, begin with this many times the number of attempts before it.
pub const SEQUENCES_PER_ATTEMPT: u64 = 1 << 40;

/// Where an event stands among those of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The worker's number of it, below [`SEQUENCES_PER_ATTEMPT`].
    pub sequence: u64,
    /// Which part, from 0, where it was too large to be kept in one.
    pub part: u32,
}

impl Place {
    /// Before or at every place of an attempt.
    pub const FIRST: Self = Self { sequence: 0, part: 0 };

    /// The sequence that readers see.
    pub fn reader_sequence(self, attempt: u32) -> i64 {
        let before = u64::from(attempt.saturating_sub(1)).saturating_mul(SEQUENCES_PER_ATTEMPT);
        i64::try_from(before.saturating_add(self.sequence)).unwrap_or(i64::MAX)
    }

    /// The attempt and the place in it that a reader's sequence means; what is negative is the very first.
    pub fn of_reader(sequence: i64) -> (u32, Self) {
        let sequence = u64::try_from(sequence).unwrap_or(0);
        let attempt = u32::try_from(sequence / SEQUENCES_PER_ATTEMPT).unwrap_or(u32::MAX - 1) + 1;
        (attempt, Self { sequence: sequence % SEQUENCES_PER_ATTEMPT, part: 0 })
    }
}

/// One event, or one part of a large one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEvent {
    /// Its place.
    pub place: Place,
    /// What kind of event, by the protocol's number.
    pub kind: u8,
    /// When, as the worker says; where it did not, when the server got it.
    pub at: UnixMs,
    /// The event as it was published, without what is below.
    pub envelope: Vec<u8>,
    /// What the command wrote, in order.
    pub output: Vec<Piece>,
    /// Other texts that may hold anything, in order.
    pub texts: Vec<String>,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Standard output or standard error.
    pub stream: Stream,
    /// When it was read.
    pub at: UnixMs,
    /// The bytes.
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_has_its_own_range_of_a_readers_sequences() {
        let place = |sequence| Place { sequence, part: 0 };
        assert_eq!(place(7).reader_sequence(1), 7);
        assert_eq!(place(7).reader_sequence(3), (2 << 40) + 7);
        for (attempt, sequence) in [(1, 0), (1, SEQUENCES_PER_ATTEMPT - 1), (2, 0), (900, 5)] {
            assert_eq!(Place::of_reader(place(sequence).reader_sequence(attempt)), (attempt, place(sequence)));
        }
        assert_eq!(Place::of_reader(-5), (1, Place::FIRST));
        assert_eq!(place(1).reader_sequence(u32::MAX), i64::MAX, "nobody tries so often");
    }
}
