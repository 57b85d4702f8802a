//! Events of jobs: published by whoever holds the lease, streamed to whoever may see the execution. How a message becomes what the engine keeps, and back, is in
//! [`envelope`].

mod envelope;
mod part;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use runvoy_engine::{JobEventFilter, JobEventFollower};
use runvoy_model::role::Action;
use runvoy_model::time::UnixMs;
use runvoy_rpc::connectrpc::{ConnectError, InboundStream, ServiceStream};
use runvoy_rpc::job::v1::{PublishJobEventsRequest, PublishJobEventsResponse, StreamJobEventsRequest, StreamJobEventsResponse};
use tokio::time::Instant;

use super::call::Call;
use super::error::RpcFault;
use super::execution;
use super::token::Task;
use crate::app::OpenStream;
use crate::credential::Standing;
use crate::fault::Fault;

/// Whoever reads or publishes is looked at so often: their key may have been revoked.
const LOOK_AT_CALLER: Duration = Duration::from_secs(1);
/// What one message may bring. A larger output goes into several messages, and the log has no notion of where they were cut.
pub(super) const MOST_MESSAGE_BYTES: usize = 16 << 20;

/// Keeps events as they come; the answer, at the end, means that all of them are stored. The next message is read when the one before it is.
pub(super) async fn publish(
    call: Call,
    mut requests: InboundStream<PublishJobEventsRequest>,
) -> Result<PublishJobEventsResponse, RpcFault> {
    // A command may run for longer than the token that its worker came with: the lease decides, and a revocation.
    let (standing, mut lease) = (Standing::of(&call.caller).past_expiry(), None::<(String, Task)>);
    let mut look_at = Instant::now() + LOOK_AT_CALLER;
    while let Some(request) = next(&call, &mut requests).await? {
        if Instant::now() >= look_at {
            standing.still_stands(&call.state, Action::Lease).await?;
            look_at = Instant::now() + LOOK_AT_CALLER;
        }
        let token = request.task_token;
        let task = match &lease {
            Some((known, task)) if token.is_empty() || token == *known => task.clone(),
            Some(_) => return Err(RpcFault::invalid("task_token", "differs from the token before it: a stream belongs to one lease")),
            None => call.task(&token).await?,
        };
        lease.get_or_insert_with(|| (token, task.clone()));
        call.note_holder(&task).await;
        let now = call.engine().now();
        let mut events = Vec::with_capacity(request.events.len());
        for event in request.events {
            events.extend(part::parts(envelope::opened(event, now)?));
        }
        let (engine, holder, fence, load) = (Arc::clone(call.engine()), call.holder(task.worker), task.fence, call.load());
        // To its end, whoever goes away; and the room is taken until then.
        let kept = tokio::spawn(async move {
            let kept = engine.publish_events(&holder, fence, events).await;
            drop(load);
            kept
        });
        call.under(&task, kept.await.map_err(|_| Fault::Panicked)?).await?;
    }
    if let Some((_, task)) = &lease {
        call.under(task, call.engine().sync_events(task.fence).await).await?;
    }
    Ok(PublishJobEventsResponse::default())
}

/// The next message; a server that stops waits for none.
async fn next(call: &Call, requests: &mut InboundStream<PublishJobEventsRequest>) -> Result<Option<PublishJobEventsRequest>, RpcFault> {
    let next = tokio::select! {
        next = requests.next() => next,
        () = call.state.stopping() => return Err(RpcFault::Stopping),
    };
    match next.transpose() {
        Ok(message) => Ok(message.map(|message| message.to_owned_message())),
        Err(error) => Err(RpcFault::Received(error)),
    }
}

/// Streams events, those that were and those that come, until the last of an execution that has ended.
pub(super) async fn stream(call: Call, request: StreamJobEventsRequest) -> Result<ServiceStream<StreamJobEventsResponse>, RpcFault> {
    let id = execution::id(&request.job_id)?;
    let follower = call.engine().follow_job_events(&call.caller, &id, filter(&request)).await?.in_order_of(envelope::covered);
    let (standing, open) = (Standing::of(&call.caller), call.open_stream()?);
    let reader = Reader { standing, look_at: Instant::now() + LOOK_AT_CALLER, follower, call, _open: open };
    let events = stream::try_unfold(reader, |mut reader| async move {
        let next = reader.next().await.map_err(|fault| fault.into_status(&reader.call.caller.request_id))?;
        Ok::<_, ConnectError>(next.map(|response| (response, reader)))
    });
    Ok(Box::pin(events))
}

fn filter(request: &StreamJobEventsRequest) -> JobEventFilter {
    let kinds: Vec<i32> = request.event_filter.iter().map(|kind| kind.to_i32()).collect();
    let kinds = if kinds.contains(&0) { Vec::new() } else { kinds.into_iter().map(|kind| u8::try_from(kind).unwrap_or(u8::MAX)).collect() };
    let from = Some(UnixMs(request.from_timestamp)).filter(|from| from.0 > 0);
    JobEventFilter { from_sequence: request.from_sequence, from, kinds }
}

/// One reader.
struct Reader {
    call: Call,
    follower: JobEventFollower,
    standing: Standing,
    look_at: Instant,
    _open: OpenStream,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<StreamJobEventsResponse>, RpcFault> {
        loop {
            if Instant::now() >= self.look_at {
                self.standing.still_stands(&self.call.state, Action::Read).await?;
                self.look_at = Instant::now() + LOOK_AT_CALLER;
            }
            let next = tokio::select! {
                next = self.follower.next() => next?,
                () = tokio::time::sleep_until(self.look_at) => continue,
                () = self.call.state.stopping() => return Err(RpcFault::Stopping),
            };
            let Some(event) = next else { return Ok(None) };
            let event = envelope::closed(event).map_err(|error| Fault::Engine(runvoy_engine::EngineError::Internal(error.to_string())))?;
            return Ok(Some(StreamJobEventsResponse { event: event.into(), ..StreamJobEventsResponse::default() }));
        }
    }
}
