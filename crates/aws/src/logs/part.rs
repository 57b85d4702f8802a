//! Objects that sealed logs are packed into: compressed pieces with a checksum over all of them, and the index of objects in the head. An
//! object is named by the lines in it, and what stands in those lines never changes: whoever writes it again writes the same.

use bytes::Bytes;
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use sha2::{Digest as _, Sha256};

use super::piece::Piece;
use crate::fault::Fault;

/// The first bytes of every object.
const MAGIC: &[u8; 8] = b"RVOYLOG1";
/// Before the compressed bytes: magic, checksum, length when unpacked.
const HEADER: usize = 8 + 32 + 8;
/// The bytes of an entry in the index.
const ENTRY: usize = 40;
/// No object is larger when unpacked, whatever it says of itself.
const MOST_BYTES: u64 = 256 << 20;
/// How hard it is compressed.
const LEVEL: i32 = 3;

/// An object, as the head knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub first_line: u64,
    pub next_line: u64,
    /// How many raw bytes of output the log has up to its end.
    pub raw_end: u64,
    /// The latest time in the log up to its end.
    pub max_at: UnixMs,
    /// How large the object is.
    pub bytes: u64,
}

impl Part {
    /// What an object's name begins with, for all of one log.
    pub fn prefix(id: ExecutionId) -> String {
        format!("logs/{id}/")
    }

    /// The object's name.
    pub fn name(&self, id: ExecutionId) -> String {
        format!("{}{}-{}.zst", Self::prefix(id), self.first_line, self.next_line - 1)
    }

    /// The index as bytes.
    pub fn encode_all(parts: &[Self]) -> Vec<u8> {
        let numbers =
            parts.iter().flat_map(|part| [part.first_line, part.next_line, part.raw_end, part.max_at.0.cast_unsigned(), part.bytes]);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// The index of these bytes.
    pub fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Fault> {
        if !bytes.len().is_multiple_of(ENTRY) {
            return Err(Fault::Damaged("the index of a log is cut off".to_owned()));
        }
        let part = |entry: &[u8]| {
            let number = |place: usize| u64::from_le_bytes(entry[8 * place..8 * place + 8].try_into().expect("eight bytes"));
            let max_at = UnixMs(number(3).cast_signed());
            Self { first_line: number(0), next_line: number(1), raw_end: number(2), max_at, bytes: number(4) }
        };
        Ok(bytes.chunks_exact(ENTRY).map(part).collect())
    }
}

/// Packs pieces, of which there is at least one: the object and its place in the index.
pub(super) fn pack(id: ExecutionId, pieces: &[Piece]) -> Result<(Part, Vec<u8>), Fault> {
    let (first, last) = (pieces.first().expect("there is a piece"), pieces.last().expect("there is a piece"));
    let mut plain = Vec::with_capacity(pieces.iter().map(|piece| piece.written_len() as usize).sum());
    pieces.iter().for_each(|piece| piece.write_to(&mut plain));
    let packed = zstd::bulk::compress(&plain, LEVEL).map_err(|error| Fault::Damaged(format!("a part cannot be packed: {error}")))?;
    let length = (plain.len() as u64).to_le_bytes();
    let object = [&MAGIC[..], &sum(id, length, &packed), &length, &packed].concat();
    let part = Part {
        first_line: first.chunk.first_line,
        next_line: last.chunk.next_line(),
        raw_end: last.raw_end(),
        max_at: last.max_at,
        bytes: object.len() as u64,
    };
    Ok((part, object))
}

/// The pieces of an object, if it is what was written for these lines.
pub(super) fn unpack(id: ExecutionId, part: &Part, object: &[u8]) -> Result<Vec<Piece>, Fault> {
    let damaged = |what: &str| Fault::Damaged(format!("{} {what}", part.name(id)));
    let (header, packed) = object.split_at_checked(HEADER).ok_or_else(|| damaged("is cut off"))?;
    let length: [u8; 8] = header[40..].try_into().expect("eight bytes");
    if &header[..8] != MAGIC || header[8..40] != sum(id, length, packed) {
        return Err(damaged("is not what was written"));
    }
    let length = u64::from_le_bytes(length);
    if length > MOST_BYTES {
        return Err(damaged("is too large"));
    }
    let plain = zstd::bulk::decompress(packed, length as usize).map_err(|_| damaged("cannot be unpacked"))?;
    let (mut rest, mut pieces, mut next) = (Bytes::from(plain), Vec::new(), part.first_line);
    while !rest.is_empty() {
        let piece = Piece::read_from(&mut rest).filter(|piece| piece.chunk.first_line == next).ok_or_else(|| damaged("has a hole"))?;
        next = piece.chunk.next_line();
        pieces.push(piece);
    }
    if next != part.next_line {
        return Err(damaged("has other lines than its name says"));
    }
    Ok(pieces)
}

fn sum(id: ExecutionId, length: [u8; 8], packed: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(id.as_bytes());
    digest.update(length);
    digest.update(packed);
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Chunk, Record, Stream};

    use super::*;

    const ID: ExecutionId = ExecutionId::from_bytes([3; 16]);

    fn pieces() -> Vec<Piece> {
        let piece = |number: u64| {
            let mut builder = BlockBuilder::default();
            for _ in 0..2 {
                builder.push(Record { at: UnixMs(5), stream: Stream::Stderr, cont: false, eol: true, bytes: &[7; 400] });
            }
            let block = builder.take();
            let chunk = Chunk {
                first_line: 2 * number + 1,
                raw_start: number * block.raw_len,
                attempt: 1,
                first_seq: 2 * number + 1,
                late: false,
                block,
            };
            Piece { chunk, max_at: UnixMs(5) }
        };
        (0..5).map(piece).collect()
    }

    #[test]
    fn an_object_gives_its_pieces_back() {
        let (part, object) = pack(ID, &pieces()).expect("packed");
        assert_eq!((part.first_line, part.next_line, part.raw_end, part.name(ID)), (1, 11, 4010, format!("logs/{ID}/1-10.zst")));
        assert!(object.len() < 1_000, "it is compressed");
        assert_eq!(unpack(ID, &part, &object).expect("whole"), pieces());
        assert_eq!(Part::decode_all(&Part::encode_all(&[part, part])).expect("whole"), [part, part]);
        assert!(Part::decode_all(&[0; 41]).is_err());
    }

    #[test]
    fn no_other_object_is_taken_for_it() {
        let (part, object) = pack(ID, &pieces()).expect("packed");
        for at in [0, 9, 41, HEADER + 3, object.len() - 1] {
            let mut changed = object.clone();
            changed[at] ^= 1;
            assert!(unpack(ID, &part, &changed).is_err(), "byte {at}");
        }
        assert!(unpack(ID, &part, &object[..object.len() - 1]).is_err());
        assert!(unpack(ID, &part, &[]).is_err());
        assert!(unpack(ExecutionId::from_bytes([4; 16]), &part, &object).is_err(), "of another log");
        assert!(unpack(ID, &Part { next_line: 12, ..part }, &object).is_err(), "of other lines");
    }
}
