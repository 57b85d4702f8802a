//! What cannot be read is given up, by what its record is and by nothing else.

use std::time::Duration;

use runvoy_model::chain::ChainHead;
use runvoy_model::command::{Kill, Outcome};
use runvoy_model::event::EventType;
use runvoy_model::id::ExecutionId;
use runvoy_model::incident::{IncidentKind, Phase as IncidentPhase};
use runvoy_model::redrive::{Fate, Letter, Redrive};
use runvoy_model::spec::{Needs, Spec};
use runvoy_model::status::{EndCode, Status};
use runvoy_model::verify::Problem;
use runvoy_ports::queue::DeadQuery;
use runvoy_ports::record::{IncidentQuery, RecordStore};
use runvoy_ports::store::{ExecutionStore, ListQuery};

use super::stage::{ended, fence_of, fresh, large, name, servers, small, step};
use crate::emulator::Emulator;

#[tokio::test]
async fn an_execution_whose_spec_is_gone_is_given_up_once_by_two_servers() {
    let [one, other] = servers(Emulator::ministack()).await;
    let (lost, kept) = (one.submit(large()).await, one.submit(large()).await);
    one.lose_spec(lost).await;
    // Its message comes twice, and the other server has one of them in its hands.
    one.queues.wake(lost, &name("default"), 1, Duration::ZERO);
    one.queues.flush().await;
    other.listen().await;
    let leased: Vec<_> = one.lease().await.iter().map(|execution| execution.id).collect();
    assert_eq!(leased, [kept], "who stands behind it is not held up");
    assert_eq!(one.store.list(ListQuery { limit: 10, ..ListQuery::default() }).await.expect("a list").len(), 2);
    assert_eq!(one.store.next_ready(&[name("default")], &[Needs::Process]).await.expect("an answer"), None, "nobody is woken for it");
    let mut both = Vec::new();
    for server in [&one, &other] {
        let unreadable = loop {
            let unreadable = server.store.unreadable(10);
            if !unreadable.is_empty() {
                break unreadable;
            }
            assert!(server.lease().await.is_empty());
        };
        assert_eq!(unreadable[0].0, lost);
        assert!(unreadable[0].1.contains("is not at"), "{unreadable:?}");
        both.push(server.store.give_up(step(), lost, unreadable[0].1.clone()));
    }
    let ended = futures_util::future::join_all(both).await;
    let ended: Vec<_> = ended.into_iter().filter_map(|ended| ended.expect("an answer")).collect();
    assert_eq!(ended.len(), 1, "one of them was first");
    let found = other.get(lost).await;
    let reason = found.end_reason.clone().expect("a reason");
    assert_eq!((found.status, reason.code, found.exit_code), (Status::Failed, EndCode::StartFailed, Some(125)));
    assert!(reason.message.contains("its command cannot be read"), "{reason:?}");
    assert_eq!(one.kinds(lost).await.iter().filter(|kind| **kind == EventType::TaskFailed).count(), 1);
    let query = IncidentQuery { phase: IncidentPhase::Begun, kind: Some(IncidentKind::Dead), limit: 10 };
    assert_eq!(one.store.incidents(query).await.expect("incidents").len(), 1);
    for server in [&one, &other] {
        server.listen().await;
    }
    assert_eq!(one.messages("-dlq").await, 1);
    one.assert_agrees().await;
    // A message that comes late changes nothing.
    other.send(&format!(r#"{{"job_id":"{lost}","queue":"default","attempt":1}}"#)).await;
    other.listen().await;
    assert_eq!((other.get(lost).await, other.messages("-dlq").await), (found, 1));
}

#[tokio::test]
async fn whoever_can_only_send_messages_fails_nobody() {
    let [server] = servers(Emulator::ministack()).await;
    let healthy = server.submit(small()).await;
    server.queues.flush().await;
    for attempt in 1..=20 {
        server.send(&format!(r#"{{"job_id":"{healthy}","queue":"default","attempt":{attempt}}}"#)).await;
    }
    server.send(&format!(r#"{{"job_id":"{healthy}"}}"#)).await;
    server.listen().await;
    assert!(server.store.unreadable(10).is_empty());
    assert_eq!(server.store.give_up(step(), healthy, "says somebody".into()).await.expect("an answer"), None);
    assert_eq!(server.get(healthy).await.status, Status::Pending);
    assert_eq!(server.messages("-dlq").await, 1, "what names nobody");
    assert_eq!(server.lease().await.len(), 1);
}

#[tokio::test]
async fn a_damaged_record_is_given_up_by_what_its_events_say_and_its_lock_goes_on() {
    for emulator in [Emulator::ministack(), Emulator::moto()] {
        for attribute in ["state", "spec"] {
            let [server] = servers(emulator).await;
            let waits = |spec: Spec| Spec { lock: Some(name("prod")), lock_wait_ms: Some(60_000), retries: 1, ..spec };
            let lost = server.submit(waits(small())).await;
            let next = server.submit(waits(small())).await;
            // One attempt has failed of something that passes.
            let leased = server.lease().await;
            server.store.end_attempt(step(), ended(fence_of(&leased), Outcome::Lost { message: "gone".into() })).await.expect("an answer");
            let before = server.get(lost).await;
            assert_eq!((before.status, before.attempt), (Status::Pending, 1));
            server.damage(lost, attribute).await;
            let given_up = server.store.give_up(step(), lost, "torn".into()).await.expect("an answer").expect("given up");
            assert_eq!((given_up.status, given_up.attempt, given_up.started_at), (Status::Failed, 1, before.started_at));
            assert_ne!(given_up.chain, ChainHead::default());
            assert_eq!(server.lease().await.iter().map(|execution| execution.id).collect::<Vec<_>>(), [next], "{attribute}");
            server.assert_agrees().await;
            let kept = if attribute == "state" { "damaged_state" } else { "spec" };
            assert_eq!(server.attribute(lost, kept).await.as_deref(), Some("{torn"), "for whoever looks");
        }
    }
}

#[tokio::test]
async fn what_is_left_of_an_execution_can_be_killed_and_what_runs_can_end() {
    let [server] = servers(Emulator::ministack()).await;
    let runs = server.submit(large()).await;
    let leased = server.lease().await;
    let waits = server.submit(large()).await;
    for id in [runs, waits] {
        server.lose_spec(id).await;
    }
    let ended = server
        .store
        .end_attempt(step(), ended(fence_of(&leased), Outcome::Exited { code: 0, after_kill: false }))
        .await
        .expect("an answer");
    assert_eq!(ended.status, Status::Succeeded);
    let killed = server.store.kill(step(), Kill { execution: waits, force: false }).await.expect("an answer");
    assert_eq!(killed.status, Status::Stopped);
    assert!(server.lease_in_vain().await.is_empty(), "neither waits any more");
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_dead_letter_whose_spec_is_gone_is_dropped_and_never_run() {
    let [server] = servers(Emulator::ministack()).await;
    let lost = server.submit(large()).await;
    server.lose_spec(lost).await;
    server.store.give_up(step(), lost, "gone".into()).await.expect("an answer").expect("given up");
    let query = DeadQuery { queue: name("default"), owner: None, oldest_first: false, after: None, until: None, limit: 10 };
    assert_eq!(server.store.dead(query.clone()).await.expect("dead letters").len(), 1);
    let letter = Letter { execution: lost, again: ExecutionId::from_bytes(fresh()) };
    let redrive = Redrive { letters: vec![letter], settled: Vec::new(), key: None };
    let (letters, _) = server.store.redrive(step(), redrive).await.expect("an answer");
    assert!(matches!(&letters[0].fate, Fate::Dropped(why) if why.contains("submit it again")), "{letters:?}");
    assert!(server.store.dead(query).await.expect("dead letters").is_empty());
    server.assert_agrees().await;
}

#[tokio::test]
async fn a_check_of_the_trail_names_a_damaged_record_and_looks_at_the_others() {
    let [server] = servers(Emulator::ministack()).await;
    let torn = server.submit(small()).await;
    server.submit(small()).await;
    server.damage(torn, "state").await;
    let verdict = server.trail().verify().await.expect("a verdict");
    assert!(verdict.checked > 0, "{verdict:?}");
    let bad = verdict.first_bad.expect("it is noticed");
    assert_eq!((bad.problem, bad.entity), (Problem::Unreadable, format!("TASK:{torn}")));
}
