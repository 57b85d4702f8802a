//! Takes what a worker publishes: what is new is masked, kept, put on stable storage, and its output becomes lines.

use std::collections::BTreeSet;

use runvoy_model::command::{Extend, Fence};
use runvoy_model::job_event::{JobEvent, Place, SEQUENCES_PER_ATTEMPT, encode};
use runvoy_model::log::{Block, BlockBuilder, Stream};
use runvoy_ports::lease::LeaseError;
use runvoy_ports::log::{Append, LogError};

use super::ledger::Ledger;
use super::standing::Standing;
use super::{Effect, PublishedEvent};
use crate::Engine;
use crate::lease::Holder;

/// About so many bytes are written at once.
const GROUP_BYTES: usize = 1 << 20;
/// How often other servers may come between.
const ROUNDS: usize = 10;

/// What came of writing.
enum Written {
    All,
    /// Another server wrote at the same time: how it stands has to be looked at again.
    Overtaken,
}

impl Engine {
    /// Keeps events of an attempt. What is there already is passed over. When this returns they are on stable storage, and their lines can be seen.
    pub async fn publish_events(&self, holder: &Holder, fence: Fence, mut events: Vec<PublishedEvent>) -> Result<(), LeaseError> {
        if let Some(wrong) = events.iter().find(|published| published.event.place.sequence >= SEQUENCES_PER_ATTEMPT) {
            let (sequence, most) = (wrong.event.place.sequence, SEQUENCES_PER_ATTEMPT - 1);
            return Err(LeaseError::Refused(format!("sequence {sequence} is too large: {most} is the last of an attempt")));
        }
        let standing = self.standing(fence).await?;
        events.sort_by_key(|published| published.event.place);
        events.dedup_by_key(|published| published.event.place);
        let slot = self.desk.slot(fence.execution);
        let mut place = slot.lock().await;
        for _ in 0..ROUNDS {
            // Until all is written nothing that is known here counts: another look at the logs is the way on from any failure.
            let known = place.take().filter(|ledger| ledger.attempt == fence.attempt);
            let is_current = match &known {
                Some(ledger) => self.is_current(fence, ledger).await.map_err(unkept)?,
                None => false,
            };
            let mut ledger = match known.filter(|_| is_current) {
                Some(ledger) => ledger,
                None => self.open_ledger(&standing).await?,
            };
            let new = self.new_among(&standing, &ledger, &events).await.map_err(unkept)?;
            if let Written::All = self.keep(&standing, &mut ledger, &new).await? {
                *place = Some(ledger);
                drop(place);
                drop(slot);
                self.hub.changed(fence.execution);
                self.take_effect(holder, fence, &standing, &new).await;
                if standing.execution.status.is_terminal() {
                    self.desk.forget(fence.execution);
                }
                return Ok(());
            }
        }
        Err(LeaseError::Unavailable("several servers write the events of one attempt".into()))
    }

    /// Puts everything published so far on stable storage, the lines too.
    pub async fn sync_events(&self, fence: Fence) -> Result<(), LeaseError> {
        self.ports.logs.sync(fence.execution.event_log()).await.map_err(unkept)?;
        self.ports.logs.sync(fence.execution).await.map(drop).map_err(unkept)
    }

    /// Whether what is known of an attempt is how its log stands. Another server may have been told of it since: what would be appended then, in part where that one has
    /// written and in part behind it, would be kept out of order.
    async fn is_current(&self, fence: Fence, ledger: &Ledger) -> Result<bool, LogError> {
        if !self.config.shares_store() {
            return Ok(true);
        }
        let stand = self.stand(fence.execution.event_log(), fence.attempt).await?;
        Ok((stand.next_seq, stand.next_line) == (ledger.next_record, ledger.next_line))
    }

    async fn open_ledger(&self, standing: &Standing) -> Result<Ledger, LeaseError> {
        let mut ledger = self.load_ledger(standing).await.map_err(unkept)?;
        ledger.masks = self.masks(&standing.execution, ledger.mask_stands).await?;
        Ok(ledger)
    }

    /// The events that are not there yet.
    async fn new_among(&self, standing: &Standing, ledger: &Ledger, events: &[PublishedEvent]) -> Result<Vec<PublishedEvent>, LogError> {
        let open = || events.iter().map(|published| published.event.place).filter(|place| ledger.has(*place).is_none());
        let there = match (open().next(), open().next_back()) {
            (Some(from), Some(to)) => self.places(standing.execution.id, ledger, from, to).await?,
            _ => BTreeSet::new(),
        };
        let is_new = |place: Place| !ledger.has(place).unwrap_or_else(|| there.contains(&place));
        Ok(events.iter().filter(|published| is_new(published.event.place)).cloned().collect())
    }

    /// Writes events that are not there, in groups.
    async fn keep(&self, standing: &Standing, ledger: &mut Ledger, events: &[PublishedEvent]) -> Result<Written, LeaseError> {
        let mut rest = events;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|published| {
                let fits = bytes == 0 || bytes < GROUP_BYTES;
                bytes += size(&published.event);
                fits
            });
            let (group, more) = rest.split_at(fitting.count());
            if let Written::Overtaken = self.keep_group(standing, ledger, group).await? {
                return Ok(Written::Overtaken);
            }
            rest = more;
        }
        Ok(Written::All)
    }

    async fn keep_group(&self, standing: &Standing, ledger: &mut Ledger, group: &[PublishedEvent]) -> Result<Written, LeaseError> {
        let (log, first_line_seq) = (standing.execution.id.event_log(), ledger.next_line_seq);
        let (mut records, mut lines) = (BlockBuilder::default(), BlockBuilder::default());
        let times = self.line_times(standing);
        for published in group {
            let event = match &mut ledger.masks {
                Some(masks) => masks.apply(published.event.clone()),
                None => published.event.clone(),
            };
            // The platform's own lines always find room, and so does what says how it all went.
            let stream = if published.effect == Effect::Kept { Stream::Stdout } else { Stream::Platform };
            encode(&event, ledger.mark(&event), event.at.max(standing.execution.submitted_at), stream, &mut records);
            if !ledger.full {
                ledger.lines.write(&event.output, &times, &mut lines);
                ledger.next_line_seq = first_line_seq + u64::from(lines.count());
            }
            ledger.note(event.place);
        }
        if let Written::Overtaken = self.append_events(standing, ledger, records.take()).await? {
            return Ok(Written::Overtaken);
        }
        // On stable storage before anything follows from it: no line is ever there without its event.
        self.ports.logs.sync(log).await.map_err(unkept)?;
        if !lines.is_empty() {
            self.append_lines(standing, ledger, first_line_seq, lines.take()).await.map_err(unkept)?;
        }
        Ok(Written::All)
    }

    async fn append_events(&self, standing: &Standing, ledger: &mut Ledger, block: Block) -> Result<Written, LeaseError> {
        let log = standing.execution.id.event_log();
        let append = Append { attempt: ledger.attempt, first_seq: Some(ledger.next_record), late: standing.late, block: block.clone() };
        let appended = match self.ports.logs.append(log, append).await {
            Ok(appended) => appended,
            Err(LogError::Gap { .. }) => return Ok(Written::Overtaken),
            Err(error) => return Err(unkept(error)),
        };
        // What another server has written in this place is taken for a repeat of ours: only what stands there can tell.
        if self.config.shares_store() && !self.stands(standing, ledger.next_line, &block).await.map_err(unkept)? {
            return Ok(Written::Overtaken);
        }
        (ledger.next_record, ledger.next_line) = (appended.next_seq, appended.next_line);
        Ok(Written::All)
    }

    /// Whether these very records stand from a line on.
    async fn stands(&self, standing: &Standing, mut line: u64, block: &Block) -> Result<bool, LogError> {
        let mut ours = block.records();
        loop {
            let chunks = self.ports.logs.read(standing.execution.id.event_log(), line, GROUP_BYTES).await?;
            let Some(last) = chunks.last() else { return Ok(ours.next().is_none()) };
            line = last.next_line();
            for theirs in chunks.iter().flat_map(|chunk| chunk.block.records()) {
                match ours.next() {
                    None => return Ok(true),
                    Some(ours) if ours != theirs => return Ok(false),
                    Some(_) => {}
                }
            }
        }
    }

    /// What events mean beside being kept. That the process runs is a sign of life like any other.
    async fn take_effect(&self, holder: &Holder, fence: Fence, standing: &Standing, new: &[PublishedEvent]) {
        let pid = new.iter().rev().find_map(|published| match published.effect {
            Effect::Started { pid } => Some(pid),
            Effect::Kept | Effect::Ended => None,
        });
        let (Some(process_id), Some(lease), false) = (pid, &standing.execution.lease, standing.late) else { return };
        let extend =
            Extend { fence, ttl_ms: lease.ttl_ms, process_id, rss_bytes: None, last_output_at: None, activity: None, preparing: None };
        if let Err(error) = self.extend(holder, extend).await {
            tracing::warn!(execution = %fence.execution, %error, "the start of a process was not noted");
        }
    }
}

/// About how many bytes an event takes.
fn size(event: &JobEvent) -> usize {
    let output: usize = event.output.iter().map(|piece| piece.bytes.len()).sum();
    let texts: usize = event.texts.iter().map(String::len).sum();
    event.envelope.len() + output + texts + 64
}

fn unkept(error: LogError) -> LeaseError {
    match error {
        LogError::Full { limit_bytes } => LeaseError::LogFull { limit_bytes },
        error => LeaseError::Unavailable(Box::new(error)),
    }
}
