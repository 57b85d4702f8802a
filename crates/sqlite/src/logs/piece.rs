//! Cutting blocks at record boundaries: into pieces small enough for one entry, and to the size a reader asked for.
//! It decodes every record once, so a block that contradicts itself is refused before it is stored.

use runvoy_model::log::{Block, Chunk, MAX_RECORD_BYTES};
use runvoy_model::time::UnixMs;

use super::trouble::Trouble;

/// An entry's payload ends with the record that passes this.
const PIECE_BYTES: usize = 256 << 10;

/// A block that fits one entry, and the latest time in it.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) block: Block,
    pub(crate) max_at: i64,
}

/// The block in pieces, its numbers proved against its records.
pub(crate) fn pieces(block: &Block) -> Result<Vec<Piece>, Trouble> {
    let mut pieces = Vec::with_capacity(1);
    let (mut start, mut base, mut max_at) = (0, block.first_at, i64::MIN);
    let (mut count, mut raw_len, mut end) = (0u32, 0u64, 0);
    let (mut all, mut all_raw, mut at) = (0u64, 0u64, block.first_at);
    for record in block.records() {
        let record = record.map_err(|_| Trouble::Malformed)?;
        if record.bytes.len() > MAX_RECORD_BYTES {
            return Err(Trouble::Malformed);
        }
        count += 1;
        all += 1;
        raw_len += record.raw_len();
        all_raw += record.raw_len();
        at = record.at;
        max_at = max_at.max(at.0);
        end = end_of(block, record.bytes);
        if end - start >= PIECE_BYTES {
            let data = block.data.slice(start..end);
            pieces.push(Piece { block: Block { count, first_at: base, last_at: at, raw_len, data }, max_at });
            (start, base, max_at, count, raw_len) = (end, at, i64::MIN, 0, 0);
        }
    }
    if count > 0 {
        let data = block.data.slice(start..end);
        pieces.push(Piece { block: Block { count, first_at: base, last_at: at, raw_len, data }, max_at });
    }
    if all != u64::from(block.count) || all_raw != block.raw_len || (all > 0 && at != block.last_at) {
        return Err(Trouble::Malformed);
    }
    Ok(pieces)
}

/// The first records of a chunk, up to `max_bytes` of encoded data and at least one.
pub(crate) fn head(chunk: Chunk, max_bytes: usize) -> Chunk {
    if chunk.block.data.len() <= max_bytes {
        return chunk;
    }
    let (mut count, mut raw_len, mut end, mut last_at) = (0, 0, 0, UnixMs(0));
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

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};

    use super::*;

    fn block(lines: usize, len: usize) -> Block {
        let mut builder = BlockBuilder::default();
        let bytes = vec![b'x'; len];
        for i in 0..lines {
            let at = UnixMs(1000 + (i as i64 % 7) * 10);
            builder.push(Record { at, stream: Stream::Stdout, cont: false, eol: true, bytes: &bytes });
        }
        builder.take()
    }

    #[test]
    fn pieces_put_together_are_the_block() {
        let whole = block(40, 60_000);
        let pieces = pieces(&whole).expect("well-formed");
        assert!(pieces.len() > 3);
        let joined: Vec<(i64, Vec<u8>)> =
            pieces.iter().flat_map(|p| p.block.records().map(|r| r.map(|r| (r.at.0, r.bytes.to_vec())).expect("record"))).collect();
        let expected: Vec<(i64, Vec<u8>)> = whole.records().map(|r| r.map(|r| (r.at.0, r.bytes.to_vec())).expect("record")).collect();
        assert_eq!(joined, expected);
        for piece in &pieces {
            assert_eq!(piece.block, Block::decode(piece.block.first_at, piece.block.data.clone()).expect("block"));
            assert_eq!(piece.max_at, piece.block.records().map(|r| r.expect("record").at.0).max().expect("not empty"));
        }
    }

    #[test]
    fn a_block_that_contradicts_itself_is_refused() {
        for spoil in [
            (|b: &mut Block| b.count += 1) as fn(&mut Block),
            |b| b.raw_len += 1,
            |b| b.last_at = UnixMs(1),
            |b| b.data = b.data.slice(..b.data.len() - 1),
        ] {
            let mut block = block(3, 10);
            spoil(&mut block);
            assert!(pieces(&block).is_err());
        }
    }

    #[test]
    fn a_head_has_at_least_one_record_and_not_more_than_asked() {
        let chunk = Chunk { first_line: 5, raw_start: 0, attempt: 1, first_seq: 1, late: false, block: block(10, 100) };
        let one = head(chunk.clone(), 1);
        assert_eq!(one.block.count, 1);
        assert_eq!(one.block, Block::decode(one.block.first_at, one.block.data.clone()).expect("block"));
        let some = head(chunk.clone(), 500);
        assert!(some.block.count == 4 && some.block.data.len() <= 500, "{}", some.block.count);
        assert_eq!(head(chunk.clone(), 1 << 20), chunk);
    }
}
