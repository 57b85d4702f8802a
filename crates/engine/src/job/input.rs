//! The document that a task finds in the file that `RUNVOY_INPUT` names, put together piece by piece in the one buffer that becomes the file.
//! What lies in the blob store is JSON text already: it is checked and copied, never taken apart.

use runvoy_model::execution::Execution;
use runvoy_model::id::JobId;
use runvoy_model::job::{Node, Payload};
use runvoy_model::json;
use runvoy_model::name::Name;
use runvoy_ports::memory::Reservation;
use serde_json::value::RawValue;

use crate::Engine;
use crate::error::EngineError;

/// What a task is given is held in memory once, and is not larger than this.
const MOST_BYTES: usize = 64 << 20;
/// The outputs of so many parents are held beside the document at a time, as long as they are small.
const AT_ONCE: usize = 16;
/// A document up to this size needs no reservation: the number of attempts bounds what they take together.
const SMALL_BYTES: usize = 256 << 10;
/// How often a document is in memory at most: as it is put together, and as it is sent to the runner or the worker.
const COPIES: usize = 2;

/// A document that is being written. Whatever takes a while is done off the runtime.
struct Document {
    text: Vec<u8>,
    most: usize,
}

impl Document {
    fn new(most: usize) -> Self {
        Self { text: b"{\"input\":".to_vec(), most }
    }

    /// Writes data as it is; what lies in the blob store comes with its bytes.
    fn data(&mut self, data: Option<&Payload>, blob: Option<&[u8]>, otherwise: &[u8]) -> Result<(), EngineError> {
        match (data, blob) {
            (Some(Payload::Inline(value)), _) => serde_json::to_writer(&mut self.text, value).expect("a JSON value can be written"),
            (Some(Payload::Blob { key, .. }), Some(bytes)) => {
                let bad = |error| EngineError::Internal(format!("blob {key} is not JSON: {error}"));
                let raw: &RawValue = serde_json::from_slice(bytes).map_err(bad)?;
                self.text.extend_from_slice(raw.get().as_bytes());
            }
            (Some(Payload::Blob { key, .. }), None) => return Err(EngineError::Internal(format!("blob {key} is gone"))),
            (None, _) => self.text.extend_from_slice(otherwise),
        }
        self.room_for(0)
    }

    fn outputs(&mut self) {
        self.text.extend_from_slice(b",\"dependencyOutputs\":{");
    }

    /// Writes what a parent gave.
    fn output(&mut self, parent: &Name, output: Option<&Payload>, blob: Option<&[u8]>) -> Result<(), EngineError> {
        if self.text.last() != Some(&b'{') {
            self.text.push(b',');
        }
        serde_json::to_writer(&mut self.text, parent).expect("a name can be written");
        self.text.push(b':');
        self.data(output, blob, b"null")
    }

    fn finish(mut self) -> Vec<u8> {
        self.text.extend_from_slice(b"}}");
        self.text
    }

    /// Refuses what would make the document too large.
    fn room_for(&self, bytes: u64) -> Result<(), EngineError> {
        if (self.text.len() as u64).saturating_add(bytes) > self.most as u64 {
            let message = format!("the input of the task, with the outputs of its dependencies, is larger than {} MiB", self.most >> 20);
            return Err(EngineError::conflict(message, "pass the address of large data instead of the data"));
        }
        Ok(())
    }
}

impl Engine {
    /// What a task finds in its file, with the memory that is reserved for it.
    pub(crate) async fn task_input(&self, execution: &Execution) -> Result<Option<(Vec<u8>, Option<Reservation>)>, EngineError> {
        let Some(task) = &execution.spec.task else { return Ok(None) };
        let Some(node) = self.ports.jobs.node(task.job, task.task.as_str()).await? else { return Ok(None) };
        let Node { job, depends_on, input, .. } = node;
        let mut first = self.ports.jobs.outputs(job, first_of(&depends_on)).await?;
        let bytes = self.input_bytes(job, input.as_ref(), &depends_on, &first).await?;
        let reserved = if bytes > SMALL_BYTES { Some(self.memory.reserve(bytes.min(MOST_BYTES) * COPIES).await) } else { None };
        let mut document = Document::new(MOST_BYTES);
        let blob = self.blob_of(&document, input.as_ref()).await?;
        document = off_the_runtime(move || {
            document.data(input.as_ref(), blob.as_deref(), b"{}")?;
            document.outputs();
            Ok(document)
        })
        .await?;
        for parents in depends_on.chunks(AT_ONCE) {
            let outputs = match std::mem::take(&mut first) {
                first if !first.is_empty() => first,
                _ => self.ports.jobs.outputs(job, parents).await?,
            };
            // One blob at a time is beside the document, and the small outputs before it go with it.
            let mut small = Vec::new();
            for (parent, output) in parents.iter().cloned().zip(outputs) {
                if !matches!(output, Some(Payload::Blob { .. })) {
                    small.push((parent, output));
                    continue;
                }
                let blob = self.blob_of(&document, output.as_ref()).await?;
                document = written(document, std::mem::take(&mut small), Some((parent, output, blob))).await?;
            }
            document = written(document, small, None).await?;
        }
        Ok(Some((document.finish(), reserved)))
    }

    /// About how large the document will be, found out before any of it is held.
    async fn input_bytes(
        &self,
        job: JobId,
        input: Option<&Payload>,
        parents: &[Name],
        first: &[Option<Payload>],
    ) -> Result<usize, EngineError> {
        let mut bytes = input.map_or(0, payload_bytes) + first.iter().flatten().map(payload_bytes).sum::<usize>();
        for parents in parents.chunks(AT_ONCE).skip(1) {
            let outputs = self.ports.jobs.outputs(job, parents).await?;
            bytes = bytes.saturating_add(outputs.iter().flatten().map(payload_bytes).sum());
        }
        Ok(bytes)
    }

    /// The bytes of data that lies in the blob store, if the document has room for them.
    async fn blob_of(&self, document: &Document, data: Option<&Payload>) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(Payload::Blob { key, bytes }) = data else { return Ok(None) };
        document.room_for(*bytes)?;
        Ok(self.ports.blobs.get(key).await?)
    }
}

fn first_of(parents: &[Name]) -> &[Name] {
    &parents[..parents.len().min(AT_ONCE)]
}

fn payload_bytes(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(value) => json::opened_bytes(value),
        Payload::Blob { bytes, .. } => usize::try_from(*bytes).unwrap_or(usize::MAX),
    }
}

type Output = (Name, Option<Payload>);

async fn written(
    mut document: Document,
    small: Vec<Output>,
    large: Option<(Name, Option<Payload>, Option<Vec<u8>>)>,
) -> Result<Document, EngineError> {
    off_the_runtime(move || {
        for (parent, output) in &small {
            document.output(parent, output.as_ref(), None)?;
        }
        if let Some((parent, output, blob)) = &large {
            document.output(parent, output.as_ref(), blob.as_deref())?;
        }
        Ok(document)
    })
    .await
}

async fn off_the_runtime(work: impl FnOnce() -> Result<Document, EngineError> + Send + 'static) -> Result<Document, EngineError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(EngineError::Internal(error.to_string())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn blob(bytes: &[u8]) -> Payload {
        Payload::Blob { key: "k".into(), bytes: bytes.len() as u64 }
    }

    #[test]
    fn a_document_has_its_input_and_every_output_as_they_were_written() {
        let mut document = Document::new(1_000);
        document.data(None, None, b"{}").expect("room");
        document.outputs();
        // Numbers in a blob stay as they are, also those that no machine number can hold.
        let large: &[u8] = b" {\"n\": 12345678901234567890123456789012345678901.50} ";
        document.output(&name("a"), Some(&Payload::Inline(json!("\"é"))), None).expect("room");
        document.output(&name("b"), None, None).expect("room");
        document.output(&name("c"), Some(&blob(large)), Some(large)).expect("JSON");
        let text = String::from_utf8(document.finish()).expect("text");
        assert_eq!(
            text,
            "{\"input\":{},\"dependencyOutputs\":{\"a\":\"\\\"é\",\"b\":null,\"c\":{\"n\": 12345678901234567890123456789012345678901.50}}}"
        );
        let mut lonely = Document::new(1_000);
        lonely.data(Some(&Payload::Inline(json!([1]))), None, b"{}").expect("room");
        lonely.outputs();
        let whole: Value = serde_json::from_slice(&lonely.finish()).expect("JSON");
        assert_eq!(whole, json!({"input": [1], "dependencyOutputs": {}}));
    }

    #[test]
    fn what_is_too_large_or_no_json_or_gone_makes_no_document() {
        let mut document = Document::new(100);
        assert!(document.room_for(1_000).is_err() && document.room_for(u64::MAX).is_err(), "told before it is read");
        for bytes in [&b"{\"a\":1}{}"[..], b"\"\xff\"", b"", b"{\"a\":"] {
            assert!(document.output(&name("a"), Some(&blob(bytes)), Some(bytes)).is_err(), "{bytes:?}");
        }
        assert!(document.output(&name("a"), Some(&blob(b"1")), None).is_err());
        let wide = Payload::Inline(json!("x".repeat(200)));
        assert!(matches!(document.output(&name("a"), Some(&wide), None), Err(EngineError::Conflict { .. })));
    }
}
