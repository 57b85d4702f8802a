//! What is kept, and what is said of it: repeats, stragglers, late ones, secrets, full logs, seals.

use std::sync::Arc;

use runvoy_engine::{Effect, Holder, JobEventFilter, Pruner, StreamedEvent};
use runvoy_memory::MemoryLogStore;
use runvoy_model::event::{Entity, EventType};
use runvoy_model::job_event::{Place, SEQUENCES_PER_ATTEMPT};
use runvoy_model::log::Stream;
use runvoy_model::role::Role;
use runvoy_ports::lease::LeaseError;
use runvoy_ports::log::LogStore;
use runvoy_ports::store::EventQuery;

use crate::scene::{Scene, output, pieces, published, sequences, started};
use crate::stage::{command, fence};

const DAY_MS: u64 = 24 * 3600 * 1000;

#[tokio::test]
async fn what_comes_behind_later_ones_is_kept_once_and_read_in_its_place() {
    let scene = Scene::new().await;
    scene.publish(vec![output(0, b"a\n"), output(1, b"b\n"), output(5, b"f\n")]).await.expect("kept");
    scene.publish(vec![output(4, b"e\n"), output(1, b"b\n"), output(3, b"d\n"), output(3, b"d\n")]).await.expect("kept");
    // Another start of the server knows only what is stored.
    let again = scene.stage.started(2, |_| ());
    for engine in [&scene.stage.engine, &again] {
        scene.publish_to(engine, (0..=6).filter(|number| *number != 2).map(|number| output(number, b"g\n")).collect()).await.expect("kept");
    }
    scene.publish_to(&again, vec![output(2, b"c\n")]).await.expect("kept");
    scene.finish(0).await;
    assert_eq!(sequences(&scene.all(JobEventFilter::default()).await), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(scene.written(Stream::Stdout).await, b"a\nb\nf\nd\ne\ng\nc\n");
    let from = JobEventFilter { from_sequence: 4, ..JobEventFilter::default() };
    assert_eq!(sequences(&scene.all(from).await), [4, 5, 6]);
}

#[tokio::test]
async fn repeats_of_long_ago_are_found_in_the_log() {
    let scene = Scene::new().await;
    let all: Vec<_> = (0..6_000).map(|number| output(2 * number, format!("{number}\n").as_bytes())).collect();
    for message in all.chunks(1_000) {
        scene.publish(message.to_vec()).await.expect("kept");
    }
    scene.publish(all[..50].to_vec()).await.expect("nothing is new");
    scene.publish(vec![output(20, b"again\n"), output(21, b"new\n"), output(22, b"again\n")]).await.expect("one is new");
    scene.finish(0).await;
    let events = scene.all(JobEventFilter::default()).await;
    assert_eq!(events.len(), 6_001);
    assert_eq!(scene.lines().await.last().expect("lines").3, b"new");
}

#[tokio::test]
async fn a_lapsed_attempt_is_heard_for_a_day_and_marked_late() {
    let scene = Scene::of(runvoy_engine::RunRequest { retries: Some(1), ..command("job") }).await;
    scene.publish(vec![output(1, b"first\n")]).await.expect("kept");
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    let second = scene.stage.lease(&scene.worker, 30_000).await.expect("the second attempt");
    let engine = &scene.stage.engine;
    engine.publish_events(&Holder::trusted(scene.worker.id), fence(&second), vec![output(1, b"second\n")]).await.expect("kept");
    scene.publish(vec![output(1, b"first\n"), output(2, b"late\n")]).await.expect("kept");
    scene.stage.finish(&scene.worker, &second, 0).await.expect("it ends");
    let attempt = i64::try_from(SEQUENCES_PER_ATTEMPT).expect("small");
    let events = scene.all(JobEventFilter::default()).await;
    assert_eq!(sequences(&events), [1, 2, attempt + 1], "before what the next attempt published");
    let chunks = scene.stage.logs().read(scene.execution.id, 1, 1 << 20).await.expect("reads");
    let late: Vec<(u32, bool)> = chunks.iter().filter(|chunk| chunk.attempt > 0).map(|chunk| (chunk.attempt, chunk.late)).collect();
    assert_eq!(late, [(1, false), (2, false), (1, true)]);
    scene.stage.clock.pass(DAY_MS - 1_000);
    scene.publish(vec![output(3, b"later\n")]).await.expect("within a day");
    scene.stage.clock.pass(2_000);
    assert!(matches!(scene.publish(vec![output(4, b"too late\n")]).await, Err(LeaseError::Lost(_))));
    assert_eq!(scene.all(JobEventFilter::default()).await.len(), 4);
}

#[tokio::test]
async fn secrets_are_masked_in_events_and_in_lines() {
    let scene = Scene::with_secret("s3cr3t-t0ken-value").await;
    let mut failed = pieces(3, &[]);
    failed.event.texts = vec!["fatal: s3cr3t-t0ken-value".into()];
    let halves = pieces(1, &[(Stream::Stdout, b"is s3cr"), (Stream::Stderr, b"x"), (Stream::Stdout, b"3t-t0ken-value, is s3cr3t-t0k")]);
    scene.publish(vec![halves, output(2, b"en-value.\n"), failed]).await.expect("kept");
    scene.finish(0).await;
    let events = published(scene.all(JobEventFilter::default()).await);
    let shown: Vec<String> = events[0].output.iter().map(|piece| String::from_utf8_lossy(&piece.bytes).into_owned()).collect();
    assert_eq!(shown, ["is ", "x", "***, is ***"]);
    assert_eq!((events[1].output[0].bytes.as_slice(), events[2].texts[0].as_str()), (&b".\n"[..], "fatal: ***"));
    assert_eq!(scene.written(Stream::Stdout).await, b"is ***, is ***.\n");
}

#[tokio::test]
async fn a_secret_that_a_restart_of_the_server_cuts_is_masked_on_both_sides() {
    for at in 1.."s3cr3t-t0ken-value".len() {
        let scene = Scene::with_secret("s3cr3t-t0ken-value").await;
        let (before, after) = "s3cr3t-t0ken-value".split_at(at);
        scene.publish(vec![output(1, before.as_bytes())]).await.expect("kept");
        // Another start of the server knows only what is stored.
        let again = scene.stage.started(2, |_| ());
        scene.publish_to(&again, vec![output(2, format!("{after}.\n").as_bytes())]).await.expect("kept");
        scene.finish(0).await;
        let events = published(scene.all(JobEventFilter::default()).await);
        let seen = String::from_utf8_lossy(&events[1].output[0].bytes).into_owned();
        assert_eq!(seen, if at < 6 { "***.\n" } else { ".\n" }, "cut at {at}");
    }
}

#[tokio::test]
async fn the_start_of_a_process_is_a_sign_of_life_with_its_id() {
    let scene = Scene::new().await;
    scene.stage.clock.pass(20_000);
    scene.publish(vec![started(0, 4711)]).await.expect("kept");
    scene.publish(vec![started(0, 4711)]).await.expect("known");
    let store = &scene.stage.store;
    let query = EventQuery {
        entity: Some(Entity::task(scene.execution.id)),
        kind: Some(EventType::TaskHeartbeat),
        limit: 10,
        ..EventQuery::default()
    };
    let beats = runvoy_ports::store::ExecutionStore::events(&**store, query).await.expect("the store answers");
    assert_eq!(beats.len(), 1);
    assert_eq!(beats[0].event.properties["processId"], 4711);
    let execution = runvoy_ports::store::ExecutionStore::get(&**store, scene.execution.id).await.expect("answers").expect("there");
    let lease = execution.lease.expect("it runs");
    assert_eq!((lease.extensions, lease.deadline), (2, scene.stage.engine.now().plus_ms(30_000)));
}

#[tokio::test]
async fn both_logs_are_sealed_at_the_end_and_pruned_together() {
    let scene = Scene::new().await;
    scene.publish(vec![started(0, 1), output(1, b"x\n")]).await.expect("kept");
    scene.lapse().await;
    let (logs, id) = (scene.stage.logs(), scene.execution.id);
    for log in [id, id.event_log()] {
        let extent = logs.extent(log).await.expect("the log is there");
        assert!(extent.sealed && extent.lost_records == 0, "{extent:?}");
    }
    scene.stage.clock.pass(31 * DAY_MS);
    Pruner::new(Arc::clone(&scene.stage.engine)).prune().await.expect("it prunes");
    for log in [id, id.event_log()] {
        assert!(logs.read(log, 1, 1 << 20).await.expect("reads").is_empty());
    }
    let ada = crate::stage::caller("ada@example.com", Role::Admin);
    let gone = scene.stage.engine.follow_job_events(&ada, &id.to_string(), JobEventFilter::default()).await;
    assert!(gone.err().expect("they are gone").to_string().contains("logs are kept 30 days"));
}

#[tokio::test]
async fn parts_of_one_event_are_kept_each() {
    let scene = Scene::new().await;
    let part = |part: u32, bytes: &[u8]| {
        let mut published = output(7, bytes);
        published.event.place = Place { sequence: 7, part };
        published
    };
    let large = vec![b'x'; 300_000];
    scene.publish(vec![part(0, &large), part(1, b"y\n")]).await.expect("kept");
    scene.publish(vec![part(0, &large), part(1, b"y\n"), part(2, b"z\n")]).await.expect("kept");
    scene.finish(0).await;
    let events = scene.all(JobEventFilter::default()).await;
    assert_eq!(sequences(&events), [7, 7, 7]);
    assert_eq!(scene.written(Stream::Stdout).await, [&large[..], b"y\nz\n"].concat());
}

#[tokio::test]
async fn a_sequence_beyond_its_attempt_is_refused() {
    let scene = Scene::new().await;
    let mut wrong = output(1, b"x");
    wrong.event.place.sequence = SEQUENCES_PER_ATTEMPT;
    assert!(matches!(scene.publish(vec![wrong]).await, Err(LeaseError::Refused(_))));
    assert_eq!(output(1, b"x").effect, Effect::Kept);
}

#[tokio::test]
async fn an_attempt_that_publishes_nothing_leaves_no_log_of_events() {
    let scene = Scene::new().await;
    scene.publish(Vec::new()).await.expect("nothing to keep");
    scene.finish(0).await;
    let logs: &dyn LogStore = &MemoryLogStore::default();
    assert_eq!(logs.extent(scene.execution.id.event_log()).await.expect("none").next_line, 1);
    assert!(scene.all(JobEventFilter::default()).await.iter().all(|event| matches!(event, StreamedEvent::Derived(_))));
}
