//! Logs as callers read them: pages and places. Always by line number, always through the caller's reach.

use runvoy_model::execution::Execution;
use runvoy_model::log::Chunk;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Extent, RawPlace};

use crate::Engine;
use crate::error::EngineError;

impl Engine {
    /// Chunks of an execution's log from a line on. The execution comes from [`Engine::execution`], which has checked the caller.
    pub async fn read_log(&self, execution: &Execution, from_line: u64, max_bytes: usize) -> Result<Vec<Chunk>, EngineError> {
        Ok(self.ports.logs.read(execution.id, from_line, max_bytes).await?)
    }

    /// How far an execution's log goes.
    pub async fn log_extent(&self, execution: &Execution) -> Result<Extent, EngineError> {
        Ok(self.ports.logs.extent(execution.id).await?)
    }

    /// Whether retention has taken the log: the record says that there were lines, and there are none.
    pub async fn log_is_removed(&self, execution: &Execution) -> Result<bool, EngineError> {
        let had_lines = execution.status.is_terminal() && execution.log_end.is_some_and(|log_end| log_end > 0);
        let extent = self.log_extent(execution).await?;
        Ok(had_lines && extent.first_line >= extent.next_line)
    }

    /// The first line written at a time or later.
    pub async fn log_line_at(&self, execution: &Execution, at: UnixMs) -> Result<u64, EngineError> {
        Ok(self.ports.logs.line_at(execution.id, at).await?)
    }

    /// The line that holds a byte of the raw output.
    pub async fn log_raw_place(&self, execution: &Execution, offset: u64) -> Result<Option<RawPlace>, EngineError> {
        Ok(self.ports.logs.raw_place(execution.id, offset).await?)
    }
}
