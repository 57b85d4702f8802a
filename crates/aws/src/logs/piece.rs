//! A chunk as it is stored: an item of the table, or one of many in an object. Its checksum is over everything that is served of it and over
//! where it stands, so that nothing is served that was not written there. Blocks are cut here to what an item can hold.

use bytes::Bytes;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, Chunk, MAX_RECORD_BYTES};
use runvoy_model::time::UnixMs;
use sha2::{Digest as _, Sha256};

use crate::fault::Fault;
use crate::item::{Item, Read, b, item, n, s};

/// A piece ends with the record that passes this. With its longest record it fits an item, which holds 400 KB.
const PIECE_BYTES: usize = 300 << 10;
/// No piece is larger than this, whatever it says of itself.
const MOST_BYTES: usize = PIECE_BYTES + MAX_RECORD_BYTES + 64;
/// Smaller ones are not compressed: an item is paid for by the kilobyte.
const COMPRESS_FROM: usize = 1 << 10;
/// What a piece takes beside its records, about.
pub(super) const OVERHEAD: u64 = 200;
/// The bytes of [`Piece::header`].
const HEADER: usize = 73;

/// A chunk with what is known of the log up to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub chunk: Chunk,
    /// The latest time in the log so far: clocks step back, this never does, so that it can be searched by halves.
    pub max_at: UnixMs,
}

/// A block that fits an item, and the latest time in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub block: Block,
    pub max_at: UnixMs,
}

/// A block whose numbers are not those of its records, or a record that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed log block")]
pub(super) struct Malformed;

/// The block in cuts, its numbers proved against its records.
pub(super) fn cut(block: &Block) -> Result<Vec<Cut>, Malformed> {
    let mut cuts = Vec::with_capacity(1);
    let (mut start, mut base, mut max_at) = (0, block.first_at, UnixMs(i64::MIN));
    let (mut count, mut raw_len, mut end) = (0u32, 0u64, 0);
    let (mut all, mut all_raw, mut at) = (0u64, 0u64, block.first_at);
    let mut close = |start, end, base, at, count: &mut u32, raw_len: &mut u64, max_at: &mut UnixMs| {
        let data = block.data.slice(start..end);
        let block = Block { count: std::mem::take(count), first_at: base, last_at: at, raw_len: std::mem::take(raw_len), data };
        cuts.push(Cut { block, max_at: std::mem::replace(max_at, UnixMs(i64::MIN)) });
    };
    for record in block.records() {
        let record = record.map_err(|_| Malformed)?;
        if record.bytes.len() > MAX_RECORD_BYTES {
            return Err(Malformed);
        }
        (count, all, at) = (count + 1, all + 1, record.at);
        raw_len += record.raw_len();
        all_raw += record.raw_len();
        max_at = max_at.max(at);
        end = end_of(block, record.bytes);
        if end - start >= PIECE_BYTES {
            close(start, end, base, at, &mut count, &mut raw_len, &mut max_at);
            (start, base) = (end, at);
        }
    }
    if count > 0 {
        close(start, end, base, at, &mut count, &mut raw_len, &mut max_at);
    }
    if all != u64::from(block.count) || all_raw != block.raw_len || (all > 0 && at != block.last_at) {
        return Err(Malformed);
    }
    Ok(cuts)
}

/// The first records of a chunk, up to `max_bytes` of encoded data and at least one.
pub(super) fn beginning(chunk: Chunk, max_bytes: usize) -> Chunk {
    if chunk.block.data.len() <= max_bytes {
        return chunk;
    }
    let (mut count, mut raw_len, mut end, mut last_at) = (0, 0, 0, chunk.block.first_at);
    for record in chunk.block.records().map_while(Result::ok) {
        let next = end_of(&chunk.block, record.bytes);
        if count > 0 && next > max_bytes {
            break;
        }
        (count, raw_len, end, last_at) = (count + 1, raw_len + record.raw_len(), next, record.at);
    }
    let block = Block { count, first_at: chunk.block.first_at, last_at, raw_len, data: chunk.block.data.slice(..end) };
    Chunk { block, ..chunk }
}

/// A record's bytes are its last part, so where they end the next record begins.
fn end_of(block: &Block, bytes: &[u8]) -> usize {
    bytes.as_ptr().addr() + bytes.len() - block.data.as_ptr().addr()
}

impl Piece {
    /// How many raw bytes of output the log has up to its end.
    pub fn raw_end(&self) -> u64 {
        self.chunk.raw_start + self.chunk.block.raw_len
    }

    /// The piece without the records before `line`.
    pub fn starting_at(self, line: u64) -> Self {
        Self { chunk: self.chunk.starting_at(line), ..self }
    }

    /// The item of this piece. `write` names the write it came with.
    pub fn to_item(&self, id: ExecutionId, write: &[u8]) -> Item {
        let (chunk, block) = (&self.chunk, &self.chunk.block);
        let mut stored = item([
            ("execution_id", s(id.to_string())),
            ("line", n(chunk.first_line)),
            ("count", n(block.count)),
            ("raw_start", n(chunk.raw_start)),
            ("raw_len", n(block.raw_len)),
            ("attempt", n(chunk.attempt)),
            ("first_seq", n(chunk.first_seq)),
            ("late", n(u8::from(chunk.late))),
            ("first_at", n(block.first_at.0)),
            ("last_at", n(block.last_at.0)),
            ("max_at", n(self.max_at.0)),
            ("sum", b(self.sum(id))),
            ("write", b(write)),
        ]);
        let packed = (block.data.len() >= COMPRESS_FROM).then(|| zstd::bulk::compress(&block.data, 1).ok()).flatten();
        match packed.filter(|packed| packed.len() < block.data.len()) {
            Some(packed) => {
                stored.insert("packed_len".to_owned(), n(block.data.len()));
                stored.insert("data".to_owned(), b(packed));
            }
            None => drop(stored.insert("data".to_owned(), b(block.data.to_vec()))),
        }
        stored
    }

    /// The piece of an item, if it is what was written there.
    pub fn of_item(id: ExecutionId, item: &Item) -> Result<Self, Fault> {
        let damaged = |what: &str| Fault::Damaged(format!("a piece of the log {id} {what}"));
        let data = match item.number_if::<usize>("packed_len")? {
            None => item.bytes("data")?.to_vec(),
            Some(len) if len > MOST_BYTES => return Err(damaged("is too large")),
            Some(len) => zstd::bulk::decompress(item.bytes("data")?, len).map_err(|_| damaged("cannot be unpacked"))?,
        };
        let block = Block {
            count: item.number("count")?,
            first_at: UnixMs(item.number("first_at")?),
            last_at: UnixMs(item.number("last_at")?),
            raw_len: item.number("raw_len")?,
            data: Bytes::from(data),
        };
        let chunk = Chunk {
            first_line: item.number("line")?,
            raw_start: item.number("raw_start")?,
            attempt: item.number("attempt")?,
            first_seq: item.number("first_seq")?,
            late: item.number::<u8>("late")? == 1,
            block,
        };
        let piece = Self { chunk, max_at: UnixMs(item.number("max_at")?) };
        if item.bytes("sum")? != piece.sum(id) {
            return Err(damaged("is not what was written"));
        }
        Ok(piece)
    }

    fn sum(&self, id: ExecutionId) -> [u8; 16] {
        let mut digest = Sha256::new();
        digest.update(id.as_bytes());
        digest.update(self.header());
        digest.update(&self.chunk.block.data);
        *digest.finalize().first_chunk().expect("a digest is longer")
    }

    /// Everything but the records, in a fixed form.
    fn header(&self) -> [u8; HEADER] {
        let (chunk, block) = (&self.chunk, &self.chunk.block);
        let mut header = [0; HEADER];
        let numbers = [
            chunk.first_line,
            chunk.raw_start,
            chunk.first_seq,
            block.raw_len,
            block.first_at.0.cast_unsigned(),
            block.last_at.0.cast_unsigned(),
            self.max_at.0.cast_unsigned(),
            block.data.len() as u64,
        ];
        for (place, number) in header.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        header[64..68].copy_from_slice(&chunk.attempt.to_le_bytes());
        header[68..72].copy_from_slice(&block.count.to_le_bytes());
        header[72] = u8::from(chunk.late);
        header
    }

    /// Adds the piece to those of an object.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header());
        out.extend_from_slice(&self.chunk.block.data);
    }

    /// How many bytes [`Piece::write_to`] adds.
    pub fn written_len(&self) -> u64 {
        (HEADER + self.chunk.block.data.len()) as u64
    }

    /// Takes the next piece of an object; `None` where there is no whole one.
    pub fn read_from(rest: &mut Bytes) -> Option<Self> {
        let header = rest.get(..HEADER)?.to_vec();
        let long = |place: usize| u64::from_le_bytes(header[8 * place..8 * place + 8].try_into().expect("eight bytes"));
        let short = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let end = HEADER.checked_add(usize::try_from(long(7)).ok()?)?;
        if end > rest.len() {
            return None;
        }
        let data = rest.split_to(end).slice(HEADER..);
        let at = |place| UnixMs(long(place).cast_signed());
        let block = Block { count: short(68), first_at: at(4), last_at: at(5), raw_len: long(3), data };
        let chunk = Chunk { first_line: long(0), raw_start: long(1), attempt: short(64), first_seq: long(2), late: header[72] == 1, block };
        Some(Self { chunk, max_at: at(6) })
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};

    use super::*;

    fn block(sizes: &[usize]) -> Block {
        let mut builder = BlockBuilder::default();
        for (number, size) in sizes.iter().enumerate() {
            let bytes: Vec<u8> = (0..*size).map(|at| (at * 31 + number) as u8).collect();
            let at = UnixMs(if number % 3 == 2 { 5 } else { number as i64 });
            builder.push(Record { at, stream: Stream::Stdout, cont: false, eol: true, bytes: &bytes });
        }
        builder.take()
    }

    fn piece(sizes: &[usize]) -> Piece {
        let chunk = Chunk { first_line: 7, raw_start: 90, attempt: 2, first_seq: 3, late: true, block: block(sizes) };
        Piece { chunk, max_at: UnixMs(77) }
    }

    #[test]
    fn a_large_block_is_cut_into_what_an_item_holds() {
        let whole = block(&[60_000; 20]);
        let cuts = cut(&whole).expect("well-formed");
        assert!(cuts.len() > 3);
        assert!(cuts.iter().all(|cut| cut.block.data.len() <= MOST_BYTES));
        let records =
            |block: &Block| block.records().map(|record| record.expect("good")).map(|r| (r.at, r.bytes.to_vec())).collect::<Vec<_>>();
        assert_eq!(cuts.iter().flat_map(|cut| records(&cut.block)).collect::<Vec<_>>(), records(&whole));
        assert_eq!(cuts.iter().map(|cut| cut.block.raw_len).sum::<u64>(), whole.raw_len);
        for cut in &cuts {
            assert_eq!(Some(cut.max_at), records(&cut.block).iter().map(|(at, _)| *at).max());
        }
        assert!(cut(&Block { count: 19, ..whole.clone() }).is_err());
        assert!(cut(&Block { raw_len: 1, ..whole }).is_err());
        assert!(cut(&block(&[])).expect("well-formed").is_empty());
    }

    #[test]
    fn a_piece_comes_back_from_its_item_and_no_other() {
        let id = ExecutionId::from_bytes([1; 16]);
        for sizes in [&[3, 0, 9][..], &[50_000, 64 << 10, 2]] {
            let piece = piece(sizes);
            let stored = piece.to_item(id, b"w");
            assert_eq!(Piece::of_item(id, &stored).expect("whole"), piece);
            assert!(Piece::of_item(ExecutionId::from_bytes([2; 16]), &stored).is_err(), "of another log");
            for (name, other) in
                [("line", n(8)), ("late", n(0)), ("raw_start", n(91)), ("max_at", n(78)), ("attempt", n(1)), ("data", b([0]))]
            {
                let mut changed = stored.clone();
                changed.insert(name.to_owned(), other);
                assert!(matches!(Piece::of_item(id, &changed), Err(Fault::Damaged(_))), "{name}");
            }
        }
    }

    #[test]
    fn pieces_come_back_from_an_object() {
        let pieces = [piece(&[1, 2]), piece(&[]), piece(&[70])];
        let mut bytes = Vec::new();
        pieces.iter().for_each(|piece| piece.write_to(&mut bytes));
        assert_eq!(bytes.len() as u64, pieces.iter().map(Piece::written_len).sum::<u64>());
        let mut rest = Bytes::from(bytes);
        assert_eq!(std::iter::from_fn(|| Piece::read_from(&mut rest)).collect::<Vec<_>>(), pieces);
        assert!(rest.is_empty());
        assert!(Piece::read_from(&mut Bytes::from_static(&[0xff; 100])).is_none());
    }

    #[test]
    fn a_beginning_is_as_large_as_asked_for_and_has_a_record() {
        let chunk = piece(&[100, 100, 100]).chunk;
        assert_eq!(beginning(chunk.clone(), 0).block.count, 1);
        assert_eq!(beginning(chunk.clone(), 210).block.count, 2);
        assert_eq!(beginning(chunk.clone(), 10_000), chunk);
        assert_eq!(beginning(chunk, 210).block.raw_len, 202);
    }
}
