//! Following the events of an execution: what is there, then what comes, ordered by attempt and number, each event once, then the end. A follower reads from the
//! logs at its own pace; it holds a page and what waits for its turn, and nobody waits for it. An event behind a gap waits a moment. A late event, of this attempt or of
//! an earlier one, is given before everything later that was not given yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Assembler, Kept, Place};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogError;
use tokio::time::Instant;

use super::StreamedEvent;
use super::attempt::{Progress, progress};
use super::derive::Lines;
use super::find::{Key, PAGE_BYTES, of_events, of_lines, records};
use super::order::{Covers, Waiting, itself};
use super::straggler::Stragglers;
use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::hub::Watch;

/// Which events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobEventFilter {
    /// Only from this sequence on, as readers see them.
    pub from_sequence: i64,
    /// Only at this time or later.
    pub from: Option<UnixMs>,
    /// Only of these kinds, by the protocol's numbers; empty is all.
    pub kinds: Vec<u8>,
}

impl JobEventFilter {
    fn takes(&self, event: &StreamedEvent) -> bool {
        event.sequence() >= self.from_sequence
            && self.from.is_none_or(|from| event.at() >= from)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind()))
    }
}

/// Where the events of an attempt come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Published,
    Derived,
}

/// One follower of the events of one execution.
pub struct JobEventFollower {
    pub(super) engine: Arc<Engine>,
    pub(super) id: ExecutionId,
    pub(super) filter: JobEventFilter,
    covers: Covers,
    watch: Watch,
    /// The attempt whose turn it is, and the first one that was asked for.
    pub(super) attempt: u32,
    pub(super) first_attempt: u32,
    /// The next line in the log of events.
    next_event: u64,
    assembler: Assembler,
    /// Published events in order, as they were read.
    read: VecDeque<Kept>,
    /// Those that came behind later ones.
    stragglers: Stragglers,
    waiting: Waiting,
    pub(super) lines: Lines,
    sources: BTreeMap<u32, Source>,
    /// The attempt was over before the logs were last looked at.
    progress: Progress,
    ready: VecDeque<StreamedEvent>,
    ended: bool,
}

impl Engine {
    /// Follows the events of an execution that the caller may see.
    pub async fn follow_job_events(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        filter: JobEventFilter,
    ) -> Result<JobEventFollower, EngineError> {
        let execution = self.execution(caller, id).await?;
        if self.log_is_removed(&execution).await? {
            let days = self.config.retention.log_days;
            return Err(EngineError::NotFound {
                what: format!("the events of execution {}: logs are kept {days} days, they were", execution.id),
            });
        }
        let watch = self.hub.watch(execution.id);
        let (attempt, place) = Place::of_reader(filter.from_sequence);
        let (next_event, next_line) = self.begin_at(&execution, &filter, (attempt, place)).await?;
        let stragglers = Stragglers::from((attempt, place));
        Ok(JobEventFollower {
            engine: Arc::clone(self),
            id: execution.id,
            covers: itself,
            watch,
            attempt,
            first_attempt: attempt,
            next_event,
            assembler: Assembler::default(),
            read: VecDeque::new(),
            stragglers,
            // What is at a time may begin anywhere.
            waiting: if filter.from.is_some() { Waiting::default() } else { Waiting::from(place.sequence) },
            lines: Lines::from(next_line),
            filter,
            sources: BTreeMap::new(),
            progress: Progress::Open,
            ready: VecDeque::new(),
            ended: false,
        })
    }

    /// The lines of both logs to read from. Events of lines are counted, so their attempt is read from its beginning, whichever of them are asked for.
    async fn begin_at(&self, execution: &Execution, filter: &JobEventFilter, from: Key) -> Result<(u64, u64), EngineError> {
        let (id, (attempt, _)) = (execution.id, from);
        let (mut next_event, mut next_line) = (1, 1);
        if filter.from_sequence > 0 {
            next_event = self.seek(id.event_log(), from, of_events).await?;
        }
        if attempt > 1 {
            next_line = self.seek(id, (attempt, Place::FIRST), of_lines).await?;
        }
        if let Some(from) = filter.from {
            next_event = next_event.max(self.ports.logs.line_at(id.event_log(), from).await?);
        }
        Ok((next_event, next_line))
    }
}

impl JobEventFollower {
    /// With batches that stand for the sequences that this tells.
    #[must_use]
    pub fn in_order_of(self, covers: Covers) -> Self {
        Self { covers, ..self }
    }

    /// What comes next; `None` after the last event of an execution that has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<StreamedEvent>, EngineError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.take_events().await? || self.read_late().await? {
                continue;
            }
            if self.ended {
                return Ok(None);
            }
            if self.read_events().await? || self.read_lines().await? || self.release() {
                continue;
            }
            if let Progress::Over { is_last, begun } = self.progress {
                // That it was over was known before the logs had nothing more of it.
                if !self.take_the_rest().await? {
                    self.close(begun).await?;
                    self.ended = is_last;
                }
                continue;
            }
            let found = self.engine.ports.store.get(self.id).await?.ok_or_else(|| EngineError::no_execution(self.id))?;
            self.progress = progress(&found, self.attempt);
            if self.progress == Progress::Open {
                self.wait().await;
            }
        }
    }

    /// Waits for something new, or until an event has waited long enough for those before it.
    async fn wait(&mut self) {
        let poll = Instant::now() + self.engine.config.poll;
        let until = self.waiting.due().map_or(poll, |due| due.min(poll));
        tokio::select! {
            () = self.watch.changed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// Offers an event that has waited long enough for those before it; whether there was one.
    fn release(&mut self) -> bool {
        if self.waiting.due().is_none_or(|due| due > Instant::now()) {
            return false;
        }
        let Some(kept) = self.waiting.take(self.covers) else { return false };
        self.offer(StreamedEvent::Published(kept));
        self.offer_waiting();
        true
    }

    pub(super) fn offer(&mut self, event: StreamedEvent) {
        if self.filter.takes(&event) {
            self.ready.push_back(event);
        }
    }

    fn offer_waiting(&mut self) {
        while let Some(kept) = self.waiting.pop(self.covers) {
            self.offer(StreamedEvent::Published(kept));
        }
    }

    /// Takes a page of published events, up to those of a later attempt, and looks for late ones ahead of it; whether there was anything.
    async fn read_events(&mut self) -> Result<bool, EngineError> {
        let log = self.id.event_log();
        // Most executions have no such log, and to know that is cheaper than to read it.
        let end = self.engine.ports.logs.extent(log).await?.next_line;
        if end <= self.next_event {
            return Ok(false);
        }
        let chunks = self.engine.ports.logs.read(log, self.next_event, PAGE_BYTES).await?;
        let (attempt, mut advanced) = (self.attempt, false);
        for chunk in chunks.iter().take_while(|chunk| chunk.attempt <= attempt) {
            self.sources.insert(chunk.attempt, Source::Published);
            for record in records(chunk) {
                let (_, record) = record?;
                let whole = self.assembler.push(chunk.attempt, record.bytes).map_err(|error| LogError::Storage(Box::new(error)))?;
                self.read.extend(whole.and_then(|kept| self.stragglers.read(kept)));
            }
            self.next_event = chunk.next_line();
            advanced = true;
        }
        if chunks.iter().any(|chunk| chunk.attempt > attempt) {
            self.stragglers.pass_attempt(attempt);
        }
        self.engine.look_ahead(log, &mut self.stragglers, self.next_event, end).await?;
        Ok(advanced || self.stragglers.is_due(None))
    }

    /// Gives the events that were read their turn, each behind the late ones that are before it; whether there were any.
    async fn take_events(&mut self) -> Result<bool, EngineError> {
        loop {
            let next = self.read.front().map(|kept| (kept.attempt, kept.event.place));
            if self.take_straggler(next).await? {
                return Ok(true);
            }
            let Some(kept) = self.read.pop_front() else { return Ok(false) };
            self.put(kept);
            if !self.ready.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Gives the first late event its turn, if it stands before this, or before all that was not read yet.
    async fn take_straggler(&mut self, next: Option<Key>) -> Result<bool, EngineError> {
        let Some(due) = self.stragglers.take(next) else { return Ok(false) };
        if let Some(kept) = self.engine.straggler(self.id.event_log(), &mut self.stragglers, due).await? {
            self.put(kept);
        }
        Ok(true)
    }

    fn put(&mut self, kept: Kept) {
        if kept.attempt < self.attempt {
            // It came while a later attempt was followed.
            self.offer(StreamedEvent::Published(kept));
            return;
        }
        self.waiting.push(kept);
        self.offer_waiting();
    }

    /// Gives what is left of the attempt its turn, for nothing more comes; whether there was anything.
    async fn take_the_rest(&mut self) -> Result<bool, EngineError> {
        if self.take_straggler(Some((self.attempt.saturating_add(1), Place::FIRST))).await? {
            return Ok(true);
        }
        let Some(kept) = self.waiting.take(self.covers) else { return Ok(false) };
        self.offer(StreamedEvent::Published(kept));
        Ok(true)
    }

    /// Whether some attempt up to the one whose turn it is may have published nothing.
    pub(super) fn may_derive(&self) -> bool {
        (self.first_attempt..=self.attempt).any(|attempt| self.sources.get(&attempt) != Some(&Source::Published))
    }

    /// Where an attempt's events come from. It is asked when there are lines of it: the event that a line follows from is stored before the line is.
    pub(super) async fn source(&mut self, attempt: u32) -> Result<Source, EngineError> {
        if let Some(source) = self.sources.get(&attempt) {
            return Ok(*source);
        }
        let published = self.engine.stand(self.id.event_log(), attempt).await?.next_seq > 1;
        let source = if published { Source::Published } else { Source::Derived };
        self.sources.insert(attempt, source);
        Ok(source)
    }

    /// Ends the attempt whose turn it is; then it is the next one's.
    async fn close(&mut self, begun: bool) -> Result<(), EngineError> {
        if begun && self.source(self.attempt).await? == Source::Derived {
            self.close_derived().await?;
        }
        self.attempt += 1;
        self.lines.begin_attempt();
        self.waiting = Waiting::from(0);
        self.progress = Progress::Open;
        Ok(())
    }
}
