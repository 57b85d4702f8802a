//! What an attempt has to say to the server that gave its lease: its records and its end.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use runvoy_model::log::Block;
use runvoy_rpc::job::v1::{AppendOutputRequest, CompleteJobRequest, ReleaseJobRequest};

use crate::fault::Fault;
use crate::link::Link;

/// Records and ends may take longer than other calls: nothing else waits for them.
const SHORTEST: Duration = Duration::from_secs(10);

/// What the server did with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It has everything up to this record.
    Stored { through: u64 },
    /// It waits for this record.
    Gap { expected: u64 },
    /// It takes no more output.
    Full { limit_bytes: u64 },
}

/// Where an attempt is told of.
#[async_trait]
pub(crate) trait Desk: Send + Sync + 'static {
    /// Takes records.
    async fn append(&self, token: &str, first_seq: u64, block: Block) -> Result<Appended, Fault>;

    /// Puts the records of an attempt that are there on stable storage; the last of them.
    async fn settle(&self, token: &str) -> Result<u64, Fault>;

    /// Takes the end of an attempt; the record of the execution as JSON.
    async fn complete(&self, token: &str, end: Bytes) -> Result<Bytes, Fault>;

    /// Takes back a lease that nothing was done with.
    async fn release(&self, token: &str) -> Result<(), Fault>;
}

#[async_trait]
impl Desk for Link {
    async fn append(&self, token: &str, first_seq: u64, block: Block) -> Result<Appended, Fault> {
        let request = AppendOutputRequest {
            task_token: token.to_owned(),
            first_sequence: first_seq,
            first_at_ms: block.first_at.0,
            records: block.data,
            ..Default::default()
        };
        let answer =
            self.call(self.within().max(SHORTEST), |server| async move { server.append_output(request).await }).await?.into_owned();
        Ok(match (answer.full_at_bytes, answer.expected) {
            (Some(limit_bytes), _) => Appended::Full { limit_bytes },
            (None, Some(expected)) => Appended::Gap { expected },
            (None, None) => Appended::Stored { through: answer.stored_through },
        })
    }

    async fn settle(&self, token: &str) -> Result<u64, Fault> {
        // No records from the first on are a repeat, and always taken.
        let request = AppendOutputRequest { task_token: token.to_owned(), first_sequence: 1, sync: true, ..Default::default() };
        let answer = self.call(self.within().max(SHORTEST), |server| async move { server.append_output(request).await }).await?;
        Ok(answer.into_owned().stored_through)
    }

    async fn complete(&self, token: &str, end: Bytes) -> Result<Bytes, Fault> {
        let request = CompleteJobRequest { task_token: token.to_owned(), end, ..Default::default() };
        let answer = self.call(self.within().max(SHORTEST), |server| async move { server.complete_job(request).await }).await?;
        Ok(answer.into_owned().execution)
    }

    async fn release(&self, token: &str) -> Result<(), Fault> {
        let request = ReleaseJobRequest { task_token: token.to_owned(), ..Default::default() };
        self.call(self.within(), |server| async move { server.release_job(request).await }).await.map(drop)
    }
}
