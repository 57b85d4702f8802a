//! Looks for text in the records of a log, one record at a time. Patterns come from anybody, so their size is bounded and matching takes
//! time linear in the log.

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};
use runvoy_model::log::{Chunk, Stream};
use runvoy_ports::log::{Found, LogError, Search};

use super::cursor::Cursor;

const MAX_PATTERN: usize = 4096;
const MAX_PROGRAM: usize = 1 << 20;
/// Hits are collected up to this size, and at least one: a record may be large, and nobody asks for a limit in bytes.
const MAX_HIT_BYTES: usize = 1 << 20;

/// A compiled pattern.
pub(super) enum Needle {
    Literal(Box<memmem::Finder<'static>>),
    Regex(Regex),
}

impl Needle {
    /// Compiles what to look for.
    pub fn new(search: &Search) -> Result<Self, LogError> {
        if search.pattern.len() > MAX_PATTERN {
            return Err(LogError::Pattern(format!("longer than {MAX_PATTERN} bytes")));
        }
        if !search.regex {
            return Ok(Self::Literal(Box::new(memmem::Finder::new(search.pattern.as_bytes()).into_owned())));
        }
        let regex = RegexBuilder::new(&search.pattern).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_PROGRAM).nest_limit(100).build();
        regex.map(Self::Regex).map_err(|error| LogError::Pattern(error.to_string()))
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

/// Counts all matches and returns the first ones.
pub(super) async fn search(mut cursor: Cursor<'_>, needle: &Needle, stream: Option<Stream>, limit: usize) -> Result<Found, LogError> {
    let (mut found, mut bytes) = (Found::default(), 0);
    while let Some(piece) = cursor.next().await? {
        // What was fetched is looked through without a wait between: others on this thread get their turn.
        tokio::task::consume_budget().await;
        if needle.is_absent(&piece.chunk) {
            continue;
        }
        for (line, record) in (piece.chunk.first_line..).zip(piece.chunk.block.records()) {
            let record = record.map_err(|_| LogError::Damaged { after_line: line - 1 })?;
            if stream.is_some_and(|stream| stream != record.stream) || !needle.is_in(record.bytes) {
                continue;
            }
            found.total += 1;
            if found.next_line.is_some() {
                continue;
            }
            bytes += record.bytes.len();
            if found.hits.len() < limit && (found.hits.is_empty() || bytes <= MAX_HIT_BYTES) {
                found.hits.push((line, record.bytes.to_vec()));
            } else {
                found.next_line = Some(line);
            }
        }
    }
    Ok(found)
}
