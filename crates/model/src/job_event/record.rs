//! The records that an event is kept as. Each begins with which piece of which event it is, so that a piece whose event was never completed, because a server or the power
//! failed in the middle, or because another server wrote at the same time, is known for what it is and passed over.
//!
//! A record is one flag byte (version in its upper half), `varint(sequence)`, `varint(part)`, `varint(piece)`, then a piece of the payload. The payload is the kind, the time, the
//! [`Mark`], then envelope, output and texts, each with its length, then how the masks stand, where that is not at their beginning.

use std::collections::BTreeMap;

use super::{JobEvent, Lines, Piece, Place};
use crate::log::{BlockBuilder, MAX_RECORD_BYTES, Record, Stream, put_varint, take_varint};
use crate::mask::MaskStand;
use crate::time::UnixMs;

const VERSION: u8 = 0x10;
const VERSION_BITS: u8 = 0xf0;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const IN_ORDER: u8 = 4;
const STRAGGLED: u8 = 8;
/// No header is longer.
const HEADER: usize = 1 + 10 + 5 + 10;
/// The mark's own bits, in its byte.
const FULL: u8 = 0x80;

/// What is known of an event beside what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The number, among the attempt's records of lines, of the first record that its output becomes.
    pub first_line_seq: u64,
    /// How the streams stood before it.
    pub lines: Lines,
    /// The log of lines was full: its output became none.
    pub full: bool,
    /// It stands behind everything that was kept before it, so that it can be found by its place.
    pub in_order: bool,
    /// It, or one of its attempt before it, does not.
    pub straggled: bool,
    /// How the masks of standard output and of standard error stood behind it.
    pub masks: [MaskStand; 2],
}

/// An event as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its attempt.
    pub attempt: u32,
    /// The event.
    pub event: JobEvent,
    /// What else is known.
    pub mark: Mark,
}

/// What a record says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peeked {
    /// The place of its event.
    pub place: Place,
    /// Whether it is the first record of its event.
    pub begins: bool,
    /// Whether its event stands behind everything that was kept before it.
    pub in_order: bool,
    /// Whether that is not so of it, or of one of its attempt before it.
    pub straggled: bool,
}

/// A record that is none of an event, or of one that a later version wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged job event")]
pub struct InvalidEvent;

/// Adds an event as records that are from `at` and of `stream`.
pub fn encode(event: &JobEvent, mark: Mark, at: UnixMs, stream: Stream, builder: &mut BlockBuilder) {
    let payload = payload(event, mark);
    let order = if mark.in_order { IN_ORDER } else { 0 } | if mark.straggled { STRAGGLED } else { 0 };
    let pieces = payload.chunks(MAX_RECORD_BYTES - HEADER);
    let last = pieces.len() - 1;
    let mut bytes = Vec::with_capacity(payload.len().min(MAX_RECORD_BYTES) + HEADER);
    for (index, piece) in pieces.enumerate() {
        let ends = if index == 0 { FIRST } else { 0 } | if index == last { LAST } else { 0 };
        bytes.clear();
        bytes.push(VERSION | order | ends);
        put_varint(&mut bytes, event.place.sequence);
        put_varint(&mut bytes, u64::from(event.place.part));
        put_varint(&mut bytes, index as u64);
        bytes.extend_from_slice(piece);
        builder.push(Record { at, stream, cont: index > 0, eol: index == last, bytes: &bytes });
    }
}

/// What a record says about itself.
pub fn peek(record: &[u8]) -> Result<Peeked, InvalidEvent> {
    let (header, _) = Header::take(record)?;
    let is = |flag| header.flags & flag != 0;
    Ok(Peeked { place: header.place, begins: is(FIRST), in_order: is(IN_ORDER), straggled: is(STRAGGLED) })
}

fn payload(event: &JobEvent, mark: Mark) -> Vec<u8> {
    let sizes = event.output.iter().map(|piece| piece.bytes.len() + 16).chain(event.texts.iter().map(|text| text.len() + 5));
    let mut out = Vec::with_capacity(event.envelope.len() + 40 + sizes.sum::<usize>());
    out.push(event.kind);
    put_signed(&mut out, event.at.0);
    put_varint(&mut out, mark.first_line_seq);
    out.push(mark.lines.to_bits() | if mark.full { FULL } else { 0 });
    put_bytes(&mut out, &event.envelope);
    put_varint(&mut out, event.output.len() as u64);
    for piece in &event.output {
        out.push(u8::from(piece.stream == Stream::Stderr));
        put_signed(&mut out, piece.at.0.wrapping_sub(event.at.0));
        put_bytes(&mut out, &piece.bytes);
    }
    put_varint(&mut out, event.texts.len() as u64);
    event.texts.iter().for_each(|text| put_bytes(&mut out, text.as_bytes()));
    if mark.masks != <[MaskStand; 2]>::default() {
        mark.masks.iter().flat_map(|stand| stand.to_numbers()).for_each(|number| put_varint(&mut out, number));
    }
    out
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[derive(Clone, Copy)]
struct Header {
    flags: u8,
    place: Place,
    index: u64,
}

impl Header {
    fn take(record: &[u8]) -> Result<(Self, &[u8]), InvalidEvent> {
        let (&flags, mut rest) = record.split_first().ok_or(InvalidEvent)?;
        if flags & VERSION_BITS != VERSION {
            return Err(InvalidEvent);
        }
        let mut number = || take_varint(&mut rest).map_err(|_| InvalidEvent);
        let (sequence, part, index) = (number()?, number()?, number()?);
        let place = Place { sequence, part: u32::try_from(part).map_err(|_| InvalidEvent)? };
        Ok((Self { flags, place, index }, rest))
    }
}

/// Puts the records of a log of events together again, each attempt's for itself.
#[derive(Debug, Default)]
pub struct Assembler {
    begun: BTreeMap<u32, Begun>,
}

/// An event of which not all pieces have come.
#[derive(Debug)]
struct Begun {
    place: Place,
    next: u64,
    payload: Vec<u8>,
}

impl Assembler {
    /// Takes the next record of an attempt; gives the event that it completes.
    pub fn push(&mut self, attempt: u32, record: &[u8]) -> Result<Option<Kept>, InvalidEvent> {
        let (header, piece) = Header::take(record)?;
        let is_last = header.flags & LAST != 0;
        let payload = if header.flags & FIRST != 0 {
            // Whatever was begun before was never completed.
            self.begun.remove(&attempt);
            if is_last {
                return decode(attempt, header, piece).map(Some);
            }
            piece.to_vec()
        } else {
            match self.begun.remove(&attempt).filter(|begun| begun.place == header.place && begun.next == header.index) {
                None => return Ok(None),
                Some(mut begun) => {
                    begun.payload.extend_from_slice(piece);
                    begun.payload
                }
            }
        };
        if is_last {
            return decode(attempt, header, &payload).map(Some);
        }
        self.begun.insert(attempt, Begun { place: header.place, next: header.index + 1, payload });
        Ok(None)
    }
}

fn decode(attempt: u32, header: Header, mut rest: &[u8]) -> Result<Kept, InvalidEvent> {
    let rest = &mut rest;
    let kind = take_byte(rest)?;
    let at = UnixMs(take_signed(rest)?);
    let first_line_seq = take_varint(rest).map_err(|_| InvalidEvent)?;
    let bits = take_byte(rest)?;
    let envelope = take_bytes(rest)?.to_vec();
    let mut output = Vec::new();
    for _ in 0..take_varint(rest).map_err(|_| InvalidEvent)? {
        let stream = if take_byte(rest)? == 1 { Stream::Stderr } else { Stream::Stdout };
        let at = UnixMs(at.0.wrapping_add(take_signed(rest)?));
        output.push(Piece { stream, at, bytes: take_bytes(rest)?.to_vec() });
    }
    let mut texts = Vec::new();
    for _ in 0..take_varint(rest).map_err(|_| InvalidEvent)? {
        texts.push(String::from_utf8(take_bytes(rest)?.to_vec()).map_err(|_| InvalidEvent)?);
    }
    let mark = Mark {
        first_line_seq,
        lines: Lines::of_bits(bits),
        full: bits & FULL != 0,
        in_order: header.flags & IN_ORDER != 0,
        straggled: header.flags & STRAGGLED != 0,
        masks: take_masks(rest)?,
    };
    let event = JobEvent { place: header.place, kind, at, envelope, output, texts };
    Ok(Kept { attempt, event, mark })
}

fn take_masks(rest: &mut &[u8]) -> Result<[MaskStand; 2], InvalidEvent> {
    let mut masks = <[MaskStand; 2]>::default();
    if !rest.is_empty() {
        for stand in &mut masks {
            let mut numbers = [0; MaskStand::NUMBERS];
            for number in &mut numbers {
                *number = take_varint(rest).map_err(|_| InvalidEvent)?;
            }
            *stand = MaskStand::of_numbers(numbers);
        }
    }
    Ok(masks)
}

fn take_byte(rest: &mut &[u8]) -> Result<u8, InvalidEvent> {
    let (&byte, more) = rest.split_first().ok_or(InvalidEvent)?;
    *rest = more;
    Ok(byte)
}

fn take_signed(rest: &mut &[u8]) -> Result<i64, InvalidEvent> {
    let value = take_varint(rest).map_err(|_| InvalidEvent)?;
    Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], InvalidEvent> {
    let len = usize::try_from(take_varint(rest).map_err(|_| InvalidEvent)?).map_err(|_| InvalidEvent)?;
    if len > rest.len() {
        return Err(InvalidEvent);
    }
    let (bytes, more) = rest.split_at(len);
    *rest = more;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mark() -> Mark {
        let masks = [MaskStand::of_numbers([7, 300, 81]), MaskStand::default()];
        Mark { first_line_seq: 9, lines: Lines::of_bits(2), full: true, in_order: true, straggled: false, masks }
    }

    fn event(sequence: u64, bytes: usize) -> JobEvent {
        let output = vec![Piece { stream: Stream::Stderr, at: UnixMs(-4), bytes: vec![b'x'; bytes] }];
        let place = Place { sequence, part: 3 };
        JobEvent { place, kind: 7, at: UnixMs(i64::MAX), envelope: vec![1, 2], output, texts: vec!["é".into(), String::new()] }
    }

    fn records(event: &JobEvent) -> Vec<Vec<u8>> {
        let mut builder = BlockBuilder::default();
        encode(event, mark(), UnixMs(5), Stream::Stdout, &mut builder);
        builder.take().records().map(|record| record.expect("own encoding").bytes.to_vec()).collect()
    }

    #[test]
    fn a_large_event_comes_back_from_its_records() {
        let large = event(1 << 39, 200_000);
        let (records, mut assembler) = (records(&large), Assembler::default());
        assert_eq!(records.len(), 4);
        assert!(records.iter().all(|record| record.len() <= MAX_RECORD_BYTES));
        for (index, record) in records.iter().enumerate() {
            assert_eq!(peek(record), Ok(Peeked { place: large.place, begins: index == 0, in_order: true, straggled: false }));
        }
        let (last, others) = records.split_last().expect("records");
        for record in others {
            assert_eq!(assembler.push(2, record), Ok(None));
        }
        assert_eq!(assembler.push(2, last), Ok(Some(Kept { attempt: 2, event: large, mark: mark() })));
    }

    #[test]
    fn what_was_never_completed_is_passed_over() {
        let (one, two, mut assembler) = (event(1, 150_000), event(2, 150_000), Assembler::default());
        let (first, second) = (records(&one), records(&two));
        // Another server's event took the place of the first piece, and a crash cut the rest.
        for orphan in [&second[1], &first[0], &first[1], &second[2], &first[2]] {
            assert_eq!(assembler.push(1, orphan), Ok(None));
        }
        let whole: Vec<Kept> = first.iter().filter_map(|record| assembler.push(1, record).expect("own encoding")).collect();
        assert_eq!(whole.len(), 1);
        // Attempts do not disturb each other.
        assert_eq!(assembler.push(1, &first[0]), Ok(None));
        assert_eq!(assembler.push(2, &second[0]), Ok(None));
        assert_eq!(assembler.push(1, &first[1]), Ok(None));
        assert_eq!(assembler.push(1, &first[2]).expect("whole").map(|kept| kept.event), Some(one));
    }

    proptest! {
        #[test]
        fn garbage_is_refused_and_never_panics(data in prop::collection::vec(any::<u8>(), 0..200), with_header in any::<bool>()) {
            let record = if with_header { [&[VERSION | FIRST | LAST, 1, 0, 0][..], &data].concat() } else { data };
            let _ = Assembler::default().push(1, &record);
        }
    }
}
