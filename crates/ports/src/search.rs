//! Looking for text in the records of a log, one record at a time, for every store that can walk its chunks. Patterns come from anybody, so their
//! size is bounded and matching takes time linear in the log.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};
use runvoy_model::log::{Chunk, Stream};

use crate::log::{Found, LogError, Search};

const MAX_PATTERN: usize = 4096;
const MAX_PROGRAM: usize = 1 << 20;
/// Hits are collected up to this size, and at least one: a record may be large, and nobody asks for a limit in bytes.
const MAX_HIT_BYTES: usize = 1 << 20;

/// Stops a search: at its deadline, or because its client has left. Clones stop the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops the search at its next record.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops the search when the guard is dropped.
    pub fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

/// Stops a search when it is dropped.
#[derive(Debug)]
pub struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// A search on its way: it is shown the chunks of a log in order, counts all matches and keeps the first.
pub struct Seeker {
    needle: Needle,
    stream: Option<Stream>,
    limit: usize,
    stop: Stop,
    has_begun: bool,
    found: Found,
    hit_bytes: usize,
}

/// A compiled pattern.
enum Needle {
    Literal(Box<memmem::Finder<'static>>),
    Regex(Regex),
}

impl Seeker {
    /// Compiles what to look for.
    pub fn new(search: &Search) -> Result<Self, LogError> {
        Ok(Self {
            needle: Needle::new(search)?,
            stream: search.stream,
            limit: search.limit,
            stop: search.stop.clone(),
            has_begun: false,
            found: Found::default(),
            hit_bytes: 0,
        })
    }

    /// Looks through the next chunk. `Break` where the search is stopped: no other chunk is to be looked at.
    pub fn look(&mut self, chunk: &Chunk) -> Result<ControlFlow<()>, LogError> {
        if self.is_stopped_at(chunk.first_line) {
            return Ok(ControlFlow::Break(()));
        }
        if self.needle.is_absent(chunk) {
            return Ok(ControlFlow::Continue(()));
        }
        for (line, record) in (chunk.first_line..).zip(chunk.block.records()) {
            // A record may be large and a pattern slow: one is as long as nobody is asked.
            if line > chunk.first_line && self.is_stopped_at(line) {
                return Ok(ControlFlow::Break(()));
            }
            let record = record.map_err(|_| LogError::Damaged { after_line: line - 1 })?;
            if self.stream.is_none_or(|stream| stream == record.stream) && self.needle.is_in(record.bytes) {
                self.hit(line, record.bytes);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the search ends before this line. The first line that it comes to is always looked at.
    fn is_stopped_at(&mut self, line: u64) -> bool {
        let is_stopped = self.has_begun && self.stop.is_set();
        self.has_begun = true;
        if is_stopped {
            self.found.is_stopped = true;
            self.found.next_line.get_or_insert(line);
        }
        is_stopped
    }

    fn hit(&mut self, line: u64, bytes: &[u8]) {
        let found = &mut self.found;
        found.total += 1;
        if found.next_line.is_some() {
            return;
        }
        self.hit_bytes += bytes.len();
        if found.hits.len() < self.limit && (found.hits.is_empty() || self.hit_bytes <= MAX_HIT_BYTES) {
            found.hits.push((line, bytes.to_vec()));
        } else {
            found.next_line = Some(line);
        }
    }

    /// What was found.
    pub fn found(self) -> Found {
        self.found
    }
}

/// What is wrong with an expression, in one line: the last of those that draw where it is.
pub fn why_not(drawn: &str) -> String {
    let last = drawn.lines().last().unwrap_or_default();
    format!("not a regular expression: {}", last.strip_prefix("error: ").unwrap_or(last))
}

impl Needle {
    fn new(search: &Search) -> Result<Self, LogError> {
        if search.pattern.len() > MAX_PATTERN {
            return Err(LogError::Pattern(format!("longer than {MAX_PATTERN} bytes")));
        }
        if !search.regex {
            return Ok(Self::Literal(Box::new(memmem::Finder::new(search.pattern.as_bytes()).into_owned())));
        }
        let regex = RegexBuilder::new(&search.pattern).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_PROGRAM).nest_limit(100).build();
        regex.map(Self::Regex).map_err(|error| LogError::Pattern(why_not(&error.to_string())))
    }

    /// Whether no record of the chunk can match. A literal that is not in the chunk's bytes is in no record of it.
    fn is_absent(&self, chunk: &Chunk) -> bool {
        match self {
            Self::Literal(finder) => finder.find(&chunk.block.data).is_none(),
            Self::Regex(_) => false,
        }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Literal(finder) => finder.find(bytes).is_some(),
            Self::Regex(regex) => regex.is_match(bytes),
        }
    }
}
