//! A sparse index over the entries of one file: which offset to start from to find a line, a raw byte or a time.
//! One point per 128 KiB of data keeps a 1 GB log's index at a quarter of a megabyte.

use super::format::Header;

const SPACING: u64 = 128 << 10;

/// What a reader looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seek {
    /// The entry with this line.
    Line(u64),
    /// The entry with this byte of the raw output.
    Raw(u64),
    /// The first entry with a record of this time or later.
    Time(i64),
}

/// What is known of a place in a log: everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    /// The first line from here on.
    pub(crate) line: u64,
    /// Raw bytes before.
    pub(crate) raw: u64,
    /// The latest time before; clocks step, so times alone do not rise, but this does.
    pub(crate) max_before: i64,
}

impl Point {
    /// Whether what is sought cannot stand before this point.
    pub(crate) fn is_at_or_before(&self, seek: Seek) -> bool {
        match seek {
            Seek::Line(line) => self.line <= line,
            Seek::Raw(raw) => self.raw <= raw,
            Seek::Time(at) => self.max_before < at,
        }
    }
}

/// The points of one file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    points: Vec<(Point, u32)>,
    since: u64,
}

impl Index {
    /// Takes note of the entry at `offset`, before which the log stood at `before`.
    pub(crate) fn note(&mut self, offset: u64, before: Point, header: &Header) {
        if self.points.is_empty() || self.since >= SPACING {
            self.points.push((before, u32::try_from(offset).expect("files are kept below 4 GiB")));
            self.since = 0;
        }
        self.since += header.stored_len();
    }

    /// The last offset that is known to be not behind what is sought; `None` for the file's beginning.
    pub(crate) fn offset(&self, seek: Seek) -> Option<u64> {
        let after = self.points.partition_point(|(point, _)| point.is_at_or_before(seek));
        after.checked_sub(1).map(|i| u64::from(self.points[i].1))
    }

    /// How many points it holds.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runvoy_model::id::ExecutionId;

    #[test]
    fn a_gigabyte_costs_a_few_hundred_kilobytes_and_is_found_again() {
        let mut index = Index::default();
        let entry = Header {
            id: ExecutionId::from_bytes([0; 16]),
            attempt: 1,
            first_line: 0,
            raw_start: 0,
            raw_len: 0,
            first_seq: 0,
            count: 10,
            first_at: 0,
            last_at: 0,
            max_at: 0,
            late: false,
            seal: false,
            payload_len: 904,
        };
        for i in 0..1_000_000u64 {
            let before = Point { line: 1 + i * 10, raw: i * 1000, max_before: i as i64 };
            index.note(16 + i * 1000, before, &entry);
        }
        let bytes = index.len() * size_of::<(Point, u32)>();
        assert!(bytes < 300 << 10, "{bytes}");
        for i in [0u64, 1, 131, 132, 500_000, 999_999] {
            for seek in [Seek::Line(1 + i * 10), Seek::Raw(i * 1000), Seek::Time(i as i64 + 1)] {
                let offset = index.offset(seek).expect("a point");
                assert!(offset <= 16 + i * 1000 && 16 + i * 1000 - offset <= SPACING + 1000, "{seek:?} {offset}");
            }
        }
    }
}
