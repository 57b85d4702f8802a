//! What a worker elsewhere is told of a log that takes nothing more: full it is for now, damaged for good.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use runvoy_conformance::tap::{LogTap, Tapped};
use runvoy_memory::MemoryLogStore;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, Extent, LogError, LogStore};
use runvoy_rpc::connectrpc::ErrorCode;
use runvoy_rpc::job::v1::{AppendOutputRequest, CompleteJobRequest, DequeueJobRequest, DequeueJobResponse, JobResult};

use super::{admin, enqueue, job, lease, look, over_both, refusal};
use crate::app::NOW;

#[derive(Debug, Clone, Copy)]
enum Trouble {
    Full,
    Damaged,
}

/// Logs of which nothing more is taken from some time on.
#[derive(Default)]
struct Troubled {
    inner: MemoryLogStore,
    trouble: Mutex<Option<Trouble>>,
}

#[async_trait]
impl LogTap for Troubled {
    fn inner(&self) -> &dyn LogStore {
        &self.inner
    }

    async fn append(&self, id: ExecutionId, append: Append) -> Result<Appended, LogError> {
        let trouble = *self.trouble.lock();
        match trouble {
            Some(Trouble::Full) if append.block.count > 0 => Err(LogError::Full { limit_bytes: 7 }),
            Some(Trouble::Damaged) => Err(LogError::Damaged { after_line: 2 }),
            _ => self.inner.append(id, append).await,
        }
    }

    async fn sync(&self, id: ExecutionId) -> Result<Extent, LogError> {
        let trouble = *self.trouble.lock();
        match trouble {
            Some(Trouble::Damaged) => Err(LogError::Damaged { after_line: 2 }),
            _ => self.inner.sync(id).await,
        }
    }
}

fn output(leased: &DequeueJobResponse, first_sequence: u64, lines: &[&str]) -> AppendOutputRequest {
    let mut block = BlockBuilder::default();
    for line in lines {
        block.push(Record { at: UnixMs(NOW), stream: Stream::Stdout, cont: false, eol: true, bytes: line.as_bytes() });
    }
    let (task_token, block) = (leased.task_token.clone(), block.take());
    AppendOutputRequest { task_token, first_sequence, first_at_ms: block.first_at.0, records: block.data, ..Default::default() }
}

#[tokio::test]
async fn a_full_log_says_what_it_has_and_a_damaged_one_that_another_try_is_of_no_use() {
    over_both(|app, protocol| async move {
        let logs = Arc::new(Tapped(Troubled::default()));
        let app = app.rewired(|ports| ports.logs = Arc::clone(&logs) as _);
        let served = app.listen().await;
        let client = admin(&served, protocol);
        let id = enqueue(&client, job("true")).await;
        let leased = lease(&client, DequeueJobRequest::default()).await;
        client.append_output(output(&leased, 1, &["one", "two"])).await.expect("it is taken");

        *logs.trouble.lock() = Some(Trouble::Full);
        let full = client.append_output(output(&leased, 1, &["one", "two", "three"])).await.expect("it is answered").into_owned();
        assert_eq!((full.full_at_bytes, full.stored_through), (Some(7), 2));
        let nothing = AppendOutputRequest { sync: true, ..output(&leased, 1, &[]) };
        let stand = client.append_output(nothing).await.expect("no records are always taken").into_owned();
        assert_eq!((stand.full_at_bytes, stand.stored_through), (None, 2));

        *logs.trouble.lock() = Some(Trouble::Damaged);
        let (code, why) = refusal(client.append_output(output(&leased, 3, &["three"])).await);
        assert_eq!(code, ErrorCode::DataLoss, "{why}");
        let over = CompleteJobRequest {
            task_token: leased.task_token.clone(),
            job_result: JobResult { success: true, ..Default::default() }.into(),
            ..CompleteJobRequest::default()
        };
        client.complete_job(over).await.expect("its end is taken all the same");
        assert_eq!(look(&client, &id).await.status, "SUCCEEDED");
    })
    .await;
}
