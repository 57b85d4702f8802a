//! Attempts that publish nothing have events all the same: their start, what they wrote, their end.

use runvoy_engine::{Derived, JobEventFilter, RunRequest, StreamedEvent};
use runvoy_model::command::Fence;
use runvoy_model::job_event::{Place, SEQUENCES_PER_ATTEMPT};
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_ports::log::Append;

use crate::scene::{BEGAN, Scene, output, sequences};
use crate::stage::{command, fence};

/// Lines as our own worker appends them.
async fn write(scene: &Scene, fence: Fence, first_seq: u64, lines: &[(Stream, &[u8], bool)]) {
    let mut builder = BlockBuilder::default();
    for (stream, bytes, eol) in lines {
        builder.push(Record { at: scene.stage.engine.now(), stream: *stream, cont: false, eol: *eol, bytes });
    }
    let append = Append { attempt: fence.attempt, first_seq: Some(first_seq), late: false, block: builder.take() };
    scene.stage.logs().append(fence.execution, append).await.expect("appended");
}

fn shown(events: &[StreamedEvent]) -> Vec<String> {
    let show = |event: &StreamedEvent| match event {
        StreamedEvent::Published(kept) => format!("published {}", kept.event.place.sequence),
        StreamedEvent::Derived(derived) => match &derived.what {
            Derived::Started => "started".to_owned(),
            Derived::Output { stream, bytes } => format!("{} {:?}", stream.as_str(), String::from_utf8_lossy(bytes)),
            Derived::Ended { exit_code, .. } => format!("ended {exit_code}"),
            Derived::Failed { .. } => "failed".to_owned(),
        },
    };
    events.iter().map(show).collect()
}

/// Three attempts: our own worker's, a foreign worker's, and our own worker's again.
async fn mixed() -> Scene {
    let mut scene = Scene::of(RunRequest { retries: Some(2), ..command("job") }).await;
    write(&scene, scene.fence, 1, &[(Stream::Platform, b"### runvoy: started", true), (Stream::Stdout, b"one", true)]).await;
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    scene.execution = scene.stage.lease(&scene.worker, 30_000).await.expect("the second attempt");
    scene.fence = fence(&scene.execution);
    scene.publish(vec![output(1, b"two\n"), output(2, b"three\n")]).await.expect("kept");
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    scene.execution = scene.stage.lease(&scene.worker, 30_000).await.expect("the third attempt");
    scene.fence = fence(&scene.execution);
    write(&scene, scene.fence, 1, &[(Stream::Stderr, b"fo", false), (Stream::Stderr, b"ur", true)]).await;
    scene.finish(3).await;
    scene
}

#[tokio::test]
async fn attempts_come_one_after_another_wherever_their_events_are_from() {
    let scene = mixed().await;
    let events = scene.all(JobEventFilter::default()).await;
    let expected =
        ["started", "stdout \"one\\n\"", "failed", "published 1", "published 2", "started", "stderr \"fo\"", "stderr \"ur\\n\"", "ended 3"];
    assert_eq!(shown(&events), expected);
    assert!(sequences(&events).is_sorted());
    let of = |attempt, sequence| Place { sequence, part: 0 }.reader_sequence(attempt);
    let end = SEQUENCES_PER_ATTEMPT - 1;
    assert_eq!(sequences(&events), [of(1, 0), of(1, 2), of(1, end), of(2, 1), of(2, 2), of(3, 0), of(3, 1), of(3, 2), of(3, end)]);
    assert_eq!(events[0].at().0, BEGAN);
}

#[tokio::test]
async fn a_reader_that_comes_back_goes_on_where_it_was() {
    let scene = mixed().await;
    let whole = scene.all(JobEventFilter::default()).await;
    for (index, event) in whole.iter().enumerate() {
        let filter = JobEventFilter { from_sequence: event.sequence() + 1, ..JobEventFilter::default() };
        assert_eq!(scene.all(filter).await, whole[index + 1..], "after {index}");
        let filter = JobEventFilter { from_sequence: event.sequence(), kinds: vec![event.kind()], ..JobEventFilter::default() };
        assert_eq!(scene.all(filter).await.first(), Some(event));
    }
}

#[tokio::test]
async fn an_execution_that_never_ran_has_no_events_and_its_stream_ends() {
    let scene = Scene::new().await;
    let waiting = scene.stage.run(command("never")).await;
    let ada = scene.stage.admitted("ada@example.com", runvoy_model::role::Role::Admin).await;
    scene.stage.engine.kill(&ada, &waiting.id.to_string(), false).await.expect("it is stopped");
    assert!(crate::scene::all_of(&scene.stage.engine, &waiting, JobEventFilter::default()).await.is_empty());
}

#[tokio::test]
async fn a_silent_attempt_has_its_start_and_its_end() {
    let scene = Scene::new().await;
    scene.finish(0).await;
    assert_eq!(shown(&scene.all(JobEventFilter::default()).await), ["started", "ended 0"]);
}

#[tokio::test]
async fn very_many_short_lines_come_whole_and_in_order() {
    let scene = Scene::new().await;
    let lines = [(Stream::Stdout, &b"x"[..], true); 1_250];
    write(&scene, scene.fence, 1, &lines).await;
    write(&scene, scene.fence, 1_251, &lines).await;
    scene.finish(0).await;
    let events = scene.all(JobEventFilter::default()).await;
    let of = |sequence| Place { sequence, part: 0 }.reader_sequence(1);
    let expected: Vec<_> = (0..=2_500).chain([SEQUENCES_PER_ATTEMPT - 1]).map(of).collect();
    assert_eq!(sequences(&events), expected);
}
