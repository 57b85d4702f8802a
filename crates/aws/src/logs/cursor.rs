//! Walks a log from a line on, over its objects and then over the table, and holds no more of it than one object or one page. Lines may move
//! from the table to objects, or go, while it walks: whatever it misses it looks for again by the head.

use std::collections::VecDeque;

use runvoy_model::id::ExecutionId;
use runvoy_ports::log::LogError;

use super::core::{Core, damaged, of_head};
use super::head::Head;
use super::piece::Piece;
use crate::fault::Fault;

/// The first page from the table has so many pieces, each one after it more, up to the last.
const FIRST_PAGE: usize = 16;
const LAST_PAGE: usize = 1024;

/// A place in a log.
pub(super) struct Cursor<'a> {
    core: &'a Core,
    id: ExecutionId,
    head: Head,
    next: u64,
    ready: VecDeque<Piece>,
    page: usize,
}

impl Core {
    /// A cursor before this line, or before the first one that is kept.
    pub async fn cursor(&self, id: ExecutionId, line: u64) -> Result<Cursor<'_>, LogError> {
        let head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
        let next = line.max(head.first_line);
        Ok(Cursor { core: self, id, head, next, ready: VecDeque::new(), page: FIRST_PAGE })
    }

    /// The log as it is now, if what was looked for and not found after `line` has moved since; else it is damage.
    pub async fn renewed(&self, id: ExecutionId, seen: &Head, line: u64) -> Result<Head, LogError> {
        let head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
        if (head.packed, head.first_line) == (seen.packed, seen.first_line) {
            return Err(damaged(id, line, &Fault::Damaged("lines are missing".to_owned())));
        }
        Ok(head)
    }
}

impl Cursor<'_> {
    /// The next piece, which begins exactly where the one before it ended.
    pub async fn next(&mut self) -> Result<Option<Piece>, LogError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                if piece.chunk.first_line == self.next {
                    self.next = piece.chunk.next_line();
                    return Ok(Some(piece));
                }
                self.ready.clear();
                self.renew().await?;
            }
            if self.next >= self.head.next_line {
                return Ok(None);
            }
            if self.next < self.head.packed { self.fetch_part().await? } else { self.fetch_page().await? }
        }
    }

    async fn fetch_part(&mut self) -> Result<(), LogError> {
        let next = self.next;
        let place = self.head.parts.partition_point(|part| part.next_line <= next);
        let Some(part) = self.head.parts.get(place).copied() else { return self.renew().await };
        match self.core.shelf.get(self.id, part).await {
            Ok(Some(pieces)) => {
                let from = pieces.partition_point(|piece| piece.chunk.next_line() <= next);
                self.ready.extend(pieces[from..].iter().cloned());
                self.trim();
                Ok(())
            }
            Ok(None) => self.renew().await,
            Err(fault @ Fault::Damaged(_)) => Err(damaged(self.id, next - 1, &fault)),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn fetch_page(&mut self) -> Result<(), LogError> {
        let mut pieces = self.core.pieces_from(self.id, self.next, self.page).await?;
        self.page = (self.page * 4).min(LAST_PAGE);
        if pieces.first().is_none_or(|piece| piece.chunk.first_line != self.next) {
            // The cursor stands inside a piece, unless it was moved.
            match self.core.piece_before(self.id, self.next).await? {
                Some(piece) if piece.chunk.next_line() > self.next => pieces.insert(0, piece),
                _ => return self.renew().await,
            }
        }
        self.ready.extend(pieces);
        self.trim();
        Ok(())
    }

    fn trim(&mut self) {
        if let Some(first) = self.ready.pop_front() {
            self.ready.push_front(first.starting_at(self.next));
        }
    }

    async fn renew(&mut self) -> Result<(), LogError> {
        self.head = self.core.renewed(self.id, &self.head, self.next - 1).await?;
        self.next = self.next.max(self.head.first_line);
        Ok(())
    }
}
