//! Following a log to its end through whatever happens to the connection: every record once, in order.
//!
//! A follower is a task that works in passes. A pass asks where the log stands, then reads the WebSocket; if the upgrade is refused it reads the
//! stored lines and comes back after a second; if the execution has ended it reads the rest and is done. `next` is the one cursor:
//! whatever a new connection sends again is cut off, and a hole is first looked for in the store and, if it is there too, told.

use std::time::{Duration, Instant};

use runvoy_wire::frame::EXECUTION_COMPLETED;
use runvoy_wire::{Batch, BlockBuilder, Control, LogEvent, StatusResponse};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::download::Lines;
use crate::error::ClientError;
use crate::log::{Format, LogsQuery};
use crate::query::{Target, stream_target};
use crate::retry::{asked, backoff};
use crate::socket::{Frame, Socket};

const POLL_PERIOD: Duration = Duration::from_secs(1);
const UPGRADE_AGAIN: Duration = Duration::from_secs(30);
/// How long a server may be away before a live follower gives up.
const PATIENCE: Duration = Duration::from_secs(300);
/// Records that arrived together are handed over together, up to this many.
const MAX_BATCH_RECORDS: u32 = 512;
const WAITING_ITEMS: usize = 16;

/// Where and how to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The first line to hand over, counted from 1.
    pub from_line: u64,
    /// The `websocket_url` of a submit's answer, which saves asking for one.
    pub websocket_url: Option<String>,
    /// Go on until the execution ends; otherwise stop at the last line there is.
    pub live: bool,
}

/// What a follower hands over.
#[derive(Debug)]
pub enum Followed {
    /// The next records.
    Batch(Batch),
    /// The execution's status changed.
    Status(Box<StatusResponse>),
    /// The server does not have these lines any more; the next record is `to`.
    Gap {
        /// The first missing line.
        from: u64,
        /// The line after the last missing one.
        to: u64,
    },
    /// The connection was lost and is being made again; told once until the server is heard again, and only to who stays until the end.
    Interrupted(ClientError),
}

/// A log being followed. Dropping it stops following.
pub struct Follow {
    items: mpsc::Receiver<Result<Followed, ClientError>>,
    task: JoinHandle<()>,
}

impl Follow {
    /// What comes next; `None` after the last line. Safe to cancel.
    pub async fn next(&mut self) -> Option<Result<Followed, ClientError>> {
        self.items.recv().await
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Hands over the log of an execution, line by line, without gap or repeat.
    pub fn follow(&self, id: &str, start: Start) -> Follow {
        let (sender, items) = mpsc::channel(WAITING_ITEMS);
        let follower = Follower {
            client: self.clone(),
            id: id.to_owned(),
            next: start.from_line.max(1),
            ticket: start.websocket_url,
            live: start.live,
            stored_first: false,
            upgrade_at: Instant::now(),
            sender,
        };
        Follow { items, task: tokio::spawn(follower.follow()) }
    }
}

struct Follower {
    client: Client,
    id: String,
    next: u64,
    ticket: Option<String>,
    live: bool,
    stored_first: bool,
    upgrade_at: Instant,
    sender: mpsc::Sender<Result<Followed, ClientError>>,
}

/// How a pass ended.
enum Pass {
    /// The last line was handed over, or nobody listens any more.
    Done,
    /// There is more to come.
    Again,
    /// There is more to come, and polling is the only way to it.
    Poll,
}

impl Follower {
    async fn follow(mut self) {
        let (mut fruitless, mut heard, mut told) = (0, Instant::now(), false);
        loop {
            let before = self.next;
            let pass = self.pass().await;
            if self.next > before {
                fruitless = 0;
            }
            told &= pass.is_err() && self.next == before;
            match pass {
                Ok(Pass::Done) => return,
                Ok(Pass::Poll) => {
                    heard = Instant::now();
                    tokio::time::sleep(POLL_PERIOD).await;
                }
                Ok(Pass::Again) => {
                    heard = Instant::now();
                    if fruitless > 0 {
                        tokio::time::sleep(backoff(fruitless)).await;
                    }
                }
                Err(error) if error.is_retryable() && (self.next > before || self.waits(&error, fruitless, heard.elapsed())) => {
                    if self.next > before {
                        heard = Instant::now();
                    }
                    let delay = asked(&error).unwrap_or_else(|| if fruitless == 0 { Duration::ZERO } else { backoff(fruitless) });
                    if self.live && fruitless > 0 && !std::mem::replace(&mut told, true) {
                        // Whoever is gone has ended this task.
                        let _ = self.sender.send(Ok(Followed::Interrupted(error))).await;
                    }
                    tokio::time::sleep(delay).await;
                }
                Err(error) => {
                    // A listener that is gone does not want to hear it.
                    let _ = self.sender.send(Err(error)).await;
                    return;
                }
            }
            fruitless += 1;
        }
    }

    /// Whether a server that is away is asked again: long by who stays until the end, else no longer than any other call is repeated.
    fn waits(&self, error: &ClientError, attempt: u32, silence: Duration) -> bool {
        if self.live { silence < PATIENCE } else { self.client.inner.retry.delay(attempt, silence, error).is_some() }
    }

    async fn pass(&mut self) -> Result<Pass, ClientError> {
        if !self.live {
            return self.stored().await.map(|_| Pass::Done);
        }
        let given = self.ticket.take();
        let fresh = given.is_none();
        let url = match given {
            Some(url) => Some(url),
            None => {
                let query = LogsQuery { from_line: Some(self.next), limit: Some(1), ..LogsQuery::default() };
                let logs = self.client.logs_once(&self.id, &query).await?;
                if logs.status.is_terminal() {
                    return self.stored().await.map(|_| Pass::Done);
                }
                logs.websocket_url
            }
        };
        let filled = std::mem::take(&mut self.stored_first);
        if filled && !self.stored().await? {
            return Ok(Pass::Done);
        }
        let target = url.as_deref().and_then(stream_target).filter(|_| Instant::now() >= self.upgrade_at);
        let Some(target) = target else {
            return Ok(if self.stored().await? { Pass::Poll } else { Pass::Done });
        };
        match Socket::open(&self.client, &self.resume(target)).await {
            Ok(socket) => self.stream(socket, filled).await,
            // The ticket of a submit may have aged; ask for a new one before giving up on the WebSocket.
            Err(ClientError::Unauthorized(_)) if !fresh => Ok(Pass::Again),
            Err(error) if error.is_retryable() => Err(error),
            Err(_) => {
                self.upgrade_at = Instant::now() + UPGRADE_AGAIN;
                Ok(if self.stored().await? { Pass::Poll } else { Pass::Done })
            }
        }
    }

    fn resume(&self, target: Target) -> Target {
        let target = target.with("batch", 1).with("events", "status");
        if self.next > 1 { target.with("last_event_id", self.next - 1) } else { target }
    }

    /// Reads the WebSocket until it is closed. A hole ends it, unless the store was just `filled` from and has it too.
    async fn stream(&mut self, mut socket: Socket, filled: bool) -> Result<Pass, ClientError> {
        loop {
            match socket.next().await? {
                None => return Ok(Pass::Again),
                Some(Frame::Control(Control::Status(status))) => {
                    if self.sender.send(Ok(Followed::Status(status))).await.is_err() {
                        return Ok(Pass::Done);
                    }
                }
                Some(Frame::Control(Control::Disconnect { reason })) => {
                    socket.close().await;
                    return Ok(if reason == EXECUTION_COMPLETED { Pass::Done } else { Pass::Again });
                }
                Some(Frame::Batch(batch)) if batch.first_line > self.next && !filled => {
                    self.stored_first = true;
                    return Ok(Pass::Again);
                }
                Some(Frame::Batch(batch)) => {
                    if !self.hand_over(batch).await {
                        return Ok(Pass::Done);
                    }
                }
            }
        }
    }

    /// Reads what the store has from `next` on; `false` where nobody listens any more.
    async fn stored(&mut self) -> Result<bool, ClientError> {
        let query = LogsQuery { from_line: Some(self.next), ..LogsQuery::default() };
        let mut events = Lines::<LogEvent>::new(self.client.download(&self.id, Format::Ndjson, &query).await?);
        while let Some(first) = events.next().await? {
            let mut run = Run::new(&first);
            let mut following = Some(first);
            while let Some(event) = following.take() {
                let bytes = event.bytes().ok_or_else(|| self.client.protocol("a log line with damaged base64", ""))?;
                if !run.takes(&event) {
                    if !self.hand_over(run.take()).await {
                        return Ok(false);
                    }
                    run = Run::new(&event);
                }
                run.block.push(event.record(&bytes));
                following = events.buffered()?;
            }
            if !self.hand_over(run.take()).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hands over what is new in the batch; `false` where nobody listens any more.
    async fn hand_over(&mut self, batch: Batch) -> bool {
        let batch = batch.starting_at(self.next);
        if batch.block.count == 0 {
            return true;
        }
        if batch.first_line > self.next {
            let gap = Followed::Gap { from: self.next, to: batch.first_line };
            if self.sender.send(Ok(gap)).await.is_err() {
                return false;
            }
        }
        // The cursor moves with the hand-over, so that an error between two records can neither lose nor repeat one.
        self.next = batch.next_line();
        self.sender.send(Ok(Followed::Batch(batch))).await.is_ok()
    }
}

/// Neighbouring events on their way into one batch.
struct Run {
    first_line: u64,
    attempt: u32,
    late: bool,
    block: BlockBuilder,
}

impl Run {
    fn new(first: &LogEvent) -> Self {
        Self { first_line: first.line, attempt: first.attempt, late: first.late, block: BlockBuilder::default() }
    }

    fn takes(&self, event: &LogEvent) -> bool {
        let next = self.first_line + u64::from(self.block.count());
        (event.line, event.attempt, event.late) == (next, self.attempt, self.late) && self.block.count() < MAX_BATCH_RECORDS
    }

    fn take(&mut self) -> Batch {
        Batch { first_line: self.first_line, attempt: self.attempt, late: self.late, block: self.block.take() }
    }
}
