//! Weighs every message after it is unpacked and before it is opened: what it takes then is what its call holds, for as long as it is looked at.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use runvoy_rpc::connectrpc::interceptor::{StreamRequest, StreamResponse, UnaryRequest, UnaryResponse};
use runvoy_rpc::connectrpc::{CodecFormat, ConnectError, Interceptor, Next, NextStream, Payload, PayloadStream, async_trait};

use super::call::Admitted;
use super::error::RpcFault;
use super::upload::Upload;
use crate::body::{MOST_OPENED_BYTES, opened_bytes};
use crate::fault::Fault;
use crate::room::Full;

/// What every message lies on once.
pub(super) struct Scale;

#[async_trait]
impl Interceptor for Scale {
    async fn intercept_unary(&self, request: UnaryRequest, next: Next<'_>) -> Result<UnaryResponse, ConnectError> {
        if let Some(admitted) = request.ctx.extensions().get::<Admitted>() {
            hold(admitted, &request.payload)?;
        }
        next.run(request).await
    }

    async fn intercept_streaming(
        &self,
        request: StreamRequest,
        inbound: PayloadStream,
        next: NextStream<'_>,
    ) -> Result<StreamResponse, ConnectError> {
        let Some(admitted) = request.ctx.extensions().get::<Admitted>().cloned() else { return next.run(request, inbound).await };
        let ending = admitted.upload.clone().map(Ending);
        let load = Arc::clone(&admitted.load);
        let messages = stream::unfold((inbound, admitted), |(mut inbound, admitted)| async move {
            // Whoever wants the next message is done with the one before it.
            if let Some(upload) = &admitted.upload {
                upload.close();
            }
            let message = inbound.next().await?;
            Some((weighed(&admitted, message), (inbound, admitted)))
        });
        let answered = next.run(request, Box::pin(messages)).await;
        if ending.is_none() {
            // A stream of answers needs nothing of what asked for it.
            load.set(0).expect("less always fits");
        }
        answered
    }
}

/// Ends an upload when it is answered, and when nobody waits for its answer any more.
struct Ending(Arc<Upload>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn weighed(admitted: &Admitted, message: Result<Payload, ConnectError>) -> Result<Payload, ConnectError> {
    let is_refused = admitted.upload.as_ref().is_some_and(|upload| upload.is_refused());
    // That its body broke off is all that the stream knows.
    let message = message.map_err(|error| if is_refused { no_room(admitted, Full::Server) } else { error })?;
    hold(admitted, &message)?;
    Ok(message)
}

/// Makes the call hold what a message takes.
fn hold(admitted: &Admitted, message: &Payload) -> Result<(), ConnectError> {
    let held = weigh(message).and_then(|weight| {
        let held = match &admitted.upload {
            Some(upload) => upload.open(weight),
            None => admitted.load.set(weight),
        };
        held.map_err(|full| no_room(admitted, full))
    });
    held.inspect_err(|status| admitted.answered.failed(status.http_status()))
}

/// What a message takes once it is opened. What protobuf may ask for is bounded where it is read.
fn weigh(message: &Payload) -> Result<usize, ConnectError> {
    let bytes = message.bytes();
    let weight = if message.format() == CodecFormat::Json { opened_bytes(bytes) } else { bytes.len() };
    if weight > MOST_OPENED_BYTES {
        let why = format!("the message holds too many values: they would take more than {MOST_OPENED_BYTES} bytes of memory");
        return Err(ConnectError::resource_exhausted(why));
    }
    Ok(weight)
}

fn no_room(admitted: &Admitted, full: Full) -> ConnectError {
    RpcFault::from(Fault::from(full)).into_status(&admitted.caller.request_id)
}
