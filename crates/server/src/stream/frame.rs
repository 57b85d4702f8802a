//! Log chunks as frames: one text frame a line for everybody, one binary frame a chunk for our own clients.

use futures_util::SinkExt as _;
use runvoy_model::log::Chunk;
use runvoy_wire::{Batch, LogEvent, LogPosition};
use tokio_tungstenite::tungstenite::Message;

use super::pulse::Pulse;
use super::{Gone, Sink};

/// Sends chunks; when it comes back they are on their way, and nothing is held.
pub(super) async fn send_chunks(sink: &mut Sink, execution_id: &str, chunks: &[Chunk], batch: bool, pulse: &Pulse) -> Result<(), Gone> {
    for chunk in chunks {
        if batch {
            let (first_line, attempt, late, block) = (chunk.first_line, chunk.attempt, chunk.late, chunk.block.clone());
            let frame = Batch { first_line, attempt, late, block }.encode();
            pulse.through(sink.feed(Message::Binary(frame))).await?;
        } else {
            send_lines(sink, execution_id, chunk, pulse).await?;
        }
    }
    pulse.through(sink.flush()).await
}

async fn send_lines(sink: &mut Sink, execution_id: &str, chunk: &Chunk, pulse: &Pulse) -> Result<(), Gone> {
    for (line, record) in (chunk.first_line..).zip(chunk.block.records()) {
        let Ok(record) = record else {
            // The store has checked its bytes; what is damaged here is never sent, and the client resumes elsewhere.
            tracing::error!(line, "a damaged record ended a stream");
            return Err(Gone);
        };
        let event = LogEvent::from_record(LogPosition { execution_id, line, attempt: chunk.attempt, late: chunk.late }, &record);
        let text = serde_json::to_string(&event).expect("wire types are plain data");
        pulse.through(sink.feed(Message::text(text))).await?;
    }
    Ok(())
}
