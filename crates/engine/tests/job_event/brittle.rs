//! A log store that fails once, when it is told to: before it has written, after, or in the middle.

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use runvoy_conformance::tap::{LogTap, Tapped};
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder};
use runvoy_ports::log::{Append, Appended, Extent, LogError, LogStore};

/// How a write fails.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// Nothing was written.
    Before,
    /// All was.
    After,
    /// Some was.
    Torn,
}

/// The store.
pub struct BrittleLogs {
    inner: Arc<dyn LogStore>,
    /// So many writes go well.
    good: AtomicUsize,
    how: How,
    pub failed: AtomicBool,
}

impl BrittleLogs {
    pub fn over(inner: Arc<dyn LogStore>, good: usize, how: How) -> Tapped<Self> {
        Tapped(Self { inner, good: AtomicUsize::new(good), how, failed: AtomicBool::new(false) })
    }

    /// Whether it is this write's turn. What has failed stays so: the process is gone.
    fn fails(&self) -> bool {
        let failed = self.good.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |good| good.checked_sub(1)).is_err();
        self.failed.fetch_or(failed, Ordering::Relaxed);
        failed
    }
}

fn lost() -> LogError {
    LogError::Storage("the power is gone".into())
}

fn first_half(block: &Block) -> Block {
    let mut builder = BlockBuilder::default();
    for record in block.records().take(block.count as usize / 2) {
        builder.push(record.expect("own encoding"));
    }
    builder.take()
}

#[async_trait]
impl LogTap for BrittleLogs {
    fn inner(&self) -> &dyn LogStore {
        &*self.inner
    }

    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        if append.block.count == 0 {
            return self.inner.append(id, append).await;
        }
        let had_failed = self.failed.load(Ordering::Relaxed);
        if !self.fails() {
            return self.inner.append(id, append).await;
        }
        match self.how {
            _ if had_failed => {}
            How::Before => {}
            How::After => drop(self.inner.append(id, append).await?),
            How::Torn => {
                let block = first_half(&append.block);
                self.inner.append(id, Append { block, ..append }).await?;
            }
        }
        Err(lost())
    }

    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
        if self.fails() { Err(lost()) } else { self.inner.sync(id).await }
    }
}
