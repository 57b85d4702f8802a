//! The end of a log. A seal is one write of the head. What follows it is a list of chores that the head itself keeps: objects are written
//! before the head points to them, and lines leave the table after it does; lines and objects of a pruned log go after the head says that
//! they are gone. Whoever dies between two calls leaves a head that says what is left to do, and anybody may go on, also several at once.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{LogError, Pruned};

use super::core::{Core, of_head};
use super::cursor::Cursor;
use super::head::{Chore, Head, KEPT, UNSETTLED};
use super::piece::Piece;
use crate::dynamo::{Query, pause};
use crate::fault::Fault;
use crate::item::{Item, Read, n, s};
use crate::table::Table;

/// How often a chore meets other writers before it is left to the next one who comes.
const ROUNDS: u32 = 50;
/// The head holds an entry for every object, so that there must not be too many: so many at most, whatever the size of an object.
const MOST_PARTS: u64 = 4_000;
/// So many pieces are looked for at once when the table is swept.
const PAGE: usize = 256;
/// So many logs are pruned at once.
const AT_ONCE: usize = 16;

impl Core {
    /// Marks a log as ended. Whether there is something left to do.
    pub async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<bool, LogError> {
        let slot = self.slot(id);
        let mut known = slot.lock().await;
        *known = None;
        for round in 0..ROUNDS {
            let head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
            if head.seal.is_some() {
                return Ok(head.chore().is_some());
            }
            let sealed = head.sealed(log_end, self.config.pack_from_bytes);
            match self.save(id, &sealed).await {
                Ok(()) => return Ok(sealed.chore().is_some()),
                Err(Fault::Conflict) => pause(round).await,
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(Fault::Conflict.into())
    }

    /// Does what is left to do for a log.
    pub async fn settle(&self, id: ExecutionId) -> Result<(), LogError> {
        let mut round = 0;
        loop {
            let head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
            let done = match head.chore() {
                None => return Ok(()),
                Some(Chore::Pack) => self.pack(id, head).await,
                Some(Chore::Sweep) => self.sweep(id, head).await,
                Some(Chore::Drop) => self.drop_objects(id, head).await,
            };
            match done {
                Err(LogError::Storage(source)) if is_conflict(&*source) && round < ROUNDS => {
                    round += 1;
                    pause(round).await;
                }
                done => done?,
            }
        }
    }

    /// Writes the next object, then points to it.
    async fn pack(&self, id: ExecutionId, mut head: Head) -> Result<(), LogError> {
        let end = head.seal.map_or(1, |seal| seal.pack_to);
        let most = self.config.part_bytes.max(head.stored_bytes / MOST_PARTS);
        let pieces = gather(self.cursor(id, head.packed).await?, end, most).await?;
        if pieces.first().is_none_or(|piece| piece.chunk.first_line != head.packed) {
            // Somebody else was here.
            return Err(Fault::Conflict.into());
        }
        let part = self.shelf.put(id, pieces).await?;
        for round in 0..ROUNDS {
            match self.save(id, &head.with_part(part)).await {
                Err(Fault::Conflict) => pause(round).await,
                done => return done.map_err(LogError::from),
            }
            head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
            if head.packed != part.first_line {
                // Somebody else pointed to it, or the log is gone; then nobody else will remove this object.
                if head.parts.is_empty() {
                    self.shelf.remove(id, part).await?;
                }
                return Ok(());
            }
        }
        Err(Fault::Conflict.into())
    }

    /// Removes from the table what is packed or gone, then says so.
    async fn sweep(&self, id: ExecutionId, head: Head) -> Result<(), LogError> {
        let mut line = head.swept;
        while line < head.packed {
            // An object knows the lines that its pieces had in the table, so that they are not read again.
            let part = head.parts.iter().find(|part| (part.first_line..part.next_line).contains(&line)).copied();
            let (lines, next) = match part {
                Some(part) => {
                    let pieces = self.shelf.get(id, part).await?.ok_or(Fault::Conflict)?;
                    (pieces.iter().map(|piece| piece.chunk.first_line).collect(), part.next_line)
                }
                None => self.lines_between(id, line, head.packed).await?,
            };
            let keys = lines.into_iter().map(|line| key(id, line)).collect();
            self.dynamo.delete_all(Table::Logs, keys).await?;
            line = next;
        }
        self.save(id, &head.swept_to(head.packed)).await.map_err(LogError::from)
    }

    /// A page of lines at which something is in the table, and where to go on.
    async fn lines_between(&self, id: ExecutionId, first: u64, end: u64) -> Result<(Vec<u64>, u64), LogError> {
        let condition = "#r BETWEEN :first AND :last";
        let query = Query::of(Table::Logs, "execution_id", s(id.to_string()))
            .range("line", condition, vec![(":first", n(first)), (":last", n(end - 1))])
            .limit(PAGE);
        let items = self.dynamo.page(&query).await?;
        let lines = items.iter().map(|item| item.number("line")).collect::<Result<Vec<u64>, Fault>>()?;
        let next = lines.last().map_or(end, |line| line + 1);
        Ok((lines, next))
    }

    /// Removes the objects of a log that is gone, then says so.
    async fn drop_objects(&self, id: ExecutionId, head: Head) -> Result<(), LogError> {
        self.shelf.remove_all(id).await?;
        self.save(id, &head.dropped()).await.map_err(LogError::from)
    }

    /// Removes sealed logs whose last line is from before this instant, and goes on where somebody stopped.
    pub async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError> {
        let mut pruned = Pruned::default();
        for shard in 0..self.shards.max(1) {
            let unsettled = self.standing(UNSETTLED, shard, None).await?;
            let settled = stream::iter(unsettled.clone()).map(|id| self.settle_or_pass_over(id)).buffer_unordered(AT_ONCE);
            settled.collect::<()>().await;
            // One that cannot be packed becomes old all the same, and one that was settled just now may stand in the index as before.
            let mut old: BTreeSet<ExecutionId> = unsettled.into_iter().collect();
            old.extend(self.standing(KEPT, shard, Some(before)).await?);
            let mut retired = stream::iter(old).map(|id| self.retire(id, before)).buffer_unordered(AT_ONCE);
            while let Some(bytes) = retired.next().await {
                if let Some(bytes) = bytes? {
                    pruned.logs += 1;
                    pruned.bytes += bytes;
                }
            }
        }
        Ok(pruned)
    }

    /// Removes a log, if it is old; how many bytes that were.
    async fn retire(&self, id: ExecutionId, before: UnixMs) -> Result<Option<u64>, LogError> {
        let taken = match self.take(id, before).await {
            Err(error @ LogError::Damaged { .. }) => {
                tracing::warn!(execution = %id, %error, "a log was not pruned");
                None
            }
            taken => taken?,
        };
        if taken.is_some() {
            self.settle_or_pass_over(id).await;
        }
        Ok(taken)
    }

    /// One log that cannot be settled now must not keep the others: it is found again.
    async fn settle_or_pass_over(&self, id: ExecutionId) {
        if let Err(error) = self.settle(id).await {
            tracing::warn!(execution = %id, %error, "a log was not settled: the next pruning goes on with it");
        }
    }

    /// Logs that may stand so: the index lags, so that whoever acts on them looks again.
    async fn standing(&self, standing: &str, shard: u32, before: Option<UnixMs>) -> Result<Vec<ExecutionId>, LogError> {
        let mut query = Query::of(Table::Logs, "sealed_shard", s(format!("{standing}#{shard}"))).index("sealed-index");
        if let Some(before) = before {
            query = query.range("last_at", "#r < :before", vec![(":before", n(before.0))]);
        }
        let items = self.dynamo.query(query).await?;
        let parse = |item: &Item| item.text("execution_id")?.parse().map_err(|_| Fault::Damaged("a log has no id".to_owned()));
        Ok(items.iter().map(parse).collect::<Result<_, Fault>>()?)
    }

    /// Says that a log is gone, if it is old; how many bytes that were.
    async fn take(&self, id: ExecutionId, before: UnixMs) -> Result<Option<u64>, LogError> {
        for round in 0..ROUNDS {
            let head = self.head(id).await.map_err(|fault| of_head(id, fault))?;
            if !head.is_older_than(before) {
                return Ok(None);
            }
            match self.save(id, &head.pruned()).await {
                Ok(()) => return Ok(Some(head.stored_bytes)),
                Err(Fault::Conflict) => pause(round).await,
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(Fault::Conflict.into())
    }
}

/// Pieces up to a line, at least one and about so many bytes of them.
async fn gather(mut cursor: Cursor<'_>, end: u64, most: u64) -> Result<Vec<Piece>, LogError> {
    let (mut pieces, mut bytes): (Vec<Piece>, u64) = (Vec::new(), 0);
    while bytes < most && pieces.last().is_none_or(|piece| piece.chunk.next_line() < end) {
        let Some(piece) = cursor.next().await? else { break };
        bytes += piece.written_len();
        pieces.push(piece);
    }
    Ok(pieces)
}

fn key(id: ExecutionId, line: u64) -> Item {
    let mut key = Head::key(id);
    key.insert("line".to_owned(), n(line));
    key
}

fn is_conflict(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(source.downcast_ref(), Some(Fault::Conflict))
}
