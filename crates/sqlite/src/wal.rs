//! A look at the write-ahead log before SQLite reads it. SQLite takes the first frame with a wrong checksum for the end of the log, which is
//! right for a log that a crash cut short and wrong for one that was changed in the middle: everything acknowledged after that frame would
//! be gone without a word. The two can be told apart, because every commit is synced before the next begins: a crash leaves at
//! most one commit behind the last good frame. Two or more, linked to each other, are damage.
//!
//! What cannot be told apart is a change inside the very last commit after an unclean stop. Never writes.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// What is wrong with a write-ahead log, if it is beyond what a crash can do.
pub(crate) fn damage(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut log = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    // A log shorter than its header was never synced, and one of zeros never written.
    if read_whole(&mut log, &mut header)? < HEADER || header == [0; HEADER] {
        return Ok(None);
    }
    let Some(reader) = Header::parse(&header) else { return Ok(Some("the header of the write-ahead log is changed".into())) };
    reader.judge(&mut log)
}

struct Header {
    big_endian: bool,
    page_size: usize,
    salts: [u8; 8],
    sum: (u32, u32),
}

impl Header {
    fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let magic = word(&bytes[0..]);
        if magic & !1 != MAGIC {
            return None;
        }
        let big_endian = magic & 1 == 1;
        let sum = checksum(big_endian, (0, 0), &bytes[..24]);
        let page_size = usize::try_from(word(&bytes[8..])).ok()?;
        let salts = bytes[16..24].try_into().expect("eight bytes");
        (sum == pair(&bytes[24..])).then_some(Self { big_endian, page_size, salts, sum })
    }

    /// Follows the frames: first the good ones, then those that are linked behind a bad one.
    fn judge(&self, log: &mut impl Read) -> io::Result<Option<String>> {
        let mut frame = vec![0; FRAME_HEADER + self.page_size];
        // What the next frame may be linked to: behind a bad frame, the sum that it stores or the sum that it has, for either may be the changed one.
        let mut sums = [self.sum; 2];
        let mut bad = None;
        let mut commits_behind = 0;
        for number in 1u64.. {
            if read_whole(log, &mut frame)? < frame.len() {
                break;
            }
            let stored = pair(&frame[16..]);
            let own = sums.map(|sum| self.sum_of(sum, &frame));
            let good = own.contains(&stored) && frame[8..16] == self.salts;
            match bad {
                None if !good => bad = Some(number),
                Some(_) if !good => break,
                _ => {}
            }
            let commits = word(&frame[4..]) != 0;
            commits_behind += u32::from(bad.is_some() && commits);
            if commits_behind >= 2 {
                return Ok(bad.map(|number| format!("frame {number} of the write-ahead log is changed")));
            }
            sums = [stored, if good { stored } else { own[0] }];
        }
        Ok(None)
    }

    fn sum_of(&self, before: (u32, u32), frame: &[u8]) -> (u32, u32) {
        let head = checksum(self.big_endian, before, &frame[..8]);
        checksum(self.big_endian, head, &frame[FRAME_HEADER..])
    }
}

/// SQLite's checksum over pairs of 32-bit words.
fn checksum(big_endian: bool, start: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let read = |bytes: &[u8]| {
        let bytes = bytes.try_into().expect("four bytes");
        if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    bytes.chunks_exact(8).fold(start, |(a, b), words| {
        let a = a.wrapping_add(read(&words[..4])).wrapping_add(b);
        let b = b.wrapping_add(read(&words[4..])).wrapping_add(a);
        (a, b)
    })
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn pair(bytes: &[u8]) -> (u32, u32) {
    (word(bytes), word(&bytes[4..]))
}

/// Fills the buffer as far as there are bytes.
fn read_whole(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
