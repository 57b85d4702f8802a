//! The bytes of log files, format version 1. All integers are little-endian. Nothing here touches a file.
//!
//! # File header, 16 bytes, the same for every kind and every future version
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 6 | `rvlogj` journal, `rvlogs` segment, `rvlogz` framed (pack or compressed segment) |
//! | 6 | 1 | format version |
//! | 7 | 1 | 0 |
//! | 8 | 4 | salt, random for each file (framed: 0) |
//! | 12 | 4 | CRC-32 of the 12 bytes before |
//!
//! # Entry, in journals, segments and inside frames
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 4 | `RVE1` |
//! | 4 | 4 | CRC-32 of bytes 8 to 96, started with the salt |
//! | 8 | 4 | CRC-32 of the payload, started with the salt |
//! | 12 | 4 | payload length |
//! | 16 | 16 | execution id |
//! | 32 | 8 | number of the first record (seal: the next record's number) |
//! | 40 | 8 | raw bytes of the log before this entry |
//! | 48 | 4 | raw bytes that the records stand for |
//! | 52 | 4 | flags: 1 late, 2 seal marker |
//! | 56 | 8 | writer's number of the first record, 0 unnumbered (seal: `log_end`) |
//! | 64 | 8 | time that the first record's delta counts from |
//! | 72 | 8 | time of the last record |
//! | 80 | 8 | latest time of all records |
//! | 88 | 4 | attempt |
//! | 92 | 4 | how many records; 0 in a seal marker |
//! | 96 | – | payload: the block as `runvoy_model::log` encodes it |
//!
//! The header has a checksum of its own so that an index is rebuilt by reading headers alone. The salt is there because a command
//! decides what its payload holds: without it, output that imitates an entry could be taken for one when the scan
//! looks for the next good entry behind a damaged place.
//!
//! # Framed file
//!
//! Header, then zstd frames, each decompressing on its own to whole entries (ordered by execution, then line), then the footer: one
//! 64-byte place per frame, the summary of the log (compressed segments only), and a 32-byte trailer; see `framed.rs`.

use runvoy_model::id::ExecutionId;

/// The newest format that this program reads, and the one it writes.
pub(crate) const VERSION: u8 = 1;
/// Length of every file's header.
pub(crate) const FILE_HEADER: u64 = 16;
/// Length of an entry's header.
pub(crate) const ENTRY_HEADER: usize = 96;
/// What every entry begins with.
pub(crate) const ENTRY_MAGIC: [u8; 4] = *b"RVE1";
/// No entry is longer; a longer length is damage.
pub(crate) const MAX_PAYLOAD: u32 = 4 << 20;

const LATE: u32 = 1;
const SEAL: u32 = 2;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Journal,
    Segment,
    Framed,
}

impl Kind {
    const fn magic(self) -> &'static [u8; 6] {
        match self {
            Self::Journal => b"rvlogj",
            Self::Segment => b"rvlogs",
            Self::Framed => b"rvlogz",
        }
    }
}

/// What a file's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileHeader {
    Ours { salt: u32 },
    Newer { version: u8 },
    Damaged,
}

/// The first bytes of a new file.
pub(crate) fn encode_file_header(kind: Kind, salt: u32) -> [u8; FILE_HEADER as usize] {
    let mut bytes = [0; FILE_HEADER as usize];
    bytes[..6].copy_from_slice(kind.magic());
    bytes[6] = VERSION;
    bytes[8..12].copy_from_slice(&salt.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads the first bytes of a file.
pub(crate) fn decode_file_header(kind: Kind, bytes: &[u8; FILE_HEADER as usize]) -> FileHeader {
    if crc32fast::hash(&bytes[..12]) != u32_at(bytes, 12) || &bytes[..6] != kind.magic() {
        return FileHeader::Damaged;
    }
    // The checksum was judged first: a flipped bit must not look like a version from the future.
    match bytes[6] {
        0 => FileHeader::Damaged,
        version if version > VERSION => FileHeader::Newer { version },
        _ => FileHeader::Ours { salt: u32_at(bytes, 8) },
    }
}

/// The fixed part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: ExecutionId,
    pub(crate) attempt: u32,
    pub(crate) first_line: u64,
    pub(crate) raw_start: u64,
    pub(crate) raw_len: u32,
    pub(crate) first_seq: u64,
    pub(crate) count: u32,
    pub(crate) first_at: i64,
    pub(crate) last_at: i64,
    pub(crate) max_at: i64,
    pub(crate) late: bool,
    pub(crate) seal: bool,
    pub(crate) payload_len: u32,
}

impl Header {
    /// The number of the record after the last one.
    pub(crate) fn next_line(&self) -> u64 {
        self.first_line + u64::from(self.count)
    }

    /// Raw bytes of the log up to and with this entry.
    pub(crate) fn raw_end(&self) -> u64 {
        self.raw_start + u64::from(self.raw_len)
    }

    /// How many bytes the entry takes in a file.
    pub(crate) fn stored_len(&self) -> u64 {
        ENTRY_HEADER as u64 + u64::from(self.payload_len)
    }

    /// Appends the entry to `out`.
    pub(crate) fn encode(&self, payload: &[u8], salt: u32, out: &mut Vec<u8>) {
        let mut bytes = [0u8; ENTRY_HEADER];
        bytes[..4].copy_from_slice(&ENTRY_MAGIC);
        bytes[8..12].copy_from_slice(&checksum(salt, payload).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[16..32].copy_from_slice(self.id.as_bytes());
        bytes[32..40].copy_from_slice(&self.first_line.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.raw_start.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.raw_len.to_le_bytes());
        let flags = if self.late { LATE } else { 0 } | if self.seal { SEAL } else { 0 };
        bytes[52..56].copy_from_slice(&flags.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.first_at.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.last_at.to_le_bytes());
        bytes[80..88].copy_from_slice(&self.max_at.to_le_bytes());
        bytes[88..92].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[92..96].copy_from_slice(&self.count.to_le_bytes());
        let crc = checksum(salt, &bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(payload);
    }
}

/// A header as read, with the checksum that its payload must have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed {
    pub(crate) header: Header,
    payload_crc: u32,
    salt: u32,
}

impl Sealed {
    /// Reads a header; `None` if its bytes are not what was written.
    pub(crate) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes = bytes.get(..ENTRY_HEADER)?;
        if bytes[..4] != ENTRY_MAGIC || checksum(salt, &bytes[8..]) != u32_at(bytes, 4) {
            return None;
        }
        let flags = u32_at(bytes, 52);
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[16..32]);
        let header = Header {
            id: ExecutionId::from_bytes(id),
            payload_len: u32_at(bytes, 12),
            first_line: u64_at(bytes, 32),
            raw_start: u64_at(bytes, 40),
            raw_len: u32_at(bytes, 48),
            late: flags & LATE != 0,
            seal: flags & SEAL != 0,
            first_seq: u64_at(bytes, 56),
            first_at: u64_at(bytes, 64).cast_signed(),
            last_at: u64_at(bytes, 72).cast_signed(),
            max_at: u64_at(bytes, 80).cast_signed(),
            attempt: u32_at(bytes, 88),
            count: u32_at(bytes, 92),
        };
        (header.payload_len <= MAX_PAYLOAD).then_some(Self { header, payload_crc: u32_at(bytes, 8), salt })
    }

    /// Whether these are the payload's bytes as they were written.
    pub(crate) fn fits(&self, payload: &[u8]) -> bool {
        payload.len() == self.header.payload_len as usize && checksum(self.salt, payload) == self.payload_crc
    }
}

fn checksum(salt: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}

/// Four bytes at `offset` as a number.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Eight bytes at `offset` as a number.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            id: ExecutionId::from_bytes([7; 16]),
            attempt: 3,
            first_line: 11,
            raw_start: 1000,
            raw_len: 5,
            first_seq: 9,
            count: 2,
            first_at: -4,
            last_at: 5,
            max_at: 6,
            late: true,
            seal: false,
            payload_len: 4,
        }
    }

    #[test]
    fn every_flipped_bit_of_an_entry_is_noticed() {
        let mut good = Vec::new();
        header().encode(b"abcd", 77, &mut good);
        let back = Sealed::decode(&good, 77).expect("as written");
        assert_eq!(back.header, header());
        assert!(back.fits(&good[ENTRY_HEADER..]));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let served = Sealed::decode(&bad, 77).is_some_and(|entry| entry.fits(&bad[ENTRY_HEADER..]));
            assert!(!served, "bit {bit}");
        }
    }

    #[test]
    fn an_entry_made_with_another_salt_is_not_an_entry() {
        let mut forged = Vec::new();
        header().encode(b"abcd", 0, &mut forged);
        assert!(Sealed::decode(&forged, 77).is_none());
    }

    #[test]
    fn a_newer_file_is_told_from_a_damaged_one() {
        let mut bytes = encode_file_header(Kind::Journal, 5);
        assert_eq!(decode_file_header(Kind::Journal, &bytes), FileHeader::Ours { salt: 5 });
        assert_eq!(decode_file_header(Kind::Segment, &bytes), FileHeader::Damaged);
        bytes[6] = VERSION + 1;
        assert_eq!(decode_file_header(Kind::Journal, &bytes), FileHeader::Damaged);
        let crc = crc32fast::hash(&bytes[..12]);
        bytes[12..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(decode_file_header(Kind::Journal, &bytes), FileHeader::Newer { version: VERSION + 1 });
    }
}
