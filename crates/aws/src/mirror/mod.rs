//! The mirror of logs in CloudWatch Logs, for people and alarms. It takes what was appended, never waits and never fails whoever appends: it may
//! lag, and what it has no room for or cannot send is left out, counted, and said in one line of this program's own log and in a line of the
//! stream it is missing from. The log itself is elsewhere, and whole.

mod batch;
mod sender;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use runvoy_model::id::ExecutionId;
use runvoy_model::log::Block;
use runvoy_model::time::UnixMs;
use tokio::sync::{mpsc, oneshot};

use self::sender::Sender;
use crate::clients::Clients;
use crate::config::Config;

/// So many streams are remembered from which something was left out, of others only the sum is known; and so many that were written to.
const MOST_STREAMS: usize = 10_000;

/// How much may wait to be mirrored.
#[derive(Debug, Clone)]
pub struct MirrorConfig {
    /// Bytes of blocks.
    pub most_bytes: usize,
    /// Blocks.
    pub most_blocks: usize,
}

impl Default for MirrorConfig {
    fn default() -> Self {
        Self { most_bytes: 16 << 20, most_blocks: 4096 }
    }
}

/// The mirror. A clone is the same one; its task ends, with everything that waits sent, when the last one does.
#[derive(Debug, Clone)]
pub struct Mirror {
    orders: mpsc::Sender<Order>,
    state: Arc<State>,
    most_bytes: usize,
}

/// What waits to be sent.
#[derive(Debug)]
enum Order {
    Block(StreamKey, Block),
    /// Say when everything before this was sent or given up.
    Tell(oneshot::Sender<()>),
}

/// A stream: the output of one attempt.
type StreamKey = (ExecutionId, u32);

/// What was left out of a stream and not said there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Missing {
    lines: u64,
    last_at: UnixMs,
}

/// What both sides of the channel know.
#[derive(Debug, Default)]
struct State {
    waiting_bytes: AtomicUsize,
    left_out: AtomicU64,
    missing: Mutex<BTreeMap<StreamKey, Missing>>,
    /// Streams that were written to.
    made: Mutex<HashSet<StreamKey>>,
}

impl State {
    fn is_new(&self, key: StreamKey) -> bool {
        !self.made.lock().contains(&key)
    }

    fn made(&self, key: StreamKey) {
        let mut made = self.made.lock();
        if made.len() >= MOST_STREAMS {
            made.clear();
        }
        made.insert(key);
    }

    fn leave_out(&self, key: StreamKey, lines: u64, last_at: UnixMs) {
        self.left_out.fetch_add(lines, Ordering::Relaxed);
        let mut missing = self.missing.lock();
        if missing.len() < MOST_STREAMS || missing.contains_key(&key) {
            let entry = missing.entry(key).or_insert(Missing { lines: 0, last_at });
            entry.lines += lines;
            entry.last_at = entry.last_at.max(last_at);
        }
    }
}

impl Mirror {
    /// Starts the mirror of an installation; `None` if it mirrors nothing. Must be called within a runtime.
    pub fn start(clients: &Clients, config: &Config, limits: MirrorConfig) -> Option<Self> {
        let group = config.log_group.clone()?;
        let (orders, incoming) = mpsc::channel(limits.most_blocks.max(1));
        let state = Arc::new(State::default());
        let sender = Sender::new(clients.logs.clone(), group, config.log_stream_prefix.clone(), Arc::clone(&state));
        tokio::spawn(sender.run(incoming));
        Some(Self { orders, state, most_bytes: limits.most_bytes })
    }

    /// Offers records that were appended. What there is no room for is left out.
    pub(crate) fn offer(&self, id: ExecutionId, attempt: u32, block: &Block) {
        let bytes = block.data.len();
        let has_room = self.state.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most_bytes;
        if !has_room || self.orders.try_send(Order::Block((id, attempt), block.clone())).is_err() {
            self.state.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.state.leave_out((id, attempt), u64::from(block.count), block.last_at);
        }
    }

    /// Waits until everything offered so far was sent, or given up: before a process ends.
    pub async fn idle(&self) {
        let (done, told) = oneshot::channel();
        if self.orders.send(Order::Tell(done)).await.is_ok() {
            let _ = told.await;
        }
    }

    /// How many lines were left out since the start.
    pub fn left_out(&self) -> u64 {
        self.state.left_out.load(Ordering::Relaxed)
    }
}
