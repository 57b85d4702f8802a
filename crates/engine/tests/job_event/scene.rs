//! An execution that a foreign worker has leased, and what is read of it afterwards.

use std::sync::Arc;

use runvoy_engine::{Config, Effect, Engine, Holder, JobEventFilter, PublishedEvent, Reaper, RunRequest, SecretRequest, StreamedEvent};
use runvoy_model::command::{Fence, Worker};
use runvoy_model::execution::Execution;
use runvoy_model::job_event::{JobEvent, Piece, Place};
use runvoy_model::log::Stream;
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_ports::lease::LeaseError;

use crate::stage::{Stage, caller, command, fence, worker};

pub const BEGAN: i64 = 1_700_000_000_000;

pub struct Scene {
    pub stage: Stage,
    pub worker: Worker,
    pub execution: Execution,
    pub fence: Fence,
}

impl Scene {
    pub async fn new() -> Self {
        Self::of(command("job")).await
    }

    pub async fn of(request: RunRequest) -> Self {
        // Nobody in the server's own process takes it.
        let stage = Stage::new(Config { concurrency: 0, ..Config::default() });
        Self::on(stage, request).await
    }

    pub async fn on(stage: Stage, request: RunRequest) -> Self {
        stage.run(request).await;
        let worker = worker(9, false);
        let execution = stage.lease(&worker, 30_000).await.expect("it is there to be leased");
        let fence = fence(&execution);
        Self { stage, worker, execution, fence }
    }

    /// One whose worker is given a secret.
    pub async fn with_secret(value: &str) -> Self {
        let stage = Stage::new(Config { concurrency: 0, ..Config::default() });
        let ada = stage.admitted("ada@example.com", Role::Admin).await;
        let request = SecretRequest {
            name: "db".into(),
            key_name: "DB_PASSWORD".into(),
            value: value.to_owned().into(),
            description: None,
            use_by: Vec::new(),
            idempotency_key: None,
        };
        stage.engine.create_secret(&ada, request).await.expect("a secret");
        Self::on(stage, RunRequest { secrets: vec!["db".into()], ..command("job") }).await
    }

    pub async fn publish(&self, events: Vec<PublishedEvent>) -> Result<(), LeaseError> {
        self.publish_to(&self.stage.engine, events).await
    }

    pub async fn publish_to(&self, engine: &Engine, events: Vec<PublishedEvent>) -> Result<(), LeaseError> {
        engine.publish_events(&Holder::trusted(self.worker.id), self.fence, events).await
    }

    /// The worker completes it.
    pub async fn finish(&self, code: i32) {
        let ended = self.stage.finish(&self.worker, &self.execution, code).await.expect("it ends");
        assert!(ended.status.is_terminal());
    }

    /// The worker is not heard of any more, until its lease is reaped.
    pub async fn lapse(&self) {
        let mut reaper = Reaper::new(Arc::clone(&self.stage.engine));
        for _ in 0..45 {
            self.stage.clock.pass(1_000);
            reaper.look().await.expect("the store answers");
        }
    }

    /// Everything that a reader gets of an execution that has ended.
    pub async fn all(&self, filter: JobEventFilter) -> Vec<StreamedEvent> {
        all_of(&self.stage.engine, &self.execution, filter).await
    }

    /// The lines of the command: stream, continued, whole, text.
    pub async fn lines(&self) -> Vec<(Stream, bool, bool, Vec<u8>)> {
        let (mut lines, mut from) = (Vec::new(), 1);
        loop {
            let chunks = self.stage.logs().read(self.execution.id, from, 1 << 20).await.expect("reads");
            let Some(last) = chunks.last() else { return lines };
            from = last.next_line();
            for record in chunks.iter().flat_map(|chunk| chunk.block.records()).map(|record| record.expect("own encoding")) {
                if record.stream != Stream::Platform {
                    lines.push((record.stream, record.cont, record.eol, record.bytes.to_vec()));
                }
            }
        }
    }

    /// What the command wrote to one stream.
    pub async fn written(&self, stream: Stream) -> Vec<u8> {
        let (mut bytes, mut open) = (Vec::new(), false);
        for (_, cont, eol, text) in self.lines().await.into_iter().filter(|line| line.0 == stream) {
            assert_eq!(cont, open, "a line goes on exactly where it was not finished");
            open = !eol;
            bytes.extend(text);
            bytes.extend(eol.then_some(b'\n'));
        }
        bytes
    }
}

pub async fn all_of(engine: &Arc<Engine>, execution: &Execution, filter: JobEventFilter) -> Vec<StreamedEvent> {
    let ada = caller("ada@example.com", Role::Admin);
    let mut follower = engine.follow_job_events(&ada, &execution.id.to_string(), filter).await.expect("it is there");
    let mut events = Vec::new();
    while let Some(event) = follower.next().await.expect("the store answers") {
        events.push(event);
    }
    events
}

/// What of streamed events was published.
pub fn published(events: Vec<StreamedEvent>) -> Vec<JobEvent> {
    let event = |event| match event {
        StreamedEvent::Published(kept) => kept.event,
        StreamedEvent::Derived(derived) => panic!("nothing is derived: {derived:?}"),
    };
    events.into_iter().map(event).collect()
}

pub fn sequences(events: &[StreamedEvent]) -> Vec<i64> {
    events.iter().map(StreamedEvent::sequence).collect()
}

pub fn output(sequence: u64, bytes: &[u8]) -> PublishedEvent {
    pieces(sequence, &[(Stream::Stdout, bytes)])
}

pub fn pieces(sequence: u64, pieces: &[(Stream, &[u8])]) -> PublishedEvent {
    let at = UnixMs(BEGAN + i64::try_from(sequence).expect("small"));
    let output = pieces.iter().map(|(stream, bytes)| Piece { stream: *stream, at, bytes: bytes.to_vec() }).collect();
    let place = Place { sequence, part: 0 };
    let event = JobEvent { place, kind: 5, at, envelope: sequence.to_be_bytes().to_vec(), output, texts: Vec::new() };
    PublishedEvent { event, effect: Effect::Kept }
}

pub fn started(sequence: u64, pid: u32) -> PublishedEvent {
    let mut published = pieces(sequence, &[]);
    (published.event.kind, published.effect) = (1, Effect::Started { pid: Some(pid) });
    published
}
