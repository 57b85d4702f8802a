//! What is known of a log without its records: how far it goes, what each attempt sent, where its parts are. It is the item at line 0, and
//! every write of a log is conditioned on its version. What an append adds and what is left to do after a seal is decided here, purely.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, Chunk};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, LogError};

use super::part::Part;
use super::piece::{Cut, OVERHEAD, Piece};
use crate::fault::Fault;
use crate::item::{Item, Read, b, item, n, s};

/// A log as it stood at a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Counts the writes; 0 is a log that was never written.
    pub version: u64,
    pub next_line: u64,
    /// The first line still kept.
    pub first_line: u64,
    pub raw_bytes: u64,
    /// Of what is still kept.
    pub stored_bytes: u64,
    /// The latest time of what is still kept.
    pub max_at: Option<UnixMs>,
    /// What is expected next, by attempt; only those that sent numbered records.
    pub next_seq: BTreeMap<u32, u64>,
    pub seal: Option<Seal>,
    /// Lines before this one are in parts, or gone; those from here on are in the table.
    pub packed: u64,
    /// The table has no lines before this one: what was packed or is gone was removed from it.
    pub swept: u64,
    /// There may be objects of this log.
    pub has_objects: bool,
    /// The objects, in order.
    pub parts: Vec<Part>,
}

/// How a log was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal {
    /// The last line's number as the execution's record has it.
    pub log_end: u64,
    /// The next line's number when the seal was set.
    pub at_line: u64,
    /// Lines before this one are to be packed.
    pub pack_to: u64,
}

/// What is left to do for a log that is sealed or gone. Each can be begun anew at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chore {
    /// Write the next object, then point to it.
    Pack,
    /// Remove from the table what is packed or gone.
    Sweep,
    /// Remove the objects of a log that is gone.
    Drop,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            version: 0,
            next_line: 1,
            first_line: 1,
            raw_bytes: 0,
            stored_bytes: 0,
            max_at: None,
            next_seq: BTreeMap::new(),
            seal: None,
            packed: 1,
            swept: 1,
            has_objects: false,
            parts: Vec::new(),
        }
    }
}

impl Head {
    /// Where the head of a log is.
    pub fn key(id: ExecutionId) -> Item {
        item([("execution_id", s(id.to_string())), ("line", n(0))])
    }

    pub fn extent(&self) -> Extent {
        Extent {
            next_line: self.next_line,
            first_line: self.first_line,
            raw_bytes: self.raw_bytes,
            sealed: self.seal.is_some(),
            lost_records: self.seal.map_or(0, |seal| (seal.log_end + 1).saturating_sub(seal.at_line)),
        }
    }

    pub fn appended(&self, attempt: u32) -> Appended {
        Appended { next_line: self.next_line, next_seq: self.next_seq.get(&attempt).copied().unwrap_or(1) }
    }

    /// What of an append is new: the writer's number of its first record and the records; `None` if all of it is a repeat.
    pub fn admit(&self, append: &Append) -> Result<Option<(u64, Block)>, LogError> {
        let Some(first_seq) = append.first_seq else { return Ok((append.block.count > 0).then(|| (0, append.block.clone()))) };
        let expected = self.next_seq.get(&append.attempt).copied().unwrap_or(1);
        if first_seq == 0 || first_seq > expected {
            return Err(LogError::Gap { expected });
        }
        Ok(match u32::try_from(expected - first_seq) {
            Ok(0) if append.block.count > 0 => Some((expected, append.block.clone())),
            Ok(known) if known < append.block.count => Some((expected, append.block.skip(known))),
            _ => None,
        })
    }

    /// The log after these cuts of an attempt, and the pieces they become.
    pub fn place(&self, append: &Append, first_seq: u64, cuts: &[Cut]) -> (Self, Vec<Piece>) {
        let mut after = Self { version: self.version + 1, ..self.clone() };
        let late = append.late || self.seal.is_some();
        let mut seq = first_seq;
        let mut pieces = Vec::with_capacity(cuts.len());
        for cut in cuts {
            let (count, max_at) = (u64::from(cut.block.count), after.max_at.map_or(cut.max_at, |max_at| max_at.max(cut.max_at)));
            let (first_line, raw_start, block) = (after.next_line, after.raw_bytes, cut.block.clone());
            after.stored_bytes += block.data.len() as u64 + OVERHEAD;
            after.raw_bytes += block.raw_len;
            after.next_line += count;
            after.max_at = Some(max_at);
            pieces.push(Piece { chunk: Chunk { first_line, raw_start, attempt: append.attempt, first_seq: seq, late, block }, max_at });
            seq += if seq > 0 { count } else { 0 };
        }
        if seq > 0 {
            after.next_seq.insert(append.attempt, seq);
        }
        (after, pieces)
    }

    /// The log with its seal.
    pub fn sealed(&self, log_end: u64, pack_from_bytes: u64) -> Self {
        let pack_to = if self.stored_bytes >= pack_from_bytes { self.next_line } else { 1 };
        let seal = Some(Seal { log_end, at_line: self.next_line, pack_to });
        Self { version: self.version + 1, seal, has_objects: pack_to > 1, ..self.clone() }
    }

    /// The log with one more object, which begins where the last one ended.
    pub fn with_part(&self, part: Part) -> Self {
        let mut after = Self { version: self.version + 1, packed: part.next_line, ..self.clone() };
        after.parts.push(part);
        after
    }

    /// The log with nothing left in the table before this line.
    pub fn swept_to(&self, line: u64) -> Self {
        Self { version: self.version + 1, swept: self.swept.max(line), ..self.clone() }
    }

    /// The log of which nothing is kept. What follows counts on.
    pub fn pruned(&self) -> Self {
        Self {
            version: self.version + 1,
            first_line: self.next_line,
            packed: self.next_line,
            stored_bytes: 0,
            max_at: None,
            parts: Vec::new(),
            ..self.clone()
        }
    }

    /// The log of which no object is left.
    pub fn dropped(&self) -> Self {
        Self { version: self.version + 1, has_objects: false, ..self.clone() }
    }

    /// Sealed, with lines, all of them from before this instant.
    pub fn is_older_than(&self, before: UnixMs) -> bool {
        self.seal.is_some() && self.max_at.is_some_and(|at| at < before)
    }

    /// What is to be done next.
    pub fn chore(&self) -> Option<Chore> {
        let seal = self.seal?;
        if self.packed < seal.pack_to {
            Some(Chore::Pack)
        } else if self.swept < self.packed {
            Some(Chore::Sweep)
        } else {
            (self.has_objects && self.parts.is_empty()).then_some(Chore::Drop)
        }
    }

    /// The item of this head. `write` names the write.
    pub fn to_item(&self, id: ExecutionId, shards: u32, write: &[u8]) -> Item {
        let next_seq: HashMap<_, _> = self.next_seq.iter().map(|(attempt, seq)| (attempt.to_string(), n(seq))).collect();
        let mut stored = Self::key(id);
        stored.extend(item([
            ("version", n(self.version)),
            ("next_line", n(self.next_line)),
            ("first_line", n(self.first_line)),
            ("raw_bytes", n(self.raw_bytes)),
            ("stored_bytes", n(self.stored_bytes)),
            ("next_seq", AttributeValue::M(next_seq)),
            ("packed", n(self.packed)),
            ("swept", n(self.swept)),
            ("write", b(write)),
        ]));
        if let Some(max_at) = self.max_at {
            stored.insert("max_at".to_owned(), n(max_at.0));
        }
        if let Some(seal) = self.seal {
            stored.extend(item([("log_end", n(seal.log_end)), ("sealed_line", n(seal.at_line)), ("pack_to", n(seal.pack_to))]));
        }
        if self.has_objects {
            stored.insert("objects".to_owned(), n(1));
        }
        if !self.parts.is_empty() {
            stored.insert("parts".to_owned(), b(Part::encode_all(&self.parts)));
        }
        if let Some(standing) = self.standing() {
            let shard = u32::from(id.as_bytes()[15]) % shards.max(1);
            // Only what stands somewhere is in the index, by the time of its last line.
            stored.insert("sealed_shard".to_owned(), s(format!("{standing}#{shard}")));
            stored.insert("last_at".to_owned(), n(self.max_at.map_or(0, |at| at.0)));
        }
        stored
    }

    /// Where pruning finds it: with something left to do, or with lines that will be old one day.
    fn standing(&self) -> Option<&'static str> {
        if self.chore().is_some() {
            return Some(UNSETTLED);
        }
        (self.seal.is_some() && self.max_at.is_some()).then_some(KEPT)
    }

    /// The head of an item.
    pub fn of_item(item: &Item) -> Result<Self, Fault> {
        let mut next_seq = BTreeMap::new();
        if let Some(AttributeValue::M(map)) = item.get("next_seq") {
            for attempt in map.keys() {
                let number = attempt.parse().map_err(|_| Fault::Damaged(format!("{attempt} is no number of an attempt")))?;
                next_seq.insert(number, map.number(attempt)?);
            }
        }
        let seal = match item.number_if("sealed_line")? {
            None => None,
            Some(at_line) => Some(Seal { at_line, log_end: item.number("log_end")?, pack_to: item.number("pack_to")? }),
        };
        let parts = item.get("parts").map(|_| item.bytes("parts")).transpose()?;
        Ok(Self {
            version: item.number("version")?,
            next_line: item.number("next_line")?,
            first_line: item.number("first_line")?,
            raw_bytes: item.number("raw_bytes")?,
            stored_bytes: item.number("stored_bytes")?,
            max_at: item.number_if("max_at")?.map(UnixMs),
            next_seq,
            seal,
            packed: item.number("packed")?,
            swept: item.number("swept")?,
            has_objects: item.contains_key("objects"),
            parts: Part::decode_all(parts.unwrap_or_default())?,
        })
    }
}

/// The partition of logs that are not done with, after their seal or after they were pruned.
pub(super) const UNSETTLED: &str = "unsettled";
/// The partition of sealed logs that have lines.
pub(super) const KEPT: &str = "kept";

#[cfg(test)]
mod tests {
    use runvoy_model::log::{BlockBuilder, Record, Stream};

    use super::super::piece::cut;
    use super::*;

    const ID: ExecutionId = ExecutionId::from_bytes([9; 16]);

    fn append(first_seq: u64, times: &[i64]) -> Append {
        let mut builder = BlockBuilder::default();
        for at in times {
            builder.push(Record { at: UnixMs(*at), stream: Stream::Stdout, cont: false, eol: true, bytes: b"x" });
        }
        Append { attempt: 2, first_seq: Some(first_seq), late: false, block: builder.take() }
    }

    fn after(head: &Head, first_seq: u64, times: &[i64]) -> (Head, Vec<Piece>) {
        let append = append(first_seq, times);
        let (seq, block) = head.admit(&append).expect("no gap").expect("new");
        head.place(&append, seq, &cut(&block).expect("well-formed"))
    }

    #[test]
    fn a_repeat_is_dropped_an_overlap_trimmed_and_a_hole_told() {
        let (head, _) = after(&Head::default(), 1, &[1; 10]);
        let admitted = |first_seq, count| head.admit(&append(first_seq, &vec![1; count])).map(|new| new.map(|(seq, b)| (seq, b.count)));
        assert_eq!(admitted(11, 3).expect("next"), Some((11, 3)));
        assert_eq!(admitted(9, 2).expect("repeat"), None);
        assert_eq!(admitted(9, 5).expect("overlap"), Some((11, 3)));
        assert_eq!(admitted(11, 0).expect("nothing"), None);
        assert!(matches!(admitted(12, 1), Err(LogError::Gap { expected: 11 })));
        assert!(matches!(admitted(0, 1), Err(LogError::Gap { expected: 11 })));
    }

    #[test]
    fn the_latest_time_never_falls_until_all_is_gone() {
        let (head, first) = after(&Head::default(), 1, &[5, 9, 3]);
        let (head, second) = after(&head, 4, &[4]);
        assert_eq!((first[0].max_at, second[0].max_at), (UnixMs(9), UnixMs(9)));
        let (_, third) = after(&head.sealed(4, 0).pruned(), 5, &[4]);
        assert_eq!((third[0].max_at, third[0].chunk.first_line, third[0].chunk.raw_start, third[0].chunk.late), (UnixMs(4), 5, 8, true));
    }

    #[test]
    fn a_sealed_log_has_its_chores_until_it_is_packed_and_again_when_it_is_gone() {
        let (open, _) = after(&Head::default(), 1, &[1, 2]);
        assert_eq!((open.chore(), open.standing()), (None, None));
        let small = open.sealed(2, 1 << 20);
        assert_eq!((small.chore(), small.standing()), (None, Some(KEPT)));
        let sealed = open.sealed(2, 0);
        assert_eq!((sealed.chore(), sealed.standing()), (Some(Chore::Pack), Some(UNSETTLED)));
        let packed = sealed.with_part(Part { first_line: 1, next_line: 3, raw_end: 4, max_at: UnixMs(2), bytes: 9 });
        assert_eq!(packed.chore(), Some(Chore::Sweep));
        let kept = packed.swept_to(packed.packed);
        assert_eq!((kept.chore(), kept.standing()), (None, Some(KEPT)));
        let gone = after(&kept, 3, &[7]).0.pruned();
        assert_eq!(gone.chore(), Some(Chore::Sweep), "what came late was in the table");
        let swept = gone.swept_to(gone.packed);
        assert_eq!((swept.chore(), swept.standing()), (Some(Chore::Drop), Some(UNSETTLED)));
        assert_eq!((swept.dropped().chore(), swept.dropped().standing()), (None, None));
        assert_eq!(after(&swept.dropped(), 4, &[8]).0.standing(), Some(KEPT), "late output after all was gone");
        assert_eq!(Head::default().sealed(0, 0).standing(), None, "nothing was written");
    }

    #[test]
    fn a_head_comes_back_from_its_item() {
        let (open, _) = after(&Head::default(), 1, &[1, 2]);
        let packed = open.sealed(5, 0).with_part(Part { first_line: 1, next_line: 3, raw_end: 4, max_at: UnixMs(2), bytes: 9 });
        for head in [Head::default(), open, packed.clone(), packed.pruned()] {
            assert_eq!(Head::of_item(&head.to_item(ID, 4, b"w")).expect("whole"), head);
        }
        assert_eq!(packed.extent().lost_records, 3);
    }
}
