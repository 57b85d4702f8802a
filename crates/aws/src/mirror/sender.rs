//! The one task that sends: it takes what waits, sorts it by stream, makes streams where there are none, and remembers what did not arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::types::{InputLogEvent, RejectedLogEventsInfo};
use futures_util::{StreamExt as _, stream};
use runvoy_model::time::UnixMs;
use tokio::sync::mpsc;

use super::batch::{Event, batches, events};
use super::{Missing, Order, State, StreamKey};
use crate::fault::Fault;

const SERVICE: &str = "CloudWatch Logs";
/// So many encoded bytes are taken at once.
const MOST_BYTES: usize = 2 << 20;
/// So many streams are written at once.
const AT_ONCE: usize = 16;
const NOT_FOUND: &str = "ResourceNotFoundException";

pub(super) struct Sender {
    client: Client,
    group: String,
    prefix: String,
    state: Arc<State>,
    /// What had been left out after the last round.
    seen: u64,
    /// Something was left out in the last round.
    is_behind: bool,
}

impl Sender {
    pub fn new(client: Client, group: String, prefix: String, state: Arc<State>) -> Self {
        Self { client, group, prefix, state, seen: 0, is_behind: false }
    }

    /// Sends until nobody offers any more.
    pub async fn run(mut self, mut incoming: mpsc::Receiver<Order>) {
        while let Some(first) = incoming.recv().await {
            let (mut waiting, mut tell, mut bytes) = (BTreeMap::<StreamKey, Vec<Event>>::new(), Vec::new(), 0);
            let mut order = Some(first);
            while let Some(next) = order {
                match next {
                    Order::Block(key, block) => {
                        bytes += block.data.len();
                        waiting.entry(key).or_default().extend(events(&block));
                    }
                    Order::Tell(done) => tell.push(done),
                }
                // Whoever waits for an answer waits for what came before, not for what comes all the time.
                order = if bytes < MOST_BYTES && tell.is_empty() { incoming.try_recv().ok() } else { None };
            }
            let sent = stream::iter(waiting).map(|(key, events)| self.send(key, events)).buffer_unordered(AT_ONCE);
            let is_reachable = sent.fold(true, |all, one| async move { all && one }).await;
            self.state.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            if is_reachable {
                self.send_marks().await;
            }
            self.say();
            for done in tell {
                let _ = done.send(());
            }
        }
    }

    /// Sends events of one stream; whether the last of them arrived.
    async fn send(&self, key: StreamKey, events: Vec<Event>) -> bool {
        let mut arrives = true;
        for batch in batches(events) {
            let (count, last_at) = (batch.len(), batch.last().map_or(UnixMs(0), |event| event.at));
            let lost = match self.put(key, batch).await {
                Ok(refused) => refused,
                Err(fault) => {
                    tracing::debug!(execution = %key.0, attempt = key.1, error = %fault, "lines were not mirrored");
                    arrives = false;
                    count
                }
            };
            if lost > 0 {
                self.state.leave_out(key, lost as u64, last_at);
            }
        }
        arrives
    }

    /// Says in the streams what was left out of them.
    async fn send_marks(&self) {
        let missing: Vec<(StreamKey, Missing)> = std::mem::take(&mut *self.state.missing.lock()).into_iter().collect();
        for (place, (key, gap)) in missing.iter().enumerate() {
            let text =
                format!("### runvoy: {} lines are missing from this mirror before here: the execution's own log has them", gap.lines);
            let mark = Event { at: gap.last_at.max(UnixMs(0)), text };
            if self.put(*key, vec![mark]).await.is_err() {
                // Said another time. A mark that is refused for its time would be so every time.
                let mut left = self.state.missing.lock();
                for (key, gap) in &missing[place..] {
                    let entry = left.entry(*key).or_insert(Missing { lines: 0, last_at: gap.last_at });
                    entry.lines += gap.lines;
                }
                return;
            }
        }
    }

    /// One line when lines begin to be left out, and one when all goes well again.
    fn say(&mut self) {
        let left_out = self.state.left_out.load(Ordering::Relaxed);
        let is_behind = left_out > self.seen;
        match (self.is_behind, is_behind) {
            (false, true) => {
                let lines = left_out - self.seen;
                tracing::warn!(group = %self.group, lines, "the mirror of logs leaves lines out: the logs themselves are whole");
            }
            (true, false) => tracing::info!(group = %self.group, lines = left_out, "the mirror of logs is as it should be again"),
            _ => {}
        }
        (self.seen, self.is_behind) = (left_out, is_behind);
    }

    /// Sends one batch; how many of its events were refused.
    async fn put(&self, (id, attempt): StreamKey, batch: Vec<Event>) -> Result<usize, Fault> {
        let stream = format!("{}{id}/{attempt}", self.prefix);
        let event = |event: Event| {
            InputLogEvent::builder().timestamp(event.at.0).message(event.text).build().expect("an event has a time and a text")
        };
        let events: Vec<_> = batch.into_iter().map(event).collect();
        // A stream that this process has not written to is most likely new. Where it cannot be made now, it may be there all the same.
        if self.state.is_new((id, attempt))
            && let Err(fault) = self.make(&stream).await
        {
            tracing::debug!(execution = %id, attempt, error = %fault, "a stream of the mirror was not made");
        }
        let put = match self.put_once(&stream, events.clone()).await {
            Err(Fault::Refused { code, .. }) if code == NOT_FOUND => {
                self.make(&stream).await?;
                self.put_once(&stream, events).await
            }
            done => done,
        };
        if put.is_ok() {
            self.state.made((id, attempt));
        }
        put
    }

    async fn put_once(&self, stream: &str, events: Vec<InputLogEvent>) -> Result<usize, Fault> {
        let count = events.len();
        let request = self.client.put_log_events().log_group_name(&self.group).log_stream_name(stream).set_log_events(Some(events));
        let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
        Ok(answer.rejected_log_events_info.map_or(0, |info| refused(&info, count)))
    }

    /// Makes a stream, and its group if there is none.
    async fn make(&self, stream: &str) -> Result<(), Fault> {
        match self.make_stream(stream).await {
            Err(Fault::Refused { code, .. }) if code == NOT_FOUND => {
                let made = self.client.create_log_group().log_group_name(&self.group).send().await;
                unless_there(made.map(drop).map_err(|error| Fault::of(SERVICE, error)))?;
                self.make_stream(stream).await
            }
            done => done,
        }
    }

    async fn make_stream(&self, stream: &str) -> Result<(), Fault> {
        let made = self.client.create_log_stream().log_group_name(&self.group).log_stream_name(stream).send().await;
        unless_there(made.map(drop).map_err(|error| Fault::of(SERVICE, error)))
    }
}

fn unless_there(made: Result<(), Fault>) -> Result<(), Fault> {
    match made {
        Err(Fault::Refused { code, .. }) if code == "ResourceAlreadyExistsException" => Ok(()),
        made => made,
    }
}

/// How many events of a batch were refused for being too old or too new.
fn refused(info: &RejectedLogEventsInfo, count: usize) -> usize {
    let place = |index: Option<i32>| index.and_then(|index| usize::try_from(index).ok());
    let old = place(info.too_old_log_event_end_index()).max(place(info.expired_log_event_end_index())).unwrap_or(0).min(count);
    let new = place(info.too_new_log_event_start_index()).map_or(0, |start| count.saturating_sub(start));
    (old + new).min(count)
}
