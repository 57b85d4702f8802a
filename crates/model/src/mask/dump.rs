//! Reads the bytes out of lines that `xxd`, `hexdump` and `od` write, in each way that such a line can be read, and looks for secrets in them. A
//! line that does not look like one of a dump is passed over, which most are after their first few bytes.
//!
//! What is found is masked from its first bytes to the end of the line with its last, where the same bytes may stand once more as characters.

use super::automaton::Automaton;
use super::reading::Reading;

/// The ways to read a line: bytes in hexadecimal, words of them with the lowest byte first, octal, decimal, and cells of four columns with a character in each.
const READINGS: usize = 5;
const CELLS: usize = 4;
/// An offset has so many digits.
const OFFSET_DIGITS: std::ops::RangeInclusive<usize> = 6..=16;
/// An octal number of eight bytes has so many digits.
const LONGEST_GROUP: usize = 22;
/// A line has at most so many columns, and [`COLUMNS_PER_BYTE`] more for each byte that was read.
const MAX_COLUMNS: usize = 96;
const COLUMNS_PER_BYTE: usize = 8;

#[derive(Default)]
pub(super) struct Dump {
    readings: [Reading; READINGS],
    line: Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Start,
    Offset,
    Data,
    /// What follows the data: the same as characters.
    Beside,
    /// The line is none of a dump.
    Skipped,
}

/// What is known of the line so far.
#[derive(Default)]
struct Line {
    place: Place,
    columns: usize,
    /// Which readings are impossible.
    dead: [bool; READINGS],
    /// Where cells begin.
    cells_from: usize,
    /// The last four bytes.
    last: [u8; 4],
    /// How many bytes the group has that is being read.
    group: usize,
    blanks: usize,
    /// The offset ended with a colon, as `xxd` writes it.
    has_colon: bool,
    /// How many bytes were read.
    bytes: usize,
    /// A secret was found: the rest of the line is masked.
    is_masked: bool,
}

/// A part of a stream: what is not given out yet, and how much was.
#[derive(Clone, Copy)]
pub(super) struct Window<'h> {
    pub(super) held: &'h [u8],
    pub(super) given: u64,
}

impl Window<'_> {
    const fn place(&self, at: usize) -> u64 {
        self.given + at as u64
    }

    fn index(&self, place: u64) -> usize {
        usize::try_from(place.saturating_sub(self.given)).unwrap_or(usize::MAX).min(self.held.len())
    }
}

impl Dump {
    /// Takes the bytes from `from` on, and says which are to be masked.
    pub(super) fn scan(&mut self, automaton: &Automaton, window: Window<'_>, from: usize, cover: &mut dyn FnMut(usize, usize)) {
        let (held, mut at) = (window.held, from);
        while at < held.len() {
            if self.line.place == Place::Skipped {
                let end = memchr::memchr(b'\n', &held[at..]).map_or(held.len(), |length| at + length);
                if self.line.is_masked {
                    cover(at, end);
                }
                at = end;
            }
            let Some(byte) = held.get(at) else { return };
            if *byte == b'\n' {
                self.end_group(automaton, window, at, cover);
                self.end_line();
            } else {
                self.take(automaton, window, at, cover);
                if self.line.is_masked {
                    cover(at, at + 1);
                }
            }
            at += 1;
        }
    }

    /// The stream ends: the last group is whole.
    pub(super) fn finish(&mut self, automaton: &Automaton, window: Window<'_>, cover: &mut dyn FnMut(usize, usize)) {
        let end = window.held.len();
        self.end_group(automaton, window, end, cover);
        if let Some(place) = self.readings.iter().filter_map(|reading| reading.cut_off(automaton)).min() {
            cover(window.index(place), end);
        }
        *self = Self::default();
    }

    /// Where what could still be a secret begins, `end` being where the stream is.
    pub(super) fn begins(&self, end: u64) -> Option<u64> {
        let group = self.reads_groups() && self.line.group > 0;
        let cell = self.line.columns.saturating_sub(self.line.cells_from) % 4;
        let cell = if self.reads_cells() { cell.saturating_sub(1) } else { 0 };
        let open = cell.max(if group { self.line.group } else { 0 }) as u64;
        let begun = self.readings.iter().filter_map(Reading::begins).min();
        begun.into_iter().chain((open > 0).then(|| end - open)).min()
    }

    fn reads_groups(&self) -> bool {
        self.line.place == Place::Data && !self.line.dead[..CELLS].iter().all(|dead| *dead)
    }

    fn reads_cells(&self) -> bool {
        matches!(self.line.place, Place::Data | Place::Beside) && !self.line.dead[CELLS]
    }

    /// Takes one byte of a line.
    fn take(&mut self, automaton: &Automaton, window: Window<'_>, at: usize, cover: &mut dyn FnMut(usize, usize)) {
        let byte = window.held[at];
        let line = &mut self.line;
        line.columns += 1;
        line.last = [line.last[1], line.last[2], line.last[3], byte];
        if line.columns > MAX_COLUMNS + COLUMNS_PER_BYTE * line.bytes {
            return self.skip();
        }
        match (line.place, byte) {
            // `od -An` leaves the offset out.
            (Place::Start, b' ') => line.place = Place::Data,
            (Place::Start, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => line.place = Place::Offset,
            (Place::Offset, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if line.columns <= *OFFSET_DIGITS.end() => {}
            (Place::Offset, b':' | b' ') if OFFSET_DIGITS.contains(&(line.columns - 1)) => {
                (line.place, line.cells_from) = (Place::Data, line.columns - 1);
                (line.has_colon, line.dead[CELLS]) = (byte == b':', byte == b':');
            }
            (Place::Data | Place::Beside, _) => {
                self.take_cell(automaton, window, at, cover);
                self.take_grouped(automaton, window, at, cover);
                if self.line.dead.iter().all(|dead| *dead) {
                    self.skip();
                }
            }
            _ => self.skip(),
        }
    }

    fn take_cell(&mut self, automaton: &Automaton, window: Window<'_>, at: usize, cover: &mut dyn FnMut(usize, usize)) {
        if !self.reads_cells() || !(self.line.columns - self.line.cells_from).is_multiple_of(4) {
            return;
        }
        let Some(byte) = cell(self.line.last) else { return self.kill(CELLS) };
        self.line.bytes += 1;
        // The first of its columns is always blank.
        let place = window.place(at).saturating_sub(2);
        if let Some(start) = self.readings[CELLS].step(automaton, byte, place) {
            cover(window.index(start), at + 1);
            self.line.is_masked = true;
        }
    }

    fn take_grouped(&mut self, automaton: &Automaton, window: Window<'_>, at: usize, cover: &mut dyn FnMut(usize, usize)) {
        if !self.reads_groups() {
            return;
        }
        match window.held[at] {
            b' ' | b',' | b'\r' => {
                self.end_group(automaton, window, at, cover);
                self.line.blanks += 1;
                if self.line.has_colon && self.line.blanks > 1 && self.line.bytes > 0 {
                    self.line.place = Place::Beside;
                }
            }
            b'|' | b'>' if self.line.group == 0 && self.line.bytes > 0 => self.line.place = Place::Beside,
            byte if byte.is_ascii_hexdigit() || byte == b'x' && self.line.group == 1 => {
                (self.line.group, self.line.blanks) = (self.line.group + 1, 0);
                if self.line.group > LONGEST_GROUP {
                    (0..CELLS).for_each(|reading| self.kill(reading));
                }
            }
            _ => (0..CELLS).for_each(|reading| self.kill(reading)),
        }
    }

    /// A group of digits is whole: each reading takes its bytes.
    fn end_group(&mut self, automaton: &Automaton, window: Window<'_>, end: usize, cover: &mut dyn FnMut(usize, usize)) {
        if !self.reads_groups() || self.line.group == 0 {
            return;
        }
        let start = end - self.line.group;
        let text = &window.held[start..end];
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        let mut most = 0;
        for reading in 0..CELLS {
            if self.line.dead[reading] {
                continue;
            }
            let Some(bytes) = Group::read(reading, digits) else {
                self.kill(reading);
                continue;
            };
            most = most.max(bytes.count);
            for byte in &bytes.bytes[..bytes.count] {
                if let Some(start) = self.readings[reading].step(automaton, *byte, window.place(start)) {
                    cover(window.index(start), end);
                    self.line.is_masked = true;
                }
            }
        }
        (self.line.group, self.line.bytes) = (0, self.line.bytes + most);
    }

    fn end_line(&mut self) {
        // Dumps have no such lines but their last.
        if self.line.bytes == 0 {
            self.readings.iter_mut().for_each(Reading::forget);
        }
        self.line = Line::default();
    }

    fn kill(&mut self, reading: usize) {
        self.line.dead[reading] = true;
        self.readings[reading].forget();
    }

    fn skip(&mut self) {
        self.readings.iter_mut().for_each(Reading::forget);
        self.line.place = Place::Skipped;
    }
}

/// The bytes of one group of digits.
struct Group {
    bytes: [u8; 8],
    count: usize,
}

impl Group {
    /// What a group says in one of the readings; `None` where it says nothing.
    fn read(reading: usize, digits: &[u8]) -> Option<Self> {
        let number = |radix| u64::from_str_radix(str::from_utf8(digits).ok()?, radix).ok();
        match (reading, digits.len()) {
            (0, 2 | 4 | 6 | 8 | 10 | 12 | 14 | 16) => {
                let (mut bytes, count) = (number(16)?.to_be_bytes(), digits.len() / 2);
                bytes.rotate_left(8 - count);
                Some(Self { bytes, count })
            }
            (1, 2 | 4 | 8 | 16) => Some(Self { bytes: number(16)?.to_le_bytes(), count: digits.len() / 2 }),
            (2, length @ (3 | 6 | 11 | 22)) => {
                let count = match length {
                    3 => 1,
                    6 => 2,
                    11 => 4,
                    _ => 8,
                };
                Self::within(number(8)?, count)
            }
            (3, 1..=3) => Self::within(number(10)?, 1),
            _ => None,
        }
    }

    fn within(number: u64, count: usize) -> Option<Self> {
        let bytes = number.to_le_bytes();
        bytes[count..].iter().all(|byte| *byte == 0).then_some(Self { bytes, count })
    }
}

/// The byte that `od -c`, `od -a` and `hexdump -c` write in four columns so.
fn cell(columns: [u8; 4]) -> Option<u8> {
    Some(match &columns {
        [b' ', b' ', b' ', byte @ b' '..=b'~'] => *byte,
        [b' ', b' ', b'\\', byte] => match byte {
            b'0' => 0,
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            _ => return None,
        },
        b"  sp" => b' ',
        b"  nl" | b"  lf" => b'\n',
        b"  ht" => b'\t',
        b"  cr" => b'\r',
        [b' ', octal @ ..] => u8::from_str_radix(str::from_utf8(octal).ok()?, 8).ok()?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a secret is found in a text, however it is cut into chunks.
    fn found(text: &str) -> Vec<String> {
        let automaton = Automaton::new(vec![b"hunter2".to_vec()]);
        let mut told = Vec::new();
        for size in [1, 3, text.len().max(1)] {
            let (mut dump, mut covered) = (Dump::default(), vec![false; text.len()]);
            for from in (0..text.len()).step_by(size) {
                let window = Window { held: &text.as_bytes()[..text.len().min(from + size)], given: 0 };
                dump.scan(&automaton, window, from, &mut |start, end| covered[start..end].fill(true));
            }
            dump.finish(&automaton, Window { held: text.as_bytes(), given: 0 }, &mut |start, end| covered[start..end].fill(true));
            let masked: String = text.chars().zip(&covered).filter(|(_, covered)| **covered).map(|(c, _)| c).collect();
            told.push(masked);
        }
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
        told
    }

    #[test]
    fn the_layouts_of_xxd_hexdump_and_od_are_read() {
        for (text, masked) in [
            ("00000000: 7868 756e 7465 7232 78  xhunter2x\nnext", "7868 756e 7465 7232 78  xhunter2x"),
            ("00000000  78 68 75 6e 74 65 72 32  78  |xhunter2x|\nnext", "68 75 6e 74 65 72 32  78  |xhunter2x|"),
            ("0000000 6878 6e75 6574 3272\n0000008\n", "6878 6e75 6574 3272"),
            ("0000000 072550 072156 071145 000062\n", "072550 072156 071145 000062"),
            ("0000000 150 165 156 164\n0000004 145 162 062 001\n", "150 165 156 164\n0000004 145 162 062 001"),
            ("0000000   h   u   n   t   e   r\n0000006   2  \\n\n", "  h   u   n   t   e   r\n0000006   2  \\n"),
            (" 104 117 110 116 101 114  50\n", "104 117 110 116 101 114  50"),
            ("  0x68, 0x75, 0x6e, 0x74, 0x65, 0x72, 0x32, 0x0a\n", "0x68, 0x75, 0x6e, 0x74, 0x65, 0x72, 0x32, 0x0a"),
            ("00000000: 746e7568 00327265  hunter2.\n", "746e7568 00327265  hunter2."),
        ] {
            let trimmed: Vec<String> = found(text).iter().map(|told| told.trim().to_owned()).collect();
            assert_eq!(trimmed[0], masked.trim(), "{text}");
        }
    }

    #[test]
    fn other_lines_are_passed_over() {
        for text in ["took 68 75 6e 74 65 72 32\n", "    at 68\n", "0000000 68 75\nother\n0000002 6e 74 65 72 32\n", "\n\n", ""] {
            assert_eq!(found(text)[0], "", "{text}");
        }
    }
}
