//! Walks a log by line number over all places that hold parts of it. Each line is taken once, from the first place that has
//! it; a line that no place has, though the log goes on behind it, is damage.

use std::collections::VecDeque;

use runvoy_model::id::ExecutionId;
use runvoy_model::log::Chunk;
use runvoy_ports::log::LogError;

use super::entry::Entry;
use super::format::Header;
use super::source::{Fault, Source, Walk};

/// Where a log is to be read: made under its lock, used outside of it.
pub(crate) struct Plan {
    pub(crate) id: ExecutionId,
    pub(crate) sources: Vec<Source>,
    /// The first line to return.
    pub(crate) line: u64,
    /// The log's next line.
    pub(crate) end: u64,
    /// A file that may hold more of this log is unreadable, so `end` may be too low.
    pub(crate) end_unknown: bool,
}

/// A reader inside a log.
pub(crate) struct Cursor {
    id: ExecutionId,
    sources: VecDeque<Source>,
    walk: Option<Walk>,
    window_bytes: usize,
    line: u64,
    end: u64,
    end_unknown: bool,
    damaged: bool,
}

impl Cursor {
    pub(crate) fn new(plan: Plan, window_bytes: usize) -> Self {
        let Plan { id, sources, line, end, end_unknown } = plan;
        Self { id, sources: sources.into(), walk: None, window_bytes, line, end, end_unknown, damaged: false }
    }

    /// The next records, or `None` at the log's end.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, LogError> {
        let line = self.line;
        let Some(entry) = self.next_entry(&mut |header| header.next_line() > line)? else { return Ok(None) };
        let chunk = entry.into_chunk().starting_at(self.line);
        self.line = chunk.next_line();
        Ok(Some(chunk))
    }

    /// The first entry that is `wanted`, where that may be any number of lines ahead.
    pub(crate) fn find(&mut self, wanted: impl Fn(&Header) -> bool) -> Result<Option<Chunk>, LogError> {
        // A hole before the place sought does not matter, so the line is set by what is found.
        loop {
            let Some(walk) = self.current_walk() else { return if self.damaged { Err(self.damage()) } else { Ok(None) } };
            match walk.next(&mut |header| header.count > 0 && wanted(header)) {
                Ok(Some(entry)) => return Ok(Some(entry.into_chunk())),
                Ok(None) => self.walk = None,
                Err(Fault::Damaged) => self.damaged = true,
                Err(Fault::Trouble(trouble)) => return Err(trouble.into()),
            }
        }
    }

    fn next_entry(&mut self, want: &mut dyn FnMut(&Header) -> bool) -> Result<Option<Entry>, LogError> {
        loop {
            let Some(walk) = self.current_walk() else {
                let short = self.line < self.end || (self.end_unknown && self.damaged);
                return if short { Err(self.damage()) } else { Ok(None) };
            };
            match walk.next(&mut |header| header.count > 0 && want(header)) {
                Ok(Some(entry)) if entry.header.first_line > self.line => return Err(self.damage()),
                Ok(Some(entry)) => return Ok(Some(entry)),
                Ok(None) => self.walk = None,
                // Another place may have a good copy; if not, the hole shows at the next entry or at the end.
                Err(Fault::Damaged) => self.damaged = true,
                Err(Fault::Trouble(trouble)) => return Err(trouble.into()),
            }
        }
    }

    fn current_walk(&mut self) -> Option<&mut Walk> {
        if self.walk.is_none() {
            let source = self.sources.pop_front()?;
            self.walk = Some(Walk::new(self.id, source, self.window_bytes));
        }
        self.walk.as_mut()
    }

    fn damage(&self) -> LogError {
        LogError::Damaged { after_line: self.line.saturating_sub(1) }
    }
}
