//! One event between the protocol and the engine: output and texts are taken out of the message, the rest is its envelope; and back. What was published comes back as it was, but
//! for the sequence, which is the reader's, the time where the worker said none, and what is masked.

use std::ops::RangeInclusive;

use runvoy_engine::{Derived, DerivedEvent, Effect, PublishedEvent, StreamedEvent};
use runvoy_model::job_event::{JobEvent as KeptEvent, Piece, Place, SEQUENCES_PER_ATTEMPT};
use runvoy_model::log::Stream;
use runvoy_model::time::UnixMs;
use runvoy_rpc::buffa::{DecodeError, Message as _};
use runvoy_rpc::job::v1::__buffa::oneof::job_event::EventData;
use runvoy_rpc::job::v1::{EventType, JobEvent, OutputEvent, ProcessEndEvent, ProcessErrorEvent, ProcessStartEvent, StreamType};
use runvoy_rpc::protobuf::{Duration, Timestamp};

use super::super::error::RpcFault;
use super::super::job::{timestamp, unix_ms};

/// The seconds that a time may have: from the year 1 to the year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// An event that was taken apart.
pub(super) struct Opened {
    pub(super) place: Place,
    pub(super) kind: u8,
    pub(super) at: UnixMs,
    pub(super) effect: Effect,
    /// The message, without output and texts.
    pub(super) message: JobEvent,
    pub(super) output: Vec<Piece>,
    pub(super) texts: Vec<String>,
}

/// Takes a published event apart; one without a time is from now.
pub(super) fn opened(mut message: JobEvent, now: UnixMs) -> Result<Opened, RpcFault> {
    let sequence = u64::try_from(message.sequence).ok().filter(|sequence| *sequence < SEQUENCES_PER_ATTEMPT);
    let most = SEQUENCES_PER_ATTEMPT - 1;
    let sequence = sequence.ok_or_else(|| RpcFault::invalid("events.sequence", format!("must be from 0 to {most}")))?;
    let at = match message.timestamp.as_option() {
        Some(said) if is_time(said) => unix_ms(said),
        Some(_) => return Err(RpcFault::invalid("events.timestamp", "is not a time")),
        None => {
            message.timestamp = timestamp(now).into();
            now
        }
    };
    let kind = u8::try_from(kind(&message)).map_err(|_| RpcFault::invalid("events.event_type", "is unknown"))?;
    let effect = effect(&message);
    let output = message.event_data.as_mut().map(|data| take_output(data, at)).unwrap_or_default();
    let texts = message.event_data.as_mut().map(texts).unwrap_or_default().into_iter().map(std::mem::take).collect();
    Ok(Opened { place: Place { sequence, part: 0 }, kind, at, effect, message, output, texts })
}

impl Opened {
    /// What the engine keeps.
    pub(super) fn published(self) -> PublishedEvent {
        let Self { place, kind, at, effect, message, output, texts } = self;
        PublishedEvent { event: KeptEvent { place, kind, at, envelope: message.encode_to_vec(), output, texts }, effect }
    }
}

/// The message that a reader sees.
pub(super) fn closed(event: StreamedEvent) -> Result<JobEvent, DecodeError> {
    let sequence = event.sequence();
    let mut message = match event {
        StreamedEvent::Derived(derived) => derived_message(derived),
        StreamedEvent::Published(kept) => {
            let mut message = JobEvent::decode_from_slice(&kept.event.envelope)?;
            if let Some(data) = &mut message.event_data {
                put_output(data, kept.event.output);
                texts(data).into_iter().zip(kept.event.texts).for_each(|(text, kept)| *text = kept);
            }
            message
        }
    };
    message.sequence = sequence;
    Ok(message)
}

/// The sequences that an event stands for: a batch says where it begins and where it ends.
pub(super) fn covered(event: &KeptEvent) -> RangeInclusive<u64> {
    let sequence = event.place.sequence;
    if i32::from(event.kind) != EventType::EVENT_TYPE_OUTPUT_BATCH as i32 {
        return sequence..=sequence;
    }
    let said = JobEvent::decode_from_slice(&event.envelope).ok().and_then(|message| message.event_data);
    let Some(EventData::OutputBatch(batch)) = said else { return sequence..=sequence };
    let said = |bound: i64| u64::try_from(bound).ok().filter(|bound| *bound > 0).unwrap_or(sequence);
    said(batch.start_sequence).min(sequence)..=said(batch.end_sequence).max(sequence)
}

fn is_time(said: &Timestamp) -> bool {
    SECONDS.contains(&said.seconds) && (0..1_000_000_000).contains(&said.nanos)
}

/// What kind of event: what it says, else what its data say.
fn kind(message: &JobEvent) -> i32 {
    if message.event_type.to_i32() != 0 {
        return message.event_type.to_i32();
    }
    let kind = match &message.event_data {
        None => EventType::EVENT_TYPE_UNSPECIFIED,
        Some(EventData::ProcessStart(_)) => EventType::EVENT_TYPE_PROCESS_START,
        Some(EventData::ProcessEnd(_)) => EventType::EVENT_TYPE_PROCESS_END,
        Some(EventData::ProcessError(_)) => EventType::EVENT_TYPE_PROCESS_ERROR,
        Some(EventData::Heartbeat(_)) => EventType::EVENT_TYPE_HEARTBEAT,
        Some(EventData::Output(_)) => EventType::EVENT_TYPE_OUTPUT,
        Some(EventData::TerminalResize(_)) => EventType::EVENT_TYPE_TERMINAL_RESIZE,
        Some(EventData::OutputBatch(_)) => EventType::EVENT_TYPE_OUTPUT_BATCH,
        Some(EventData::ContainerCreate(_)) => EventType::EVENT_TYPE_CONTAINER_CREATE,
        Some(EventData::ContainerRemove(_)) => EventType::EVENT_TYPE_CONTAINER_REMOVE,
        Some(EventData::ImagePullStart(_)) => EventType::EVENT_TYPE_IMAGE_PULL_START,
        Some(EventData::ImagePullProgress(_)) => EventType::EVENT_TYPE_IMAGE_PULL_PROGRESS,
        Some(EventData::ImagePullComplete(_)) => EventType::EVENT_TYPE_IMAGE_PULL_COMPLETE,
        Some(EventData::GitCloneStart(_)) => EventType::EVENT_TYPE_GIT_CLONE_START,
        Some(EventData::GitCloneEnd(_)) => EventType::EVENT_TYPE_GIT_CLONE_END,
        Some(EventData::GitCloneError(_)) => EventType::EVENT_TYPE_GIT_CLONE_ERROR,
    };
    kind as i32
}

fn effect(message: &JobEvent) -> Effect {
    match &message.event_data {
        Some(EventData::ProcessStart(started)) => Effect::Started { pid: u32::try_from(started.pid).ok().filter(|pid| *pid > 0) },
        Some(EventData::ProcessEnd(_) | EventData::ProcessError(_)) => Effect::Ended,
        _ => Effect::Kept,
    }
}

/// Takes the output out of an event.
fn take_output(data: &mut EventData, at: UnixMs) -> Vec<Piece> {
    match data {
        EventData::Output(output) => {
            let stream = stream(output.stream_type.as_known());
            vec![Piece { stream, at, bytes: std::mem::take(&mut output.output).into() }]
        }
        EventData::OutputBatch(batch) => {
            let first = if batch.first_timestamp_ms > 0 { UnixMs(batch.first_timestamp_ms) } else { at };
            let items = batch.outputs.iter_mut().map(|item| Piece {
                stream: stream(item.stream_type.as_known()),
                at: first.plus_ms(i64::from(item.timestamp_delta_ms)),
                bytes: std::mem::take(&mut item.output).into(),
            });
            items.collect()
        }
        _ => Vec::new(),
    }
}

fn put_output(data: &mut EventData, pieces: Vec<Piece>) {
    let mut pieces = pieces.into_iter().map(|piece| piece.bytes.into());
    match data {
        EventData::Output(output) => output.output = pieces.next().unwrap_or_default(),
        EventData::OutputBatch(batch) => batch.outputs.iter_mut().zip(pieces).for_each(|(item, bytes)| item.output = bytes),
        _ => {}
    }
}

fn stream(said: Option<StreamType>) -> Stream {
    if said == Some(StreamType::STREAM_TYPE_STDERR) { Stream::Stderr } else { Stream::Stdout }
}

/// Every text of an event, in order: any of them may hold a secret.
fn texts(data: &mut EventData) -> Vec<&mut String> {
    match data {
        EventData::ProcessError(event) => vec![&mut event.error_message],
        EventData::ContainerCreate(event) => vec![&mut event.container_id, &mut event.image],
        EventData::ContainerRemove(event) => vec![&mut event.container_id],
        EventData::ImagePullStart(event) => vec![&mut event.image],
        EventData::ImagePullProgress(event) => vec![&mut event.image, &mut event.status],
        EventData::ImagePullComplete(event) => vec![&mut event.image],
        EventData::GitCloneStart(event) => vec![&mut event.repository, &mut event.commit, &mut event.branch],
        EventData::GitCloneEnd(event) => vec![&mut event.commit_sha, &mut event.working_directory],
        EventData::GitCloneError(event) => vec![&mut event.error_message, &mut event.stderr_output],
        EventData::ProcessStart(_)
        | EventData::ProcessEnd(_)
        | EventData::Heartbeat(_)
        | EventData::Output(_)
        | EventData::TerminalResize(_)
        | EventData::OutputBatch(_) => Vec::new(),
    }
}

/// The message of an event of an attempt that published none. Its process has no number: what it is, is known on its worker's machine only.
fn derived_message(DerivedEvent { at, what, .. }: DerivedEvent) -> JobEvent {
    let (kind, data) = match what {
        Derived::Started => {
            let started = ProcessStartEvent { started_at: timestamp(at).into(), ..ProcessStartEvent::default() };
            (EventType::EVENT_TYPE_PROCESS_START, EventData::ProcessStart(Box::new(started)))
        }
        Derived::Output { stream, bytes } => {
            let to = if stream == Stream::Stderr { StreamType::STREAM_TYPE_STDERR } else { StreamType::STREAM_TYPE_STDOUT };
            let output = OutputEvent { output: bytes.into(), stream_type: to.into(), ..OutputEvent::default() };
            (EventType::EVENT_TYPE_OUTPUT, EventData::Output(Box::new(output)))
        }
        Derived::Ended { exit_code, ran_ms } => {
            let ended = ProcessEndEvent { exit_code, run_duration: duration(ran_ms).into(), ..ProcessEndEvent::default() };
            (EventType::EVENT_TYPE_PROCESS_END, EventData::ProcessEnd(Box::new(ended)))
        }
        Derived::Failed { message } => {
            let failed = ProcessErrorEvent { error_message: message, ..ProcessErrorEvent::default() };
            (EventType::EVENT_TYPE_PROCESS_ERROR, EventData::ProcessError(Box::new(failed)))
        }
    };
    JobEvent { timestamp: timestamp(at).into(), event_type: kind.into(), event_data: Some(data), ..JobEvent::default() }
}

fn duration(ms: u64) -> Duration {
    let nanos = i32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
    Duration { seconds: i64::try_from(ms / 1000).unwrap_or(i64::MAX), nanos, ..Duration::default() }
}

#[cfg(test)]
mod tests {
    use runvoy_model::job_event::{Kept, Lines, Mark};
    use runvoy_rpc::job::v1::{GitCloneErrorEvent, OutputBatchEvent, OutputItem};

    use super::*;

    const NOW: UnixMs = UnixMs(1_700_000_000_123);

    fn through(message: JobEvent, attempt: u32) -> JobEvent {
        let event = opened(message, NOW).expect("an event").published().event;
        let masks = Default::default();
        let mark = Mark { first_line_seq: 1, lines: Lines::default(), full: false, in_order: true, straggled: false, masks };
        closed(StreamedEvent::Published(Kept { attempt, event, mark })).expect("own encoding")
    }

    #[test]
    fn what_was_published_comes_back() {
        let item =
            |output: &'static [u8], to: StreamType| OutputItem { output: output.into(), stream_type: to.into(), ..OutputItem::default() };
        let outputs = vec![
            item(b"a\n", StreamType::STREAM_TYPE_STDERR),
            item(b"", StreamType::STREAM_TYPE_UNSPECIFIED),
            item(b"\xff", StreamType::STREAM_TYPE_STDOUT),
        ];
        let batch = OutputBatchEvent { outputs, start_sequence: 3, end_sequence: 5, first_timestamp_ms: 9, ..OutputBatchEvent::default() };
        let failed = GitCloneErrorEvent { error_message: "no".into(), stderr_output: "fatal".into(), ..GitCloneErrorEvent::default() };
        let output = OutputEvent { output: b"x".as_slice().into(), ..OutputEvent::default() };
        let at = Timestamp { seconds: 7, nanos: 123_456_789, ..Timestamp::default() };
        for data in
            [EventData::OutputBatch(Box::new(batch)), EventData::GitCloneError(Box::new(failed)), EventData::Output(Box::new(output))]
        {
            let message = JobEvent { sequence: 5, timestamp: at.clone().into(), event_data: Some(data), ..JobEvent::default() };
            assert_eq!(through(message.clone(), 1), message);
            assert_eq!(through(message, 2).sequence, (1 << 40) + 5);
        }
    }

    #[test]
    fn a_batch_stands_for_the_sequences_it_names() {
        for ((start_sequence, end_sequence), expected) in [((3, 5), 3..=5), ((0, 0), 5..=5), ((5, 8), 5..=8), ((-1, 2), 5..=5)] {
            let batch = OutputBatchEvent { start_sequence, end_sequence, ..OutputBatchEvent::default() };
            let message = JobEvent { sequence: 5, event_data: Some(EventData::OutputBatch(Box::new(batch))), ..JobEvent::default() };
            let event = opened(message, NOW).expect("an event").published().event;
            assert_eq!(covered(&event), expected, "{start_sequence} {end_sequence}");
        }
    }

    #[test]
    fn an_event_without_a_time_is_from_now_and_one_without_a_kind_is_known_by_its_data() {
        let event =
            opened(JobEvent { event_data: Some(EventData::ProcessEnd(Box::default())), ..JobEvent::default() }, NOW).expect("an event");
        assert_eq!((event.at, event.kind, event.effect), (NOW, 2, Effect::Ended));
        assert_eq!(event.message.timestamp.nanos, 123_000_000);
    }

    #[test]
    fn what_is_no_event_is_refused_by_its_field() {
        let refused = |event| match opened(event, NOW) {
            Ok(_) => panic!("it was taken"),
            Err(fault) => fault.into_status("r").message.unwrap_or_default(),
        };
        for sequence in [-1, 1 << 40] {
            assert!(refused(JobEvent { sequence, ..JobEvent::default() }).starts_with("events.sequence"));
        }
        for (seconds, nanos) in [(i64::MAX, 0), (0, -1)] {
            let timestamp = Timestamp { seconds, nanos, ..Timestamp::default() }.into();
            assert!(refused(JobEvent { timestamp, ..JobEvent::default() }).starts_with("events.timestamp"));
        }
        assert!(refused(JobEvent { event_type: 300.into(), ..JobEvent::default() }).starts_with("events.event_type"));
    }
}
