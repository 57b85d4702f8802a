//! What all parts of the log store share: heads and pieces as they are now, and how a write that was not answered is recognised.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_ports::log::LogError;

use super::config::LogConfig;
use super::head::Head;
use super::piece::Piece;
use super::shelf::Shelf;
use crate::dynamo::{Dynamo, Query};
use crate::fault::Fault;
use crate::item::{Read, n, s};
use crate::mirror::Mirror;
use crate::table::Table;

/// The logs of one installation, as one process knows them.
pub(super) struct Core {
    pub dynamo: Dynamo,
    pub shelf: Shelf,
    pub config: LogConfig,
    pub shards: u32,
    pub mirror: Option<Mirror>,
    /// Nobody else's.
    process: [u8; 8],
    writes: AtomicU64,
    open: Mutex<HashMap<ExecutionId, Slot>>,
}

/// The place of an open log in memory. Whoever appends holds its lock; `None` until it is read.
pub(super) type Slot = Arc<tokio::sync::Mutex<Option<Head>>>;

/// The name of one write.
pub(super) type WriteName = [u8; 16];

impl Core {
    pub fn new(dynamo: Dynamo, shelf: Shelf, config: LogConfig, shards: u32, mirror: Option<Mirror>) -> Result<Self, Fault> {
        let mut process = [0; 8];
        getrandom::fill(&mut process).map_err(|error| Fault::Unavailable {
            service: "the kernel",
            code: "no randomness".to_owned(),
            source: Box::new(std::io::Error::other(error.to_string())),
        })?;
        Ok(Self { dynamo, shelf, config, shards, mirror, process, writes: AtomicU64::new(0), open: Mutex::default() })
    }

    /// A name that no other write has.
    pub fn name_write(&self) -> WriteName {
        let number = self.writes.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.process);
        name[8..].copy_from_slice(&number);
        name
    }

    /// The place of a log in memory.
    pub fn slot(&self, id: ExecutionId) -> Slot {
        let mut open = self.open.lock();
        if open.len() >= self.config.open_logs && !open.contains_key(&id) {
            // Those that nobody is at are found again in the table.
            open.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(open.entry(id).or_default())
    }

    /// A log as it is now.
    pub async fn head(&self, id: ExecutionId) -> Result<Head, Fault> {
        match self.dynamo.get(Table::Logs, Head::key(id)).await? {
            None => Ok(Head::default()),
            Some(item) => Head::of_item(&item),
        }
    }

    /// Writes a head over the version before it. `Conflict` if that was written by another.
    pub async fn save(&self, id: ExecutionId, head: &Head) -> Result<(), Fault> {
        let write = self.name_write();
        let done = self.dynamo.put_over(Table::Logs, head.to_item(id, self.shards, &write), head.version - 1).await;
        self.confirm(id, 0, &write, done).await
    }

    /// What a write came to: one whose answer was lost is repeated and meets itself, or nobody knows, and then it is not done again here.
    pub async fn confirm(&self, id: ExecutionId, line: u64, write: &WriteName, done: Result<(), Fault>) -> Result<(), Fault> {
        let fault = match done {
            Err(fault @ (Fault::Conflict | Fault::Busy(_) | Fault::Unavailable { .. })) => fault,
            done => return done,
        };
        if self.is_written(id, line, write).await? { Ok(()) } else { Err(fault) }
    }

    /// Whether the item at this line came with this write.
    async fn is_written(&self, id: ExecutionId, line: u64, write: &WriteName) -> Result<bool, Fault> {
        let mut key = Head::key(id);
        key.insert("line".to_owned(), n(line));
        let found = self.dynamo.get(Table::Logs, key).await?;
        Ok(found.is_some_and(|item| item.bytes("write").is_ok_and(|found| found == write)))
    }

    /// Pieces in the table from this line on, a page of them.
    pub async fn pieces_from(&self, id: ExecutionId, line: u64, limit: usize) -> Result<Vec<Piece>, LogError> {
        let query = of(id).range("line", "#r >= :line", vec![(":line", n(line.max(1)))]).limit(limit);
        let items = self.dynamo.page(&query).await?;
        let mut pieces = Vec::with_capacity(items.len());
        for item in &items {
            match Piece::of_item(id, item) {
                Ok(piece) => pieces.push(piece),
                // What is good before the damage is served; the damage is told to whoever stands right before it.
                Err(fault) if item.number::<u64>("line").unwrap_or(line) == line => return Err(damaged(id, line.max(1) - 1, &fault)),
                Err(_) => break,
            }
        }
        Ok(pieces)
    }

    /// The last piece in the table that begins at this line or before it.
    pub async fn piece_before(&self, id: ExecutionId, line: u64) -> Result<Option<Piece>, LogError> {
        let query = of(id).range("line", "#r BETWEEN :first AND :line", vec![(":first", n(1)), (":line", n(line))]).descending().limit(1);
        match self.dynamo.page(&query).await?.first() {
            None => Ok(None),
            Some(item) => Piece::of_item(id, item)
                .map(Some)
                .map_err(|fault| damaged(id, item.number::<u64>("line").unwrap_or(line).max(1) - 1, &fault)),
        }
    }
}

fn of(id: ExecutionId) -> Query {
    Query::of(Table::Logs, "execution_id", s(id.to_string()))
}

/// Says what is damaged to whoever runs this, and where to whoever reads.
pub(super) fn damaged(id: ExecutionId, after_line: u64, fault: &Fault) -> LogError {
    tracing::error!(execution = %id, after_line, error = %fault, "a log is damaged");
    LogError::Damaged { after_line }
}

/// What reading a head came to.
pub(super) fn of_head(id: ExecutionId, fault: Fault) -> LogError {
    match fault {
        Fault::Damaged(_) => damaged(id, 0, &fault),
        fault => fault.into(),
    }
}
