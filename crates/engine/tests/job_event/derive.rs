//! Attempts that publish nothing have events all the same: their start, what they wrote, their end.

use runvoy_engine::{Derived, JobEventFilter, RunRequest, StreamedEvent};
use runvoy_model::command::Fence;
use runvoy_model::job_event::Place;
use runvoy_model::log::{BlockBuilder, Record, Stream};
use runvoy_ports::log::Append;

use crate::scene::{BEGAN, Scene, output, sequences};
use crate::stage::{command, fence};

/// Lines as our own worker appends them.
async fn write(scene: &Scene, fence: Fence, first_seq: u64, lines: &[(Stream, &[u8], bool)]) {
    write_as(scene, fence, first_seq, false, lines).await;
}

/// The same, under a lease that lapsed.
async fn write_as(scene: &Scene, fence: Fence, first_seq: u64, late: bool, lines: &[(Stream, &[u8], bool)]) {
    let mut builder = BlockBuilder::default();
    for (stream, bytes, eol) in lines {
        builder.push(Record { at: scene.stage.engine.now(), stream: *stream, cont: false, eol: *eol, bytes });
    }
    let append = Append { attempt: fence.attempt, first_seq: Some(first_seq), late, block: builder.take() };
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
    assert_eq!(sequences(&events), [of(1, 1), of(1, 2), of(1, 3), of(2, 1), of(2, 2), of(3, 1), of(3, 2), of(3, 3), of(3, 4)]);
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
    assert_eq!(sequences(&events), (1..=2_502).collect::<Vec<_>>());
    for from_sequence in [1_000, 1_001, 2_251] {
        let filter = JobEventFilter { from_sequence, ..JobEventFilter::default() };
        assert_eq!(sequences(&scene.all(filter).await), (from_sequence..=2_502).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn numbers_are_dense_whoever_else_writes_and_wherever_a_reader_begins() {
    let scene = Scene::new().await;
    let platform: (Stream, &[u8], bool) = (Stream::Platform, b"### runvoy: note", true);
    write(&scene, scene.fence, 1, &[platform, (Stream::Stdout, b"a", true), platform, platform, (Stream::Stderr, b"b", true)]).await;
    let between = scene.stage.engine.now();
    scene.stage.clock.pass(5_000);
    let later = scene.stage.engine.now();
    write(&scene, scene.fence, 6, &[(Stream::Stdout, b"c", true), platform, (Stream::Stdout, b"d", true)]).await;
    scene.finish(0).await;
    let whole = scene.all(JobEventFilter::default()).await;
    assert_eq!(sequences(&whole), [1, 2, 3, 4, 5, 6]);
    assert_eq!(shown(&whole), ["started", "stdout \"a\\n\"", "stderr \"b\\n\"", "stdout \"c\\n\"", "stdout \"d\\n\"", "ended 0"]);
    for (from, expected) in [(between, &[1, 2, 3, 4, 5, 6][..]), (later, &[4, 5, 6])] {
        let filter = JobEventFilter { from: Some(from), ..JobEventFilter::default() };
        assert_eq!(sequences(&scene.all(filter).await), expected, "the same numbers as from the beginning");
    }
}

#[tokio::test]
async fn lines_of_a_lapsed_lease_come_behind_the_end_of_their_attempt() {
    let mut scene = Scene::of(RunRequest { retries: Some(1), ..command("job") }).await;
    let first = scene.fence;
    write(&scene, first, 1, &[(Stream::Stdout, b"one", true)]).await;
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    scene.execution = scene.stage.lease(&scene.worker, 30_000).await.expect("the second attempt");
    scene.fence = fence(&scene.execution);
    write(&scene, scene.fence, 1, &[(Stream::Stdout, b"two", true)]).await;
    write_as(&scene, first, 2, true, &[(Stream::Stdout, b"late", true), (Stream::Stdout, b"later", true)]).await;
    scene.finish(0).await;
    let events = scene.all(JobEventFilter::default()).await;
    let of = |attempt, sequence| Place { sequence, part: 0 }.reader_sequence(attempt);
    let expected = [of(1, 1), of(1, 2), of(1, 3), of(1, 4), of(1, 5), of(2, 1), of(2, 2), of(2, 3)];
    assert_eq!(sequences(&events), expected);
    assert_eq!(shown(&events)[2..5], ["failed", "stdout \"late\\n\"", "stdout \"later\\n\""]);
    for (index, event) in events.iter().enumerate() {
        let filter = JobEventFilter { from_sequence: event.sequence(), ..JobEventFilter::default() };
        assert_eq!(scene.all(filter).await, events[index..], "from {index}");
    }
}

#[tokio::test]
async fn what_comes_late_to_the_last_attempt_comes_behind_its_end() {
    let scene = Scene::new().await;
    write(&scene, scene.fence, 1, &[(Stream::Stdout, b"one", true)]).await;
    scene.lapse().await;
    assert_eq!(sequences(&scene.all(JobEventFilter::default()).await), [1, 2, 3]);
    write_as(&scene, scene.fence, 2, true, &[(Stream::Stdout, b"late", true)]).await;
    let events = scene.all(JobEventFilter::default()).await;
    assert_eq!((sequences(&events), shown(&events)[2].as_str()), (vec![1, 2, 3, 4], "ended 125"), "no number changed its meaning");
}
