//! Workers elsewhere: who they are, that they are there, and what they should look at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use runvoy_engine::{EngineError, FOREIGN_RUNNER};
use runvoy_model::command::Worker;
use runvoy_model::id::{ExecutionId, WorkerId};
use runvoy_model::name::Name;
use runvoy_model::role::Action;
use runvoy_model::rpc::{JOB_V1, PROTOCOL_LABEL};
use runvoy_model::spec::{MOST_LABELS, Needs, is_label};
use runvoy_model::time::UnixMs;
use runvoy_model::worker::{MOST_QUEUES, Presence};
use runvoy_rpc::connectrpc::{ConnectError, ServiceStream};
use runvoy_rpc::job::v1::{AttendWorkerRequest, AttendWorkerResponse, ReportWorkerRequest, ReportWorkerResponse, WorkerInfo, WorkerNeed};
use sha2::{Digest as _, Sha256};

use super::call::Call;
use super::error::RpcFault;
use super::token::Task;
use crate::credential::Standing;

/// A worker that listens hears something at least so often, so that either side notices when the other is gone.
const STILL_THERE: Duration = Duration::from_secs(15);
const MOST_TEXT: usize = 256;
const MOST_HELD: usize = 10_000;

/// A worker as a lease knows it; whoever says nothing of itself is known by its key and its queues, and takes anything. Our own takes leases in two steps and
/// reads the spec; whoever does not reads the parameters of the job itself.
pub(super) fn identity(call: &Call, info: Option<&WorkerInfo>, queues: &[Name], two_step: bool) -> Result<Worker, RpcFault> {
    let mut worker = match info {
        Some(info) => described(info)?,
        None => Worker {
            id: id_of(call, queues),
            host: call.caller.from.clone(),
            runner: FOREIGN_RUNNER.into(),
            in_process: false,
            serves: Needs::ALL.to_vec(),
            labels: BTreeMap::new(),
        },
    };
    if !two_step {
        worker.labels.insert(PROTOCOL_LABEL.to_owned(), JOB_V1.to_owned());
    }
    Ok(worker)
}

/// A worker as it describes itself.
fn described(info: &WorkerInfo) -> Result<Worker, RpcFault> {
    let id = worker_id("worker.id", &info.id)?;
    for (field, text) in
        [("name", &info.name), ("host", &info.host), ("runner", &info.runner), ("version", &info.version), ("place", &info.place)]
    {
        if text.len() > MOST_TEXT || text.chars().any(char::is_control) {
            return Err(RpcFault::invalid(&format!("worker.{field}"), format!("must have at most {MOST_TEXT} printable characters")));
        }
    }
    if info.labels.len() > MOST_LABELS || !info.labels.iter().all(|(key, value)| is_label(key, value)) {
        return Err(RpcFault::invalid("worker.labels", format!("at most {MOST_LABELS}, each a name and {MOST_TEXT} printable characters")));
    }
    let needs = |need: &runvoy_rpc::buffa::EnumValue<WorkerNeed>| match need.as_known() {
        Some(WorkerNeed::Process) => Ok(Needs::Process),
        Some(WorkerNeed::Image) => Ok(Needs::Image),
        _ => Err(RpcFault::invalid("worker.serves", "names a capability that this server does not know")),
    };
    let serves = info.serves.iter().map(needs).collect::<Result<Vec<_>, _>>()?;
    let serves = if serves.is_empty() { Needs::ALL.to_vec() } else { serves };
    let labels = info.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(Worker { id, host: info.host.clone(), runner: info.runner.clone(), in_process: false, serves, labels })
}

/// Who shows the same key and serves the same queues is the same worker. Clients with one key that serve other queues are seen beside each other.
fn id_of(call: &Call, queues: &[Name]) -> WorkerId {
    let mut digest = Sha256::new();
    digest.update(b"runvoy rpc worker\0");
    digest.update(call.caller.key_hash.unwrap_or_default());
    digest.update(call.caller.email.as_bytes());
    for queue in queues {
        digest.update(b"\0");
        digest.update(queue.as_str());
    }
    let digest: [u8; 32] = digest.finalize().into();
    WorkerId::from_bytes(*digest.first_chunk().expect("a digest is longer"))
}

/// What is known of whoever asks for leases without saying who it is. What it runs is what it holds, which its leases say.
pub(super) fn asker(call: &Call, worker: &Worker, queues: &[Name], wanted: usize) -> Presence {
    let now = call.engine().now();
    Presence {
        worker: worker.id,
        account: account(call),
        name: call.caller.worker_account().unwrap_or(&call.caller.email).to_owned(),
        host: worker.host.clone(),
        version: "unknown".into(),
        runner: worker.runner.clone(),
        queues: queues.to_vec(),
        labels: BTreeMap::new(),
        concurrency: u32::try_from(wanted).unwrap_or(u32::MAX),
        running: 0,
        in_process: false,
        draining: false,
        since: now,
        seen_at: now,
        busy_until: None,
        place: None,
    }
}

impl Call {
    /// Tells that the holder of a lease is there, which may tell nothing else of itself. It is a hint: that it is not kept costs nobody their lease.
    pub(super) async fn note_holder(&self, task: &Task) {
        if let Err(error) = self.engine().note_holder(task.worker).await {
            tracing::debug!(%error, "the presence of a client that holds a lease was not recorded");
        }
    }
}

fn worker_id(field: &str, text: &str) -> Result<WorkerId, RpcFault> {
    text.parse().map_err(|_| RpcFault::invalid(field, "must be 32 hexadecimal digits"))
}

/// The queues that a request names, if the caller may serve them.
pub(super) fn queues(call: &Call, field: &str, texts: &[String]) -> Result<Vec<Name>, RpcFault> {
    if texts.len() > MOST_QUEUES {
        return Err(RpcFault::invalid(field, format!("must list at most {MOST_QUEUES} queues")));
    }
    let mut queues = Vec::with_capacity(texts.len());
    for text in texts {
        let queue = Name::new(text.as_str()).map_err(|error| RpcFault::invalid(field, error.to_string()))?;
        call.may_serve(&queue)?;
        if !queues.contains(&queue) {
            queues.push(queue);
        }
    }
    Ok(queues)
}

/// The account that calls; `None` for a person.
fn account(call: &Call) -> Option<Name> {
    call.caller.worker_account().and_then(|name| Name::new(name).ok())
}

/// Refuses who speaks for a worker of somebody else.
pub(super) async fn speak_for(call: &Call, worker: WorkerId) -> Result<(), RpcFault> {
    call.engine().may_speak_for(worker, account(call).as_ref()).await.map_err(|error| match error {
        EngineError::Denied { .. } => RpcFault::OtherWorker(error.to_string()),
        error => error.into(),
    })
}

pub(super) async fn report(call: Call, request: ReportWorkerRequest) -> Result<ReportWorkerResponse, RpcFault> {
    let info = request.worker.as_option().ok_or_else(|| RpcFault::invalid("worker", "is missing"))?;
    let worker = described(info)?;
    let account = account(&call);
    speak_for(&call, worker.id).await?;
    if request.leaving {
        call.engine().worker_left(worker.id).await?;
        return Ok(ReportWorkerResponse::default());
    }
    if request.job_ids.len() > MOST_HELD {
        return Err(RpcFault::invalid("job_ids", format!("must list at most {MOST_HELD} jobs")));
    }
    let held = request.job_ids.iter().map(|id| id.parse()).collect::<Result<Vec<ExecutionId>, _>>();
    let held = held.map_err(|_| RpcFault::invalid("job_ids", "must list ids of jobs, each 32 hexadecimal digits"))?;
    let presence = Presence {
        worker: worker.id,
        account,
        name: info.name.clone(),
        host: worker.host,
        version: info.version.clone(),
        runner: worker.runner,
        queues: queues(&call, "queues", &request.queues)?,
        labels: worker.labels,
        concurrency: info.concurrency,
        running: u32::try_from(held.len()).unwrap_or(u32::MAX),
        in_process: false,
        draining: request.draining,
        since: UnixMs(request.since_ms),
        seen_at: call.engine().now(),
        busy_until: None,
        place: Some(info.place.clone()).filter(|place| !place.is_empty()),
    };
    let name = call.engine().note_worker(presence).await?;
    let look_at = call.engine().to_look_at(worker.id, &held).await?;
    let job_ids = look_at.iter().map(ToString::to_string).collect();
    let drained = call.engine().is_drained(worker.id).await;
    Ok(ReportWorkerResponse { job_ids, name, drained, ..ReportWorkerResponse::default() })
}

pub(super) async fn attend(call: Call, request: AttendWorkerRequest) -> Result<ServiceStream<AttendWorkerResponse>, RpcFault> {
    let worker = worker_id("worker_id", &request.worker_id)?;
    speak_for(&call, worker).await?;
    let ear = call.engine().listen(worker);
    let (standing, open) = (Standing::of(&call.caller), call.open_stream()?);
    let calls = stream::try_unfold((call, ear, standing, open), |(call, ear, standing, open)| async move {
        let state = Arc::clone(&call.state);
        let job_ids = tokio::select! {
            heard = ear.hear() => heard.iter().map(ToString::to_string).collect(),
            () = tokio::time::sleep(STILL_THERE) => Vec::new(),
            () = state.stopping() => return Err(RpcFault::Stopping.into_status(&call.caller.request_id)),
        };
        if let Err(fault) = standing.still_stands(&state, Action::Lease).await {
            return Err(call.ended(fault.into()).await);
        }
        let response = AttendWorkerResponse { job_ids, ..AttendWorkerResponse::default() };
        Ok::<_, ConnectError>(Some((response, (call, ear, standing, open))))
    });
    Ok(Box::pin(calls))
}
