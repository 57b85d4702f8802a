//! Events of attempts that published none, made from their lines. They are numbered as they are made: 1 is the start, then one for each line that the command wrote,
//! then the end. What came under a lapsed lease comes behind the end, so that no number changes its meaning.

use std::collections::{BTreeMap, VecDeque};

use runvoy_model::job_event::Place;
use runvoy_model::log::{Chunk, Stream};
use runvoy_model::time::UnixMs;

use super::find::{PAGE_BYTES, records};
use super::follow::{JobEventFollower, Source};
use super::{Derived, DerivedEvent, StreamedEvent};
use crate::error::EngineError;

/// The number of an attempt's start.
const START: u64 = 1;
/// So many lines become events at a time: an event is much larger than a short line, and a page holds a great many of those.
const AT_ONCE: u32 = 1_000;

/// How far the log of lines was followed.
pub(super) struct Lines {
    next_line: u64,
    /// What was read of the log, from that line on to before the next.
    page: VecDeque<Chunk>,
    page_end: u64,
    /// The start of the attempt whose turn it is was handed out.
    started: bool,
    /// The number of its next event.
    number: u64,
    /// The number that its worker gives its next line, as far as they were read.
    next_seq: u64,
    /// The first line that came under its lapsed lease, of those that were read.
    late_from: Option<u64>,
    /// The lines of an attempt that is over, which came late and are read now.
    late: Option<Late>,
    /// Attempts that are over.
    over: BTreeMap<u32, Over>,
}

/// A walk through what came late.
#[derive(Clone, Copy)]
struct Late {
    attempt: u32,
    line: u64,
    over: Over,
}

/// How an attempt was left.
#[derive(Clone, Copy)]
struct Over {
    /// The number of its next event.
    number: u64,
    /// Its lines before this one have had their turn.
    line: u64,
}

impl Lines {
    pub(super) fn from(line: u64) -> Self {
        let (page, over) = (VecDeque::new(), BTreeMap::new());
        Self { next_line: line, page, page_end: line, started: false, number: START + 1, next_seq: 1, late_from: None, late: None, over }
    }

    /// Takes a page of the log. What came late to attempts before this one goes first.
    fn take_page(&mut self, mut page: Vec<Chunk>, attempt: u32) {
        self.page_end = page.last().map_or(self.next_line, Chunk::next_line);
        page.sort_by_key(|chunk| chunk.attempt >= attempt);
        self.page = page.into();
    }

    /// What was not taken yet of the page, or of the log, is read from here on.
    fn note_place(&mut self) {
        self.next_line = self.page.iter().map(|chunk| chunk.first_line).min().unwrap_or(self.page_end);
    }

    pub(super) fn begin_attempt(&mut self) {
        (self.started, self.number, self.next_seq, self.late_from) = (false, START + 1, 1, None);
    }
}

impl JobEventFollower {
    /// Takes some lines of attempts that published nothing, up to those of a later attempt; whether there was anything.
    pub(super) async fn read_lines(&mut self) -> Result<bool, EngineError> {
        if !self.may_derive() {
            return Ok(false);
        }
        if self.lines.page.is_empty() {
            let page = self.engine.ports.logs.read(self.id, self.lines.next_line, PAGE_BYTES).await?;
            self.lines.take_page(page, self.attempt);
        }
        let (mut left, mut advanced) = (AT_ONCE, false);
        while left > 0 {
            let Some(chunk) = self.lines.page.front().filter(|chunk| chunk.attempt <= self.attempt).cloned() else { break };
            let mut taken = chunk.block.count;
            if chunk.attempt >= self.first_attempt && self.source(chunk.attempt).await? == Source::Derived {
                if chunk.attempt == self.attempt && !chunk.late {
                    self.begin().await?;
                }
                taken = taken.min(left);
                self.take_lines(&chunk, taken)?;
                left -= taken;
            }
            self.lines.page.pop_front();
            if taken < chunk.block.count {
                let next = chunk.first_line + u64::from(taken);
                self.lines.page.push_front(chunk.starting_at(next));
            }
            advanced = true;
        }
        self.lines.note_place();
        Ok(advanced)
    }

    /// Makes events of the first lines of a chunk, unless they come later or had their turn.
    fn take_lines(&mut self, chunk: &Chunk, lines: u32) -> Result<(), EngineError> {
        if chunk.attempt < self.attempt {
            // They came while a later attempt was followed.
            if let Some(over) = self.lines.over.get(&chunk.attempt).copied().filter(|over| chunk.first_line >= over.line) {
                let number = self.derive(chunk, lines, over.number)?;
                self.lines.over.insert(chunk.attempt, Over { number, ..over });
            }
        } else if chunk.late {
            self.lines.late_from.get_or_insert(chunk.first_line);
        } else {
            self.lines.number = self.derive(chunk, lines, self.lines.number)?;
            self.lines.next_seq = self.lines.next_seq.max(chunk.first_seq + u64::from(lines));
        }
        Ok(())
    }

    /// Makes events of the first lines of a chunk, the first with this number; the number behind the last.
    fn derive(&mut self, chunk: &Chunk, lines: u32, mut number: u64) -> Result<u64, EngineError> {
        for record in records(chunk).take(usize::try_from(lines).unwrap_or(usize::MAX)) {
            let (_, record) = record?;
            if record.stream == Stream::Platform {
                continue;
            }
            if reader_sequence(chunk.attempt, number) >= self.filter.from_sequence {
                let mut bytes = record.bytes.to_vec();
                if record.eol {
                    bytes.push(b'\n');
                }
                self.offer_derived(chunk.attempt, number, record.at, Derived::Output { stream: record.stream, bytes });
            }
            number += 1;
        }
        Ok(number)
    }

    fn offer_derived(&mut self, attempt: u32, number: u64, at: UnixMs, what: Derived) {
        let sequence = reader_sequence(attempt, number);
        self.offer(StreamedEvent::Derived(DerivedEvent { sequence, at, what }));
    }

    /// The start of the attempt whose turn it is.
    async fn begin(&mut self) -> Result<(), EngineError> {
        if self.lines.started {
            return Ok(());
        }
        let started_at = self.engine.story(self.id, self.attempt).await?.started_at;
        self.lines.started = true;
        if let Some(at) = started_at {
            self.offer_derived(self.attempt, START, at, Derived::Started);
        }
        Ok(())
    }

    /// The end of the attempt whose turn it is; then comes what came late.
    pub(super) async fn close_derived(&mut self) -> Result<(), EngineError> {
        let story = self.engine.story(self.id, self.attempt).await?;
        let line = self.engine.ports.logs.extent(self.id).await?.next_line;
        // A log that cannot be written any more may not tell: then it is looked for.
        let stand = self.engine.stand(self.id, self.attempt).await;
        let has_late = stand.map_or(true, |stand| stand.next_seq > self.lines.next_seq);
        if let (Some(at), false) = (story.started_at, self.lines.started) {
            self.offer_derived(self.attempt, START, at, Derived::Started);
        }
        if let Some((at, what)) = story.end {
            self.offer_derived(self.attempt, self.lines.number, at, what);
        }
        let over = Over { number: self.lines.number + 1, line };
        if has_late {
            let from = self.lines.late_from.unwrap_or(self.lines.next_line);
            self.lines.late = Some(Late { attempt: self.attempt, line: from, over });
        } else {
            self.lines.over.insert(self.attempt, over);
        }
        Ok(())
    }

    /// Takes a page of what came late to an attempt that is over; whether that was not done yet.
    pub(super) async fn read_late(&mut self) -> Result<bool, EngineError> {
        let Some(mut late) = self.lines.late else { return Ok(false) };
        let chunks =
            if late.line < late.over.line { self.engine.ports.logs.read(self.id, late.line, PAGE_BYTES).await? } else { Vec::new() };
        for chunk in chunks.iter().filter(|chunk| chunk.attempt == late.attempt && chunk.late && chunk.first_line < late.over.line) {
            late.over.number = self.derive(chunk, chunk.block.count, late.over.number)?;
        }
        match chunks.last() {
            Some(last) => {
                late.line = last.next_line();
                self.lines.late = Some(late);
            }
            None => {
                self.lines.late = None;
                self.lines.over.insert(late.attempt, late.over);
            }
        }
        Ok(true)
    }
}

fn reader_sequence(attempt: u32, number: u64) -> i64 {
    Place { sequence: number, part: 0 }.reader_sequence(attempt)
}
