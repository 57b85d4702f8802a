//! Logs on AWS. An open log is in the table `logs`: its head at line 0 and its pieces at their first lines, written together by transactions that are
//! conditioned on the head's version. A sealed log is packed into objects by and by; what comes late stays in the table. Everything appended is
//! durable when it is answered, and every read is consistent, so that followers in other processes need only poll from their cursor.

mod append;
mod config;
mod core;
mod cursor;
mod head;
mod packer;
mod part;
mod piece;
mod place;
mod seal;
mod search;
mod shelf;

use std::sync::Arc;

use async_trait::async_trait;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Chunk;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, Found, LogError, LogStore, Pruned, RawPlace, Search};
use runvoy_ports::search::Seeker;

pub use self::config::LogConfig;
use self::core::{Core, of_head};
use self::packer::Packer;
use self::shelf::Shelf;
use crate::clients::Clients;
use crate::config::Config;
use crate::dynamo::Dynamo;
use crate::fault::Fault;
use crate::mirror::Mirror;

/// The logs of an installation.
pub struct DynamoLogStore {
    core: Arc<Core>,
    packer: Packer,
}

impl DynamoLogStore {
    /// Opens the logs of an installation. What is appended here is offered to the mirror, if there is one. Must be called within a runtime.
    pub fn open(clients: &Clients, config: &Config, logs: LogConfig, mirror: Option<Mirror>) -> Result<Self, Fault> {
        let dynamo = Dynamo::new(clients, Arc::new(config.clone()));
        let shelf = Shelf::new(clients, config, logs.parts_at_hand);
        let core = Arc::new(Core::new(dynamo, shelf, logs, config.shards, mirror)?);
        let packer = Packer::start(Arc::clone(&core));
        Ok(Self { core, packer })
    }

    /// Waits until the logs that were sealed here so far are packed, or were left to the next pruning: before a process ends.
    pub async fn settled(&self) {
        self.packer.idle().await;
    }
}

#[async_trait]
impl LogStore for DynamoLogStore {
    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        self.core.append(id, append).await
    }

    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
        self.extent(id).await
    }

    async fn seal(&self, id: ExecutionId, log_end: u64) -> Result<(), LogError> {
        if self.core.seal(id, log_end).await? {
            self.packer.settle(id);
        }
        Ok(())
    }

    async fn extent(&self, id: ExecutionId) -> Result<Extent, LogError> {
        Ok(self.core.head(id).await.map_err(|fault| of_head(id, fault))?.extent())
    }

    async fn read(&self, id: ExecutionId, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, LogError> {
        let mut cursor = self.core.cursor(id, from_line).await?;
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        while chunks.is_empty() || bytes < max_bytes {
            let piece = match cursor.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // What is good before the damage is served; the next read is told.
                Err(LogError::Damaged { .. }) if !chunks.is_empty() => break,
                Err(error) => return Err(error),
            };
            let next = piece.chunk.next_line();
            let chunk = piece::beginning(piece.chunk, max_bytes.saturating_sub(bytes));
            bytes += chunk.block.data.len();
            let is_cut = chunk.next_line() < next;
            chunks.push(chunk);
            if is_cut {
                break;
            }
        }
        Ok(chunks)
    }

    async fn line_at(&self, id: ExecutionId, at: UnixMs) -> Result<u64, LogError> {
        self.core.line_at(id, at).await
    }

    async fn raw_place(&self, id: ExecutionId, offset: u64) -> Result<Option<RawPlace>, LogError> {
        self.core.raw_place(id, offset).await
    }

    async fn search(&self, id: ExecutionId, search: Search) -> Result<Found, LogError> {
        let seeker = Seeker::new(&search)?;
        search::search(self.core.cursor(id, search.from_line).await?, seeker).await
    }

    async fn prune(&self, before: UnixMs) -> Result<Pruned, LogError> {
        self.core.prune(before).await
    }
}
