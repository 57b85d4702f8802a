//! Following the events of an execution: what is there, then what comes, attempt by attempt, without gap or duplicate, then the end. A follower reads from
//! the logs at its own pace; it holds a page and the event it puts together, and nobody waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use runvoy_model::id::ExecutionId;
use runvoy_model::job_event::{Assembler, Place, SEQUENCES_PER_ATTEMPT};
use runvoy_model::log::{Chunk, Stream};
use runvoy_model::time::UnixMs;
use runvoy_ports::log::LogError;

use super::attempt::{Progress, progress};
use super::find::{PAGE_BYTES, of_events, of_lines, records};
use super::{Derived, DerivedEvent, StreamedEvent};
use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::hub::Watch;

/// The sequence of an attempt's derived end: behind everything that it could have written.
const END: u64 = SEQUENCES_PER_ATTEMPT - 1;

/// So many lines become events at a time: an event is much larger than a short line, and a page holds a great many of those.
const AT_ONCE: u32 = 1_000;

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
enum Source {
    Published,
    Derived,
}

/// One follower of the events of one execution.
pub struct JobEventFollower {
    engine: Arc<Engine>,
    id: ExecutionId,
    filter: JobEventFilter,
    watch: Watch,
    /// The attempt whose turn it is, and the first one that was asked for.
    attempt: u32,
    first_attempt: u32,
    /// The next line in the log of events, and in the log of lines.
    next_event: u64,
    next_line: u64,
    /// What was read of the log of lines, from that line on.
    page: VecDeque<Chunk>,
    assembler: Assembler,
    sources: BTreeMap<u32, Source>,
    /// The derived start of the attempt was handed out.
    started: bool,
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
        let (mut next_event, mut next_line) = (1, 1);
        if filter.from_sequence > 0 {
            next_event = self.seek(execution.id.event_log(), (attempt, place), of_events).await?;
            next_line = self.seek(execution.id, (attempt, place), of_lines).await?;
        }
        if let Some(from) = filter.from {
            next_event = next_event.max(self.ports.logs.line_at(execution.id.event_log(), from).await?);
            next_line = next_line.max(self.ports.logs.line_at(execution.id, from).await?);
        }
        Ok(JobEventFollower {
            engine: Arc::clone(self),
            id: execution.id,
            filter,
            watch,
            attempt,
            first_attempt: attempt,
            next_event,
            next_line,
            page: VecDeque::new(),
            assembler: Assembler::default(),
            sources: BTreeMap::new(),
            started: false,
            progress: Progress::Open,
            ready: VecDeque::new(),
            ended: false,
        })
    }
}

impl JobEventFollower {
    /// What comes next; `None` after the last event of an execution that has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<StreamedEvent>, EngineError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            if self.read_events().await? || self.read_lines().await? {
                continue;
            }
            if let Progress::Over { is_last, begun } = self.progress {
                // That it was over was known before the logs had nothing more of it.
                self.close(begun).await?;
                self.ended = is_last;
                continue;
            }
            let found = self.engine.ports.store.get(self.id).await?.ok_or_else(|| EngineError::no_execution(self.id))?;
            self.progress = progress(&found, self.attempt);
            if self.progress == Progress::Open {
                tokio::select! {
                    () = self.watch.changed() => {}
                    () = tokio::time::sleep(self.engine.config.poll) => {}
                }
            }
        }
    }

    fn offer(&mut self, event: StreamedEvent) {
        if self.filter.takes(&event) {
            self.ready.push_back(event);
        }
    }

    /// Takes a page of published events, up to those of a later attempt; whether there was anything.
    async fn read_events(&mut self) -> Result<bool, EngineError> {
        let (logs, log) = (&self.engine.ports.logs, self.id.event_log());
        // Most executions have no such log, and to know that is cheaper than to read it.
        if logs.extent(log).await?.next_line <= self.next_event {
            return Ok(false);
        }
        let chunks = logs.read(log, self.next_event, PAGE_BYTES).await?;
        let (attempt, mut advanced) = (self.attempt, false);
        for chunk in chunks.iter().take_while(|chunk| chunk.attempt <= attempt) {
            self.sources.insert(chunk.attempt, Source::Published);
            for record in records(chunk) {
                let whole = self.assembler.push(chunk.attempt, record?.1.bytes).map_err(|error| LogError::Storage(Box::new(error)))?;
                if let Some(kept) = whole {
                    self.offer(StreamedEvent::Published(kept));
                }
            }
            self.next_event = chunk.next_line();
            advanced = true;
        }
        Ok(advanced)
    }

    /// Takes some lines of attempts that published nothing, up to those of a later attempt; whether there was anything.
    async fn read_lines(&mut self) -> Result<bool, EngineError> {
        let derives = |attempt| self.sources.get(&attempt) != Some(&Source::Published);
        if !(self.first_attempt..=self.attempt).any(derives) {
            return Ok(false);
        }
        if self.page.is_empty() {
            self.page = self.engine.ports.logs.read(self.id, self.next_line, PAGE_BYTES).await?.into();
        }
        let (mut left, mut advanced) = (AT_ONCE, false);
        while left > 0 {
            let Some(chunk) = self.page.front().filter(|chunk| chunk.attempt <= self.attempt).cloned() else { break };
            let mut taken = chunk.block.count;
            if chunk.attempt >= self.first_attempt && self.source(chunk.attempt).await? == Source::Derived {
                if chunk.attempt == self.attempt {
                    self.begin().await?;
                }
                taken = taken.min(left);
                self.derive(&chunk, taken)?;
                left -= taken;
            }
            self.page.pop_front();
            self.next_line = chunk.first_line + u64::from(taken);
            if taken < chunk.block.count {
                self.page.push_front(chunk.starting_at(self.next_line));
            }
            advanced = true;
        }
        Ok(advanced)
    }

    /// Where an attempt's events come from. It is asked when there are lines of it: the event that a line follows from is stored before the line is.
    async fn source(&mut self, attempt: u32) -> Result<Source, EngineError> {
        if let Some(source) = self.sources.get(&attempt) {
            return Ok(*source);
        }
        let published = self.engine.stand(self.id.event_log(), attempt).await?.next_seq > 1;
        let source = if published { Source::Published } else { Source::Derived };
        self.sources.insert(attempt, source);
        Ok(source)
    }

    /// Makes events of the first lines of a chunk.
    fn derive(&mut self, chunk: &Chunk, lines: u32) -> Result<(), EngineError> {
        for record in records(chunk).take(usize::try_from(lines).unwrap_or(usize::MAX)) {
            let (index, record) = record?;
            if record.stream == Stream::Platform {
                continue;
            }
            let place = Place { sequence: chunk.first_seq + u64::from(index), part: 0 };
            let mut bytes = record.bytes.to_vec();
            if record.eol {
                bytes.push(b'\n');
            }
            let what = Derived::Output { stream: record.stream, bytes };
            self.offer_derived(chunk.attempt, place.sequence, record.at, what);
        }
        Ok(())
    }

    fn offer_derived(&mut self, attempt: u32, sequence: u64, at: UnixMs, what: Derived) {
        let sequence = Place { sequence, part: 0 }.reader_sequence(attempt);
        self.offer(StreamedEvent::Derived(DerivedEvent { sequence, at, what }));
    }

    /// The start of the attempt whose turn it is.
    async fn begin(&mut self) -> Result<(), EngineError> {
        if self.started {
            return Ok(());
        }
        let started_at = self.engine.story(self.id, self.attempt).await?.started_at;
        self.started = true;
        if let Some(at) = started_at {
            self.offer_derived(self.attempt, 0, at, Derived::Started);
        }
        Ok(())
    }

    /// The end of the attempt whose turn it is; then it is the next one's.
    async fn close(&mut self, begun: bool) -> Result<(), EngineError> {
        if begun && self.source(self.attempt).await? == Source::Derived {
            let story = self.engine.story(self.id, self.attempt).await?;
            if let (Some(at), false) = (story.started_at, self.started) {
                self.offer_derived(self.attempt, 0, at, Derived::Started);
            }
            if let Some((at, what)) = story.end {
                self.offer_derived(self.attempt, END, at, what);
            }
        }
        self.attempt += 1;
        self.started = false;
        self.progress = Progress::Open;
        Ok(())
    }
}
