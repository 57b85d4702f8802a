//! Finds a record by its time or by a byte of the output, by halves: first among the objects, which the head knows, then among the pieces in
//! the table, one query a step. Both the raw bytes and the latest time up to the end of a piece never fall along the log.

use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, RawPlace};

use super::core::{Core, damaged, of_head};
use super::head::Head;
use super::piece::Piece;
use crate::fault::Fault;

/// So few lines are looked through one after another: a page has them sooner than further halves.
const NEAR: u64 = 256;
const PAGE: usize = 64;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// A record of this time or later.
    Time(UnixMs),
    /// The record with this byte.
    Byte(u64),
}

impl Goal {
    /// Whether it is before the end of a piece, of which the raw bytes and the latest time up to there are known.
    fn is_before(self, raw_end: u64, max_at: Option<UnixMs>) -> bool {
        match self {
            Self::Time(at) => max_at.is_some_and(|max_at| max_at >= at),
            Self::Byte(offset) => raw_end > offset,
        }
    }

    fn is_in(self, piece: &Piece) -> bool {
        self.is_before(piece.raw_end(), Some(piece.max_at))
    }
}

/// A step of the search came to something that is not there any more, after this line.
struct Moved(u64);

impl Core {
    /// The first record written at `at` or later; the next line if there is none.
    pub async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError> {
        let (head, piece) = self.find(id, Goal::Time(at)).await?;
        let Some(piece) = piece else { return Ok(head.next_line) };
        for (line, record) in (piece.chunk.first_line..).zip(piece.chunk.block.records()) {
            if record.map_err(|_| LogError::Damaged { after_line: line - 1 })?.at >= at {
                return Ok(line);
            }
        }
        Err(contradiction(id, &piece))
    }

    /// The record that holds a byte of the raw output.
    pub async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError> {
        let (_, piece) = self.find(id, Goal::Byte(offset)).await?;
        // Before the first line that is kept there were bytes too.
        let Some(piece) = piece.filter(|piece| piece.chunk.raw_start <= offset) else { return Ok(None) };
        let mut line_start = piece.chunk.raw_start;
        for (line, record) in (piece.chunk.first_line..).zip(piece.chunk.block.records()) {
            let len = record.map_err(|_| LogError::Damaged { after_line: line - 1 })?.raw_len();
            if offset < line_start + len {
                return Ok(Some(RawPlace { line, line_start }));
            }
            line_start += len;
        }
        Err(contradiction(id, &piece))
    }

    /// The first piece whose end is behind the goal, and the head by which it was found.
    async fn find(&self, id: ExecutionId, goal: Goal) -> Result<(Head, Option<Piece>), LogError> {
        let mut head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
        loop {
            if head.first_line >= head.next_line || !goal.is_before(head.raw_bytes, head.max_at) {
                return Ok((head, None));
            }
            match self.find_by(id, &head, goal).await? {
                Ok(piece) => return Ok((head, piece)),
                Err(Moved(after_line)) => head = self.renewed(id, &head, after_line).await?,
            }
        }
    }

    async fn find_by(&self, id: ExecutionId, head: &Head, goal: Goal) -> Result<Result<Option<Piece>, Moved>, LogError> {
        let place = head.parts.partition_point(|part| !goal.is_before(part.raw_end, Some(part.max_at)));
        if let Some(part) = head.parts.get(place).copied() {
            return match self.shelf.get(id, part).await {
                Ok(Some(pieces)) => Ok(Ok(pieces.iter().find(|piece| goal.is_in(piece)).cloned())),
                Ok(None) => Ok(Err(Moved(part.first_line - 1))),
                Err(fault @ Fault::Damaged(_)) => Err(damaged(id, part.first_line - 1, &fault)),
                Err(fault) => Err(fault.into()),
            };
        }
        // Every piece before `low` ends before the goal; `best` begins at `high`.
        let (mut low, mut high, mut best) = (head.packed.max(head.first_line), head.next_line, None);
        while high - low > NEAR {
            let middle = low + (high - low) / 2;
            let piece = match self.piece_before(id, middle).await? {
                Some(piece) if piece.chunk.first_line >= low && piece.chunk.next_line() > middle => piece,
                _ => return Ok(Err(Moved(low - 1))),
            };
            if goal.is_in(&piece) {
                high = piece.chunk.first_line;
                best = Some(piece);
            } else {
                low = piece.chunk.next_line();
            }
        }
        while low < high {
            let pieces = self.pieces_from(id, low, PAGE).await?;
            if pieces.is_empty() {
                return Ok(Err(Moved(low - 1)));
            }
            for piece in pieces {
                if piece.chunk.first_line != low {
                    return Ok(Err(Moved(low - 1)));
                }
                if goal.is_in(&piece) {
                    return Ok(Ok(Some(piece)));
                }
                low = piece.chunk.next_line();
            }
        }
        Ok(Ok(best))
    }
}

fn contradiction(id: ExecutionId, piece: &Piece) -> LogError {
    damaged(id, piece.chunk.first_line - 1, &Fault::Damaged("a piece lacks a record that it should have".to_owned()))
}
