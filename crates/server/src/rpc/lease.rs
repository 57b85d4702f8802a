//! What the holder of a lease does with it, but its end: begin, keep, hand back; what the attempt needs, and what it gives.

use bytes::Bytes;
use runvoy_model::command::Extend;
use runvoy_model::execution::KillRequest;
use runvoy_model::log::{Block, BlockBuilder, Record};
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::{LeaseError, Material as Opened};
use runvoy_rpc::job::v1::{
    AppendOutputRequest, AppendOutputResponse, BeginJobRequest, BeginJobResponse, FetchMaterialsRequest, FetchMaterialsResponse, KillOrder,
    Material, ReleaseJobRequest, ReleaseJobResponse, StoreBlobRequest, StoreBlobResponse, UpdateJobRequest, UpdateJobResponse,
};

use super::call::Call;
use super::error::RpcFault;
use super::token::Task;
use crate::body::opened_bytes;

const DEFAULT_TTL_MS: u64 = 300_000;
const MOST_TTL_SECONDS: i64 = 12 * 3600;
const LEAST_TTL_MS: u64 = 1_000;
/// The clock of a worker may be ahead by so much.
const AHEAD_MS: i64 = 60_000;
/// What a worker says that its command does may take this much once it is read.
const MAX_OPENED_ACTIVITY_BYTES: usize = 2 << 20;

/// How long a lease lasts, by what the client says in seconds, or more finely.
pub(super) fn ttl_ms(seconds: i32, ms: i64) -> Result<u64, RpcFault> {
    let most_ms = u64::try_from(MOST_TTL_SECONDS * 1000).expect("a constant");
    match (u64::try_from(ms), u64::try_from(seconds.max(0))) {
        (Ok(ms), _) if (LEAST_TTL_MS..=most_ms).contains(&ms) => Ok(ms),
        (Ok(0), Ok(0)) => Ok(DEFAULT_TTL_MS),
        (Ok(0), Ok(seconds)) if seconds * 1000 <= most_ms => Ok(seconds * 1000),
        (Ok(0), _) => Err(RpcFault::invalid("visibility_timeout_seconds", format!("must be at most {MOST_TTL_SECONDS} s"))),
        _ => Err(RpcFault::invalid("lease_ttl_ms", format!("must be 0, or from {LEAST_TTL_MS} to {most_ms} ms"))),
    }
}

pub(super) async fn begin(call: Call, request: BeginJobRequest) -> Result<BeginJobResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    let execution = call.under(&task, call.engine().begin(&call.holder(task.worker), task.fence).await).await?;
    Ok(BeginJobResponse { execution: json(&execution), ..BeginJobResponse::default() })
}

pub(super) async fn update(call: Call, request: UpdateJobRequest) -> Result<UpdateJobResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    if !request.queue.is_empty() && request.queue != task.queue.as_str() {
        return Err(RpcFault::invalid("queue", "differs from the queue of the token"));
    }
    if opened_bytes(request.activity_json.as_bytes()) > MAX_OPENED_ACTIVITY_BYTES {
        return Err(RpcFault::invalid("activity_json", format!("would take more than {MAX_OPENED_ACTIVITY_BYTES} bytes of memory")));
    }
    let activity = Some(&request.activity_json).filter(|text| !text.is_empty()).map(|text| serde_json::from_str(text));
    let extend = Extend {
        fence: task.fence,
        ttl_ms: ttl_ms(request.visibility_timeout_seconds, request.lease_ttl_ms)?,
        process_id: request.process_id,
        rss_bytes: request.rss_bytes,
        last_output_at: request.last_output_at_ms.map(UnixMs),
        activity: activity.transpose().map_err(|error| RpcFault::invalid("activity_json", error.to_string()))?,
        preparing: Some(request.preparing).filter(|preparing| !preparing.is_empty()),
    };
    call.note_holder(&task).await;
    let extended = call.under(&task, call.engine().extend(&call.holder(task.worker), extend).await).await?;
    let kill = extended.kill.map(|KillRequest { by, at, force }| KillOrder { by, at_ms: at.0, force, ..KillOrder::default() });
    Ok(UpdateJobResponse { kill: kill.into(), lease_ttl_ms: extended.ttl_ms, ..UpdateJobResponse::default() })
}

pub(super) async fn release(call: Call, request: ReleaseJobRequest) -> Result<ReleaseJobResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    call.note_holder(&task).await;
    call.under(&task, call.engine().release(&call.holder(task.worker), task.fence).await).await?;
    Ok(ReleaseJobResponse::default())
}

pub(super) async fn materials(call: Call, request: FetchMaterialsRequest) -> Result<FetchMaterialsResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    match call.engine().materials(task.fence).await {
        Err(LeaseError::Refused(why)) => Ok(FetchMaterialsResponse { refused: Some(why), ..FetchMaterialsResponse::default() }),
        answered => {
            let materials = call.under(&task, answered).await?;
            if let Some(reserved) = materials.reserved {
                call.answer_holds(reserved);
            }
            Ok(FetchMaterialsResponse {
                secrets: materials.secrets.into_iter().map(material).collect(),
                git_token: materials.git_token.map(material).into(),
                input: materials.input.map(Bytes::from),
                ..FetchMaterialsResponse::default()
            })
        }
    }
}

fn material(Opened { name, key_name, value }: Opened) -> Material {
    Material { name: name.to_string(), key_name, value, ..Material::default() }
}

pub(super) async fn store_blob(call: Call, request: StoreBlobRequest) -> Result<StoreBlobResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    match call.engine().keep_output(task.fence, request.data.to_vec()).await {
        Err(LeaseError::Refused(why)) => Ok(StoreBlobResponse { refused: Some(why), ..StoreBlobResponse::default() }),
        answered => {
            let payload = call.under(&task, answered).await?;
            Ok(StoreBlobResponse { payload: json(&payload), ..StoreBlobResponse::default() })
        }
    }
}

pub(super) async fn append(call: Call, request: AppendOutputRequest) -> Result<AppendOutputResponse, RpcFault> {
    let task = call.task(&request.task_token).await?;
    if request.first_sequence == 0 {
        return Err(RpcFault::invalid("first_sequence", "must be 1 or more"));
    }
    let block = Block::decode(UnixMs(request.first_at_ms), request.records);
    let block = block.map_err(|error| RpcFault::invalid("records", error.to_string()))?;
    let block = within_time(block, call.engine().now());
    let late = call.under(&task, call.engine().is_late(task.fence).await).await?;
    match call.engine().append(task.fence, request.first_sequence, block, late).await {
        Err(LeaseError::Gap { expected }) => {
            let stored_through = expected.saturating_sub(1);
            Ok(AppendOutputResponse { stored_through, expected: Some(expected), ..AppendOutputResponse::default() })
        }
        Err(LeaseError::LogFull { limit_bytes }) => {
            // Some of it may be there since an answer was lost. No records are always taken, and tell how far it goes.
            let stand = call.engine().append(task.fence, 1, BlockBuilder::default().take(), late).await;
            let stored_through = call.under(&task, stand).await?.saturating_sub(1);
            Ok(AppendOutputResponse { stored_through, full_at_bytes: Some(limit_bytes), ..AppendOutputResponse::default() })
        }
        answered => {
            let next = call.under(&task, answered).await?;
            if request.sync {
                call.under(&task, call.engine().sync_log(task.fence).await).await?;
            }
            Ok(AppendOutputResponse { stored_through: next.saturating_sub(1), ..AppendOutputResponse::default() })
        }
    }
}

/// The same records, with none from a time to come: a log is kept for so long after its latest record, and one from another age would keep it for ever.
fn within_time(block: Block, now: UnixMs) -> Block {
    let latest = now.plus_ms(AHEAD_MS);
    let is_within = |record: &Record<'_>| (UnixMs(0)..=latest).contains(&record.at);
    if block.records().flatten().all(|record| is_within(&record)) {
        return block;
    }
    let mut moved = BlockBuilder::default();
    for record in block.records().flatten() {
        moved.push(Record { at: record.at.max(UnixMs(0)).min(latest), ..record });
    }
    moved.take()
}

impl Call {
    /// What came of something under a lease; a lease that is lost because there is no such execution is told apart.
    pub(super) async fn under<T>(&self, task: &Task, answered: Result<T, LeaseError>) -> Result<T, RpcFault> {
        let error = match answered {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_unknown = matches!(error, LeaseError::Lost(_))
            && self.engine().ports().store.get(task.fence.execution).await.is_ok_and(|execution| execution.is_none());
        Err(if is_unknown { RpcFault::NoJob(task.fence.execution.to_string()) } else { error.into() })
    }
}

/// A model type as our own worker reads it.
pub(super) fn json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).expect("model types are plain data").into()
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::Stream;

    use super::*;

    #[test]
    fn a_time_to_come_is_moved_to_now_and_nothing_else_changes() {
        let block = |times: &[i64]| {
            let mut block = BlockBuilder::default();
            for at in times {
                block.push(Record { at: UnixMs(*at), stream: Stream::Stderr, cont: false, eol: true, bytes: b"text" });
            }
            block.take()
        };
        let now = UnixMs(1_000_000);
        assert_eq!(within_time(block(&[5, 1_060_000]), now), block(&[5, 1_060_000]));
        assert_eq!(within_time(block(&[5, i64::MAX, -1, 7]), now), block(&[5, 1_060_000, 0, 7]));
        assert_eq!(within_time(block(&[]), now), block(&[]));
    }

    #[test]
    fn a_lease_lasts_as_long_as_was_said_within_bounds() {
        let ttl = |seconds, ms| ttl_ms(seconds, ms).ok();
        assert_eq!((ttl(0, 0), ttl(7, 0), ttl(43_200, 0)), (Some(300_000), Some(7_000), Some(43_200_000)));
        assert_eq!((ttl(7, 2_500), ttl(0, 43_200_000)), (Some(2_500), Some(43_200_000)));
        assert_eq!(ttl(-1, 0), Some(300_000));
        assert_eq!((ttl(43_201, 0), ttl(0, 999), ttl(0, -1), ttl(0, 43_200_001)), (None, None, None, None));
    }
}
