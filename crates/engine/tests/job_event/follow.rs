//! Readers: from a sequence, from a time, of some kinds; what is there and what comes; and only those who may.

use std::sync::Arc;
use std::time::Duration;

use runvoy_engine::{EngineError, JobEventFilter, StreamedEvent};
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;

use crate::scene::{BEGAN, Scene, output, sequences, started};
use crate::stage::caller;

fn filters() -> Vec<(JobEventFilter, Vec<i64>)> {
    let all = JobEventFilter::default;
    vec![
        (all(), vec![0, 1, 2, 3, 4, 5]),
        (JobEventFilter { from_sequence: 3, ..all() }, vec![3, 4, 5]),
        (JobEventFilter { from: Some(UnixMs(BEGAN + 2)), ..all() }, vec![2, 3, 4, 5]),
        (JobEventFilter { kinds: vec![1], ..all() }, vec![0]),
        (JobEventFilter { kinds: vec![5, 2], from_sequence: 2, from: Some(UnixMs(BEGAN + 4)) }, vec![4, 5]),
        (JobEventFilter { from_sequence: 1 << 50, ..all() }, vec![]),
    ]
}

#[tokio::test]
async fn a_filter_holds_for_what_was() {
    let scene = Scene::new().await;
    scene.publish(vec![started(0, 1)]).await.expect("kept");
    scene.publish((1..6).map(|number| output(number, b"x\n")).collect()).await.expect("kept");
    scene.finish(0).await;
    for (filter, expected) in filters() {
        assert_eq!(sequences(&scene.all(filter.clone()).await), expected, "{filter:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_holds_for_what_comes() {
    let scene = Scene::new().await;
    let ada = caller("ada@example.com", Role::Admin);
    let mut readers = Vec::new();
    for (filter, expected) in filters() {
        let mut follower = scene.stage.engine.follow_job_events(&ada, &scene.execution.id.to_string(), filter).await.expect("it is there");
        let reader = async move {
            let mut events: Vec<StreamedEvent> = Vec::new();
            while let Some(event) = follower.next().await.expect("the store answers") {
                events.push(event);
            }
            events
        };
        readers.push((tokio::spawn(reader), expected));
    }
    for number in 0..6 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let event = if number == 0 { started(0, 1) } else { output(number, b"x\n") };
        scene.publish(vec![event]).await.expect("kept");
    }
    scene.finish(0).await;
    for (reader, expected) in readers {
        assert_eq!(sequences(&reader.await.expect("it reads")), expected);
    }
}

#[tokio::test]
async fn who_may_not_see_the_execution_finds_none() {
    let scene = Scene::new().await;
    let eve = caller("eve@example.com", Role::Developer);
    for id in [scene.execution.id, scene.execution.id.event_log()] {
        let refused = scene.stage.engine.follow_job_events(&eve, &id.to_string(), JobEventFilter::default()).await;
        assert!(matches!(refused, Err(EngineError::NotFound { .. })));
    }
}

#[tokio::test]
async fn another_server_reads_what_this_one_keeps() {
    let scene = Scene::new().await;
    let beside = scene.stage.beside(3, &[], |_| ());
    scene.publish(vec![output(1, b"x\n")]).await.expect("kept");
    scene.publish_to(&beside, vec![output(2, b"y\n")]).await.expect("kept");
    scene.publish(vec![output(2, b"y\n"), output(3, b"z\n")]).await.expect("kept");
    scene.finish(0).await;
    let events = crate::scene::all_of(&Arc::clone(&beside), &scene.execution, JobEventFilter::default()).await;
    assert_eq!(sequences(&events), [1, 2, 3]);
}
