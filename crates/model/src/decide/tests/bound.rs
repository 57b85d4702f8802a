//! How large events get: whatever a job, a command or a call brings, an event stays small enough to travel, and says what it left out.

use serde_json::json;

use super::job::{BATCH, advance, finish, job, task};
use super::large::open_large;
use super::world::{World, ended, exit};
use crate::bound::{CUT, MOST_DEPTH, MOST_EVENT_BYTES, MOST_EVENT_DEPTH, depth};
use crate::command::{Answer, Command, ErrorMark, Extend, Outcome};
use crate::event::{Entity, Event, EventType};
use crate::id::JobId;
use crate::job::{MOST_INLINE_BYTES, Payload};
use crate::retry::Category;

fn told(world: &World, id: JobId, kind: EventType) -> &Event {
    world.events.iter().find(|event| event.entity == Entity::job(id) && event.kind == kind).expect("it was told")
}

#[test]
fn where_every_task_stands_is_told_while_it_fits_and_counted_beyond_that() {
    for (tasks, fits) in [(1_000, true), (2_000, false)] {
        let mut world = World::new();
        let names: Vec<String> = (0..tasks).map(|number| format!("{number:0>120}")).collect();
        let last = names.len() - 1;
        let begins = job(&mut world, tasks);
        let parents = |at: usize| if at == 0 || at == last { vec![] } else { vec![names[0].as_str()] };
        let nodes: Vec<_> = names.iter().enumerate().map(|(at, name)| task(begins.id, name, &parents(at), BATCH)).collect();
        let id = open_large(&mut world, &nodes, begins);
        advance(&mut world, id);
        finish(&mut world, id, &names[0], exit(64));
        let event = told(&world, id, EventType::JobFailureDetected);
        assert!(event.canonical().len() <= MOST_EVENT_BYTES);
        let properties = &event.properties;
        assert_eq!(properties["failedTaskId"], names[0]);
        if fits {
            let statuses = properties["taskStatuses"].as_object().expect("all of them");
            assert_eq!(statuses.len(), tasks);
            assert_eq!(
                (&statuses[&names[0]], &statuses[&names[1]], &statuses[&names[last]]),
                (&json!("failed"), &json!(null), &json!("processing"))
            );
            assert!(properties.get("taskCounts").is_none());
        } else {
            assert_eq!(properties["taskCounts"], json!({"completed": 0, "failed": 1, "processing": 1, "waiting": tasks - 2}));
            assert!(properties.get("taskStatuses").is_none());
            assert!(properties[CUT]["taskStatuses"]["bytes"].as_u64() > Some(MOST_INLINE_BYTES as u64));
        }
    }
}

#[test]
fn a_long_message_is_cut_and_says_so() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.end(fence, Outcome::StartFailed { message: "x".repeat(1 << 20), exit_code: None });
    let fence = world.running(|_| ());
    let said = ErrorMark { category: Category::Auth, message: "y".repeat(1 << 20), retry_after_ms: None };
    let mut end = ended(fence, exit(3));
    end.said = Some(said);
    assert!(matches!(world.play(Command::EndAttempt(end)), Answer::Ended(_)));
    let failed: Vec<_> = world.events.iter().filter(|event| event.kind == EventType::TaskFailed).collect();
    assert_eq!(failed.len(), 2);
    for event in failed {
        let error = event.properties["error"].as_str().expect("a message");
        assert!(error.len() < 5_000 && error.ends_with("bytes more)"), "{} bytes", error.len());
    }
    assert!(world.get(fence.execution).end_reason.as_ref().is_some_and(|reason| reason.message.len() < 5_000));
}

#[test]
fn an_output_as_large_as_it_may_be_is_whole_and_its_usage_is_not_repeated() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    let output = json!({"usage": "z".repeat(MOST_INLINE_BYTES - 20)});
    let mut end = ended(fence, exit(0));
    end.output = Some(Payload::Inline(output.clone()));
    world.play(Command::EndAttempt(end));
    let event = world.events.iter().find(|event| event.kind == EventType::TaskCompleted).expect("the end");
    assert_eq!((&event.properties["output"], event.properties.get("usage"), event.properties.get(CUT)), (&output, None, None));
    assert!(event.canonical().len() <= MOST_EVENT_BYTES);
}

#[test]
fn what_is_nested_too_deep_to_be_read_again_is_left_out_and_told() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let mut world = World::new();
    for (levels, kept) in [(MOST_DEPTH, true), (MOST_DEPTH + 1, false), (127, false)] {
        let fence = world.running(|_| ());
        world.now = world.now.plus_ms(20_000);
        let extend = Extend {
            fence,
            ttl_ms: 600_000,
            process_id: None,
            rss_bytes: None,
            last_output_at: None,
            activity: Some(nested(levels)),
            preparing: None,
        };
        world.play(Command::Extend(extend));
        let mut end = ended(fence, exit(0));
        (end.output, end.usage) = (Some(Payload::Inline(nested(levels))), Some(nested(levels)));
        world.play(Command::EndAttempt(end));
        let of = |kind| world.events.iter().rev().find(|event| event.kind == kind).expect("it was told");
        let (beat, end) = (of(EventType::TaskHeartbeat), of(EventType::TaskCompleted));
        assert_eq!(beat.properties.get("lastActivity").is_some(), kept, "{levels}");
        assert_eq!(end.properties.get("output").is_some(), kept, "{levels}");
        let said = "the task has no output: nested deeper than 64 levels";
        assert_eq!(end.properties.get("remark").and_then(|remark| remark.as_str()), (!kept).then_some(said));
        assert!([beat, end].iter().all(|event| depth(&event.properties) <= MOST_EVENT_DEPTH));
    }
}

#[test]
fn whoever_lost_a_lease_and_goes_on_fills_no_history() {
    let mut world = World::new();
    let fence = world.running(|_| ());
    world.reap(fence);
    let tell = |world: &mut World, times: usize| {
        for _ in 0..times {
            assert!(matches!(world.extend(fence), Answer::Refused(_)));
        }
        world.events_of(fence.execution).len()
    };
    let kept = tell(&mut world, 200);
    assert!((50..150).contains(&kept), "{kept}");
    assert_eq!(world.events_of(fence.execution).last().map(|event| event.kind), Some(EventType::TaskHeartbeat), "some are kept");
    world.now = world.now.plus_ms(3 * 60_000);
    assert_eq!(tell(&mut world, 200), kept + 21, "as many as extends of three minutes would have changed");
}
