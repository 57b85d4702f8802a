//! Random events in random messages, with a crash anywhere between the two logs, on one server or on two: what is read back is what was published, and the lines are its output.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use runvoy_conformance::tap::Tapped;
use runvoy_engine::{Engine, JobEventFilter, PublishedEvent};
use runvoy_model::job_event::JobEvent;
use runvoy_model::log::Stream;

use crate::brittle::{BrittleLogs, How};
use crate::scene::{Scene, pieces, published};

/// What one message meets.
#[derive(Debug, Clone)]
struct Message {
    /// So many events, from so many before the first that was not acknowledged.
    events: usize,
    again: usize,
    /// The server fails at a write, or another takes over.
    crash: Option<(usize, How)>,
    elsewhere: bool,
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![Just(How::Before), Just(How::After), Just(How::Torn)]
}

fn message() -> impl Strategy<Value = Message> {
    (1usize..6, 0usize..4, prop::option::of((0usize..4, how())), any::<bool>()).prop_map(|(events, again, crash, elsewhere)| Message {
        events,
        again,
        crash,
        elsewhere,
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::collection::vec(prop_oneof![3 => Just(b'\n'), 3 => Just(b'x'), 1 => any::<u8>()], 0..60);
    (piece, prop_oneof![8 => 1usize..3, 1 => Just(4_000)]).prop_map(|(piece, times)| piece.repeat(times))
}

fn event(number: usize) -> impl Strategy<Value = PublishedEvent> {
    prop::collection::vec((any::<bool>(), bytes()), 0..4).prop_map(move |written| {
        let stream = |to_stderr| if to_stderr { Stream::Stderr } else { Stream::Stdout };
        let written: Vec<(Stream, &[u8])> = written.iter().map(|(to_stderr, bytes)| (stream(*to_stderr), bytes.as_slice())).collect();
        // Sequences rise, but not by one each.
        pieces(number as u64 * 3 + 1, &written)
    })
}

fn events() -> impl Strategy<Value = Vec<PublishedEvent>> {
    (1usize..30).prop_flat_map(|count| (0..count).map(event).collect::<Vec<_>>())
}

/// Publishes everything as a worker would that knows only what was acknowledged.
async fn publish(scene: &Scene, events: &[PublishedEvent], messages: &[Message], shared: bool) {
    let logs = scene.stage.logs();
    let serve = |brittle: Arc<Tapped<BrittleLogs>>| match shared {
        true => scene.stage.beside(2, &[], |ports| ports.logs = brittle),
        false => scene.stage.started(1, |ports| ports.logs = brittle),
    };
    let fresh = || serve(Arc::new(BrittleLogs::over(scene.stage.logs(), usize::MAX, How::Before)));
    // Two servers that keep what they know. Where the store is one server's alone, the other is never asked.
    let mut servers: [Arc<Engine>; 2] = [fresh(), fresh()];
    let (mut acknowledged, mut turn) = (0, messages.iter().cycle());
    while acknowledged < events.len() {
        let message = turn.next().expect("there are messages");
        let from = acknowledged - message.again.min(acknowledged);
        let to = (acknowledged + message.events).min(events.len());
        let server = usize::from(shared && message.elsewhere);
        let done = match message.crash {
            None => scene.publish_to(&servers[server], events[from..to].to_vec()).await,
            Some((good, how)) => {
                let brittle = Arc::new(BrittleLogs::over(Arc::clone(&logs), good, how));
                let doomed = serve(Arc::clone(&brittle));
                let done = scene.publish_to(&doomed, events[from..to].to_vec()).await;
                assert_eq!(done.is_err(), brittle.failed.load(Ordering::Relaxed));
                if !shared {
                    servers = [fresh(), fresh()];
                }
                done
            }
        };
        if done.is_ok() {
            acknowledged = to;
        } else {
            // It is sent again, and this time the server lives.
            let survivor = &servers[usize::from(shared && !message.elsewhere)];
            scene.publish_to(survivor, events[from..to].to_vec()).await.expect("it is kept");
            acknowledged = to;
        }
    }
}

async fn compare(scene: &Scene, events: &[PublishedEvent]) {
    scene.finish(0).await;
    let expected: Vec<JobEvent> = events.iter().map(|published| published.event.clone()).collect();
    assert_eq!(published(scene.all(JobEventFilter::default()).await), expected);
    for stream in [Stream::Stdout, Stream::Stderr] {
        let pieces = events.iter().flat_map(|published| &published.event.output).filter(|piece| piece.stream == stream);
        let written: Vec<u8> = pieces.flat_map(|piece| piece.bytes.clone()).collect();
        assert!(scene.written(stream).await == written, "{stream:?} is as it was written");
    }
}

fn in_runtime(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
}

fn cases() -> u32 {
    if std::env::var_os("RUNVOY_PROVE").is_some() { 20_000 } else { 20 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_crash_between_the_logs_loses_nothing_and_doubles_nothing(events in events(), messages in prop::collection::vec(message(), 1..12)) {
        in_runtime(async {
            let scene = Scene::new().await;
            publish(&scene, &events, &messages, false).await;
            compare(&scene, &events).await;
        });
    }

    #[test]
    fn two_servers_that_fail_in_turn_lose_nothing_and_double_nothing(events in events(), messages in prop::collection::vec(message(), 1..12)) {
        in_runtime(async {
            let scene = Scene::new().await;
            publish(&scene, &events, &messages, true).await;
            compare(&scene, &events).await;
        });
    }
}

#[tokio::test]
async fn lines_that_a_crash_left_out_are_made_though_the_worker_never_comes_back() {
    let scene = Scene::new().await;
    // The events are appended and synced; their lines are not.
    let brittle = Arc::new(BrittleLogs::over(scene.stage.logs(), 2, How::Before));
    let doomed = scene.stage.started(1, |ports| ports.logs = brittle);
    let events = vec![pieces(1, &[(Stream::Stdout, b"one\ntw")]), pieces(2, &[(Stream::Stdout, b"o\n")])];
    scene.publish_to(&doomed, events).await.expect_err("the server is gone");
    assert!(scene.written(Stream::Stdout).await.is_empty());
    scene.lapse().await;
    assert_eq!(scene.written(Stream::Stdout).await, b"one\ntwo\n");
    let ended = scene.stage.engine.ports().store.get(scene.execution.id).await.expect("the store answers").expect("it is there");
    let extent = scene.stage.logs().extent(scene.execution.id).await.expect("the log is there");
    assert_eq!(ended.log_end, Some(extent.next_line - 1), "the record knows of them");
}
