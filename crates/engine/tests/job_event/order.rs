//! Published out of order, read in order: what is stored and what comes, from the beginning and from the middle, in one attempt and in two.

use std::time::Duration;

use runvoy_engine::{Holder, JobEventFilter, PublishedEvent, RunRequest, StreamedEvent};
use runvoy_model::job_event::SEQUENCES_PER_ATTEMPT;
use tokio::task::JoinHandle;

use crate::scene::{Scene, output, sequences};
use crate::stage::{caller, command, fence};

fn from(from_sequence: i64) -> JobEventFilter {
    JobEventFilter { from_sequence, ..JobEventFilter::default() }
}

fn numbered(sequence: u64) -> PublishedEvent {
    output(sequence, format!("{sequence}\n").as_bytes())
}

/// Each in a request of its own.
async fn publish(scene: &Scene, order: &[u64]) {
    for sequence in order {
        scene.publish(vec![numbered(*sequence)]).await.expect("kept");
    }
}

/// Reads to the end while it is published.
async fn live(scene: &Scene, filter: JobEventFilter) -> JoinHandle<Vec<StreamedEvent>> {
    let ada = caller("ada@example.com", runvoy_model::role::Role::Admin);
    let follower = scene.stage.engine.follow_job_events(&ada, &scene.execution.id.to_string(), filter).await;
    let mut follower = follower.expect("it is there");
    tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = follower.next().await.expect("the store answers") {
            events.push(event);
        }
        events
    })
}

#[tokio::test(start_paused = true)]
async fn requests_that_overtake_each_other_are_read_in_order() {
    let order = [1, 5, 2, 4, 3, 9, 8, 7, 6];
    let scene = Scene::new().await;
    let mut readers = Vec::new();
    for begin in [0, 1, 4, 7] {
        readers.push((begin, live(&scene, from(begin)).await));
    }
    for sequence in order {
        publish(&scene, &[sequence]).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let joined = live(&scene, from(3)).await;
    scene.finish(0).await;
    readers.push((3, joined));
    for (begin, reader) in readers {
        let expected: Vec<i64> = (begin.max(1)..=9).collect();
        assert_eq!(sequences(&reader.await.expect("it reads")), expected, "live from {begin}");
        assert_eq!(sequences(&scene.all(from(begin)).await), expected, "stored from {begin}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_left_out_is_waited_for_a_moment_and_no_longer() {
    let scene = Scene::new().await;
    let ada = caller("ada@example.com", runvoy_model::role::Role::Admin);
    let follower = scene.stage.engine.follow_job_events(&ada, &scene.execution.id.to_string(), from(0)).await;
    let mut follower = follower.expect("it is there");
    publish(&scene, &[1, 4, 5, 9]).await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(follower.next().await.expect("the store answers"));
    }
    assert_eq!(sequences(&seen), [1, 4, 5, 9], "though the attempt goes on");
    publish(&scene, &[3]).await;
    let late = follower.next().await.expect("the store answers").expect("it comes all the same");
    assert_eq!(late.sequence(), 3);
    scene.finish(0).await;
    assert_eq!(sequences(&scene.all(from(0)).await), [1, 3, 4, 5, 9]);
}

#[tokio::test]
async fn what_comes_far_behind_is_read_in_its_place() {
    let scene = Scene::new().await;
    scene.publish((3..=200).map(numbered).collect()).await.expect("kept");
    // More than a reader holds back.
    for sequence in 201..=207 {
        scene.publish(vec![output(sequence, &vec![b'x'; 900_000])]).await.expect("kept");
    }
    scene.publish(vec![numbered(2), numbered(208)]).await.expect("kept");
    scene.publish(vec![numbered(1)]).await.expect("kept");
    scene.finish(0).await;
    assert_eq!(sequences(&scene.all(from(0)).await), (1..=208).collect::<Vec<_>>());
    assert_eq!(sequences(&scene.all(from(2)).await), (2..=208).collect::<Vec<_>>());
    assert_eq!(sequences(&scene.all(from(150)).await), (150..=208).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_comes_late_to_an_attempt_is_read_before_the_next_one() {
    let mut scene = Scene::of(RunRequest { retries: Some(1), ..command("job") }).await;
    publish(&scene, &[1, 3]).await;
    scene.lapse().await;
    scene.stage.clock.pass(600_000);
    let second = scene.stage.lease(&scene.worker, 30_000).await.expect("the second attempt");
    let holder = Holder::trusted(scene.worker.id);
    for sequence in [2, 1] {
        scene.stage.engine.publish_events(&holder, fence(&second), vec![numbered(sequence)]).await.expect("kept");
        publish(&scene, &[sequence + 3, sequence]).await;
    }
    scene.execution = second;
    scene.finish(0).await;
    let attempt = i64::try_from(SEQUENCES_PER_ATTEMPT).expect("small");
    let expected = [1, 2, 3, 4, 5, attempt + 1, attempt + 2];
    let events = scene.all(from(0)).await;
    assert_eq!(sequences(&events), expected);
    for (index, sequence) in expected.iter().enumerate() {
        assert_eq!(scene.all(from(*sequence)).await, events[index..], "from {sequence}");
    }
}
