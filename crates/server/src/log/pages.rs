//! Reads a log page by page and writes each page in its form. What is read ends where the log ended when the request came in, so that an
//! answer to a growing log ends too.

use std::sync::Arc;

use bytes::Bytes;
use runvoy_engine::{Engine, EngineError};
use runvoy_model::execution::Execution;
use runvoy_model::log::{Chunk, Record};
use runvoy_wire::LogPosition;

use super::format::Writer;
use super::selection::{Matcher, Selection};
use crate::answer::Pieces;

/// About this much is read at a time.
const PAGE_BYTES: usize = 256 * 1024;

/// The selected records of a log, on their way out.
pub(crate) struct Pages {
    engine: Arc<Engine>,
    execution: Box<Execution>,
    matcher: Matcher,
    writer: Writer,
    execution_id: String,
    next_line: u64,
    end_line: u64,
    /// Wanted records to leave out, for a tail.
    skip: u64,
    left: u64,
}

impl Pages {
    /// The selected records of an execution's log.
    pub(crate) async fn new(engine: &Arc<Engine>, execution: Execution, selection: Selection, writer: Writer) -> Result<Self, EngineError> {
        let extent = engine.log_extent(&execution).await?;
        let execution_id = execution.id.to_string();
        let mut pages = Self {
            engine: Arc::clone(engine),
            execution: Box::new(execution),
            matcher: selection.matcher,
            writer,
            execution_id,
            next_line: selection.from_line.unwrap_or(1).max(extent.first_line).max(1),
            end_line: extent.next_line,
            skip: 0,
            left: selection.limit.unwrap_or(u64::MAX),
        };
        if let Some(tail) = selection.tail {
            pages.seek_tail(tail).await?;
        }
        Ok(pages)
    }

    /// The line after the last one that was looked at.
    pub(crate) const fn next_line(&self) -> u64 {
        self.next_line
    }

    async fn seek_tail(&mut self, tail: u64) -> Result<(), EngineError> {
        if self.matcher.takes_all() {
            self.next_line = self.next_line.max(self.end_line.saturating_sub(tail));
            return Ok(());
        }
        let (first, mut wanted) = (self.next_line, 0u64);
        while let Some(page) = self.page().await? {
            wanted += page.iter().map(|chunk| self.count(chunk)).sum::<u64>();
            self.pass(&page);
        }
        self.next_line = first;
        self.skip = wanted.saturating_sub(tail);
        Ok(())
    }

    fn count(&self, chunk: &Chunk) -> u64 {
        let here = (chunk.first_line..self.end_line).zip(chunk.block.records());
        here.filter(|(_, record)| record.as_ref().is_ok_and(|record| self.matcher.takes(record))).count() as u64
    }

    fn pass(&mut self, page: &[Chunk]) {
        if let Some(last) = page.last() {
            self.next_line = last.next_line().min(self.end_line);
        }
    }

    async fn page(&self) -> Result<Option<Vec<Chunk>>, EngineError> {
        if self.next_line >= self.end_line {
            return Ok(None);
        }
        let chunks = self.engine.read_log(&self.execution, self.next_line, PAGE_BYTES).await?;
        Ok((!chunks.is_empty()).then_some(chunks))
    }

    /// Writes a record if it is wanted; `false` once nothing more is.
    fn take(&mut self, out: &mut Vec<u8>, chunk: &Chunk, line: u64, record: &Record<'_>) -> bool {
        if self.left == 0 || self.writer.is_full() || line >= self.end_line {
            return false;
        }
        self.next_line = line + 1;
        if !self.matcher.takes(record) {
            return true;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return true;
        }
        self.left -= 1;
        let position = LogPosition { execution_id: &self.execution_id, line, attempt: chunk.attempt, late: chunk.late };
        self.writer.write(out, position, record);
        true
    }
}

impl Pieces for Pages {
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let mut out = Vec::new();
        while out.is_empty() && self.left > 0 && !self.writer.is_full() {
            let (before, Some(page)) = (self.next_line, self.page().await?) else { break };
            for chunk in &page {
                for (line, record) in (chunk.first_line..).zip(chunk.block.records()) {
                    let record = record.map_err(|error| EngineError::Internal(error.to_string()))?;
                    if !self.take(&mut out, chunk, line, &record) {
                        break;
                    }
                }
            }
            if self.next_line == before {
                // What comes next lies beyond the end that was seen: retention took the rest in the meantime.
                self.next_line = self.end_line;
            }
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }
}
