//! A log over a WebSocket. Four things run side by side and the first to finish ends the stream: the pump that sends, the ear that hears the
//! client, the guard that watches the client's rights and signs of life, and the server's own end. A slow client slows only its pump, which
//! reads the store at the client's pace and holds one page.

mod frame;
mod pulse;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use runvoy_engine::{EngineError, Followed, Follower};
use runvoy_wire::{Control, StatusResponse};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use self::pulse::Pulse;
use self::upgrade::Socket;
pub(crate) use self::upgrade::Upgrade;
use crate::app::{OpenStream, State};
use crate::credential::Standing;
use crate::fault::{Fault, chain};
use crate::view;

const PING_EVERY: Duration = Duration::from_secs(30);
/// A client that shows no sign of life for this long is gone.
const SILENCE: Duration = Duration::from_secs(90);
/// Rights are looked at again this often: a revoked key closes its streams within 5 s.
const LOOK_EVERY: Duration = Duration::from_secs(3);
const GOODBYE: Duration = Duration::from_secs(5);
/// The public web client collects lines for up to 100 ms before it shows them and drops what it holds at the disconnect notice. The notice
/// follows the last line after this long, unless the client asked for status events, which the public client never does.
const PUBLIC_CLIENT_FLUSH: Duration = Duration::from_millis(200);

/// What the client asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Binary frames, one per chunk.
    pub(crate) batch: bool,
    /// Frames about the status.
    pub(crate) status: bool,
}

/// One stream.
pub(crate) struct LogStream {
    pub(crate) state: Arc<State>,
    pub(crate) open: OpenStream,
    pub(crate) standing: Standing,
    /// The whole id of its execution.
    pub(crate) id: String,
    pub(crate) follower: Follower,
    pub(crate) options: Options,
}

type Sink = SplitSink<Socket, Message>;

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The last line was sent.
    Completed,
    /// The client said goodbye, or its connection broke.
    Gone,
    /// The client shows no sign of life.
    Silent,
    /// The client sent more than it may.
    TooLarge,
    /// The client's rights ended.
    Revoked,
    /// The server stops.
    Stopping,
    /// The log cannot be read.
    Failed,
}

impl LogStream {
    /// Sends the log until something ends it.
    pub(crate) async fn run(self, socket: Socket) {
        let Self { state, open: _open, standing, id, mut follower, options } = self;
        let (mut sink, mut source) = socket.split();
        let pulse = Pulse::new();
        let ending = tokio::select! {
            ending = pump(&state, &id, &mut sink, &mut follower, options, &pulse) => ending,
            ending = hear(&mut source, &pulse) => ending,
            ending = guard(&state, &standing, &id, &pulse) => ending,
            () = state.stopping() => Ending::Stopping,
        };
        tracing::debug!(execution = id, ?ending, "a stream ended");
        close(sink, source, ending).await;
    }
}

/// Sends what the follower sees.
async fn pump(state: &State, id: &str, sink: &mut Sink, follower: &mut Follower, options: Options, pulse: &Pulse) -> Ending {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let mut told: Option<StatusResponse> = None;
    let mut last_line_at: Option<Instant> = None;
    loop {
        let followed = tokio::select! {
            followed = follower.next() => followed,
            _ = ping.tick() => {
                if send(sink, Message::Ping(bytes::Bytes::new()), pulse).await.is_err() {
                    return Ending::Gone;
                }
                continue;
            }
        };
        let (sent, ended) = match followed {
            Ok(Followed::Chunks(chunks)) => {
                let sent = frame::send_chunks(sink, id, &chunks, options.batch, pulse).await;
                last_line_at = Some(Instant::now());
                (sent, false)
            }
            Ok(Followed::Status(execution)) => {
                // Most changes of a record, such as a worker's extends, change nothing that a client is told.
                let status = view::status(&state.engine, &execution, state.engine.waits_for(&execution).await);
                let news = options.status && told.as_ref() != Some(&status);
                let sent = if news { send_status(sink, status.clone(), pulse).await } else { Ok(()) };
                told = Some(status);
                (sent, false)
            }
            Ok(Followed::End(execution)) => {
                let status = view::status(&state.engine, &execution, None);
                let told = if options.status {
                    send_status(sink, status, pulse).await
                } else {
                    let flushed_at = last_line_at.map(|sent_at| sent_at + PUBLIC_CLIENT_FLUSH);
                    sleep_until(flushed_at.unwrap_or_else(Instant::now)).await;
                    Ok(())
                };
                match told {
                    Ok(()) => (send_control(sink, &Control::completed(), pulse).await, true),
                    gone => (gone, true),
                }
            }
            Err(error) => {
                tracing::error!(error = %chain(&error), "a log could not be followed");
                return Ending::Failed;
            }
        };
        match (sent, ended) {
            (Err(Gone), _) => return Ending::Gone,
            (Ok(()), true) => return Ending::Completed,
            (Ok(()), false) => {}
        }
    }
}

/// The client cannot be sent to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gone;

async fn send_status(sink: &mut Sink, status: StatusResponse, pulse: &Pulse) -> Result<(), Gone> {
    send_control(sink, &Control::Status(Box::new(status)), pulse).await
}

async fn send_control(sink: &mut Sink, control: &Control, pulse: &Pulse) -> Result<(), Gone> {
    let text = serde_json::to_string(control).expect("wire types are plain data");
    send(sink, Message::text(text), pulse).await
}

/// Sends a frame and everything before it. Waiting for room that then comes is a sign of life.
async fn send(sink: &mut Sink, message: Message, pulse: &Pulse) -> Result<(), Gone> {
    pulse.through(sink.send(message)).await
}

/// Hears the client, who has nothing to say but that it lives or leaves.
async fn hear(source: &mut SplitStream<Socket>, pulse: &Pulse) -> Ending {
    loop {
        match source.next().await {
            Some(Ok(Message::Close(_))) | None => return Ending::Gone,
            Some(Ok(_)) => pulse.beat(),
            Some(Err(Error::Capacity(_))) => return Ending::TooLarge,
            Some(Err(_)) => return Ending::Gone,
        }
    }
}

/// Watches the client's rights, past every cache, and its signs of life.
async fn guard(state: &State, standing: &Standing, id: &str, pulse: &Pulse) -> Ending {
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.reset();
    loop {
        look.tick().await;
        if pulse.silent_for(Instant::now()) > SILENCE {
            return Ending::Silent;
        }
        let seen = match standing.caller(state).await {
            Ok(caller) => state.engine.execution(&caller, id).await.map(drop).map_err(Fault::from),
            Err(fault) => Err(fault),
        };
        match seen {
            Ok(()) => {}
            Err(Fault::Engine(
                EngineError::InvalidKey | EngineError::RevokedKey | EngineError::NotFound { .. } | EngineError::Forbidden { .. },
            )) => return Ending::Revoked,
            // A store that does not answer has revoked nothing; the pump will notice if it stays away.
            Err(_) => {}
        }
    }
}

/// Says goodbye with the reason, and waits a little for the client's own.
async fn close(mut sink: Sink, mut source: SplitStream<Socket>, ending: Ending) {
    let (code, reason) = match ending {
        Ending::Completed => (CloseCode::Normal, ""),
        Ending::TooLarge => (CloseCode::Size, "the message is too large"),
        Ending::Revoked => (CloseCode::Policy, "the key was revoked or has expired"),
        Ending::Stopping => (CloseCode::Away, "the server is stopping"),
        Ending::Failed => (CloseCode::Error, "the log cannot be read now"),
        // There is nobody to say goodbye to, or they said it first and the answer only has to be flushed.
        Ending::Gone | Ending::Silent => {
            let _ = timeout(GOODBYE, sink.close()).await;
            return;
        }
    };
    let goodbye = async {
        sink.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await?;
        while let Some(Ok(_)) = source.next().await {}
        sink.close().await
    };
    // Whether the client heard it cannot be known; the connection ends here in any case.
    let _ = timeout(GOODBYE, goodbye).await;
}
