//! Following a log: what is there, then what comes, without gap or duplicate, then the end. A follower reads from
//! the store at its own pace; it holds nothing back and nobody waits for it.

use std::sync::Arc;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Chunk;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::hub::Watch;

/// What a follower sees next.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// Records, in order.
    Chunks(Vec<Chunk>),
    /// The execution changed its status.
    Status(Box<Execution>),
    /// The last record has been seen.
    End(Box<Execution>),
}

/// About this much is read at a time.
const PAGE_BYTES: usize = 256 * 1024;

/// One follower of one execution.
pub struct Follower {
    engine: Arc<Engine>,
    id: ExecutionId,
    next_line: u64,
    watch: Watch,
    seen_version: u64,
    ended: Option<Box<Execution>>,
}

impl Engine {
    /// Follows an execution's log from a line on.
    pub async fn follow(self: &Arc<Self>, caller: &Caller, id: &str, from_line: u64) -> Result<Follower, EngineError> {
        let id = self.execution(caller, id).await?.id;
        let watch = self.hub.watch(id);
        Ok(Follower { engine: Arc::clone(self), id, next_line: from_line.max(1), watch, seen_version: 0, ended: None })
    }
}

impl Follower {
    /// What comes next; after [`Followed::End`] nothing does. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Followed, EngineError> {
        loop {
            let chunks = self.engine.ports.logs.read(self.id, self.next_line, PAGE_BYTES).await?;
            if let Some(last) = chunks.last() {
                self.next_line = last.next_line();
                return Ok(Followed::Chunks(chunks));
            }
            // The end was known before this read found nothing, so nothing more can come.
            if let Some(execution) = self.ended.take() {
                return Ok(Followed::End(execution));
            }
            let execution = self.engine.ports.store.get(self.id).await?.ok_or_else(|| EngineError::no_execution(self.id))?;
            if execution.status.is_terminal() {
                self.ended = Some(Box::new(execution));
                continue;
            }
            if execution.version != self.seen_version {
                self.seen_version = execution.version;
                return Ok(Followed::Status(Box::new(execution)));
            }
            tokio::select! {
                () = self.watch.changed() => {}
                () = tokio::time::sleep(self.engine.config.poll) => {}
            }
        }
    }
}
