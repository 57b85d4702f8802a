//! The platform's own lines in a log: what happened before, between and after the command's output.

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{Block, BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::Append;

use crate::Engine;

/// A block of one platform line.
pub fn platform_line(at: UnixMs, text: &str) -> Block {
    let mut builder = BlockBuilder::default();
    let text = format!("### runvoy: {text}");
    builder.push(Record { at, stream: Stream::Platform, cont: false, eol: true, bytes: text.as_bytes() });
    builder.take()
}

impl Engine {
    /// Says in the log what a new execution waits for.
    pub(crate) async fn note_queued(&self, execution: &Execution) {
        if let Some(waiting) = self.waits_for(execution).await {
            self.note(execution.id, &format!("queued, waiting for {}", waiting.message)).await;
        }
    }

    /// A line in the log is a courtesy: that it cannot be written must not undo what it tells.
    pub(crate) async fn note(&self, id: ExecutionId, text: &str) {
        let block = platform_line(self.now(), text);
        let append = Append { attempt: 0, first_seq: None, late: false, block };
        if let Err(error) = self.ports.logs.append(id, append).await {
            tracing::warn!(execution = %id, %error, "a platform line was not written");
        }
        self.hub.changed(id);
    }
}
