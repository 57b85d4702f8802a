//! What a submit promises.

use runvoy_model::change::Made;
use runvoy_model::command::{Answer, Command, LeaseTo, Refusal, SubmitKey};
use runvoy_model::execution::LockClaim;
use runvoy_model::id::LeaseId;
use runvoy_model::status::Status;
use runvoy_ports::store::{EventQuery, ListQuery};

use crate::harness::Executions;
use crate::stage::{Stage, id_bytes, in_line, locked, refusal, submitted, worker_of};

/// What was answered is what is read back, also after a reopen: every field of the spec, exactly.
pub async fn a_submitted_execution_is_read_back_as_it_went_in(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let submit = stage.new_submit(|spec| {
        spec.command = "printf '%s' \"é\0\u{1f980}\"".into();
        spec.args = Some(vec![String::new(), "a b".into(), "'\"\\\n".into()]);
        spec.env = [("EMPTY".into(), String::new()), ("B".into(), "=x=\n".into())].into();
        spec.labels = [("team".into(), "infra".into())].into();
        spec.timeout_ms = Some(u64::from(u32::MAX) * 1_000);
        spec.priority = 5;
        spec.retries = 9;
        spec.terminal = true;
        in_line(spec);
    });
    let (id, spec) = (submit.id, submit.spec.clone());
    let Answer::Submitted { execution, .. } = stage.play(Command::Submit(submit)).await else { panic!("not submitted") };
    let stored = stage.get(id).await;
    assert_eq!((&stored.spec, stored.status, stored.attempt, stored.version), (&spec, Status::Pending, 0, 1));
    assert_eq!((&stored.created_by, &stored.owned_by, stored.submitted_at), (&execution.created_by, &execution.owned_by, stage.now));
    assert_eq!(stored.lock, LockClaim::Held { fence: 1 });
    stage.reopen().await;
    assert_eq!(stage.get(id).await, stored);
}

/// There is no such execution.
pub async fn an_unknown_execution_is_not_there(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = stage.new_submit(|_| ()).id;
    assert_eq!(stage.store().get(id).await.expect("a read"), None);
    assert_eq!(refusal(stage.kill(id).await), Refusal::NotFound);
    assert_eq!(refusal(stage.play(Command::ExpireWait(id)).await), Refusal::NotFound);
    assert_eq!(refusal(stage.play(Command::ConfirmKill(id, 0)).await), Refusal::NotFound);
}

/// Another submit with an id that exists is refused, and the first stays.
pub async fn an_id_is_taken_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let submit = stage.new_submit(|spec| spec.command = "first".into());
    let id = submitted(stage.play(Command::Submit(submit.clone())).await);
    let mut second = submit;
    second.spec.command = "second".into();
    assert_eq!(refusal(stage.play(Command::Submit(second)).await), Refusal::Exists(id));
    assert_eq!(stage.get(id).await.spec.command, "first");
}

/// The same key gives the same execution, also when that has ended, also after a reopen.
pub async fn the_same_key_gives_the_same_execution(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let first = submitted(stage.submit_keyed("ann@x", "k", 1).await);
    let Answer::Submitted { execution, repeated: true } = stage.submit_keyed("ann@x", "k", 1).await else { panic!("not repeated") };
    assert_eq!(execution.id, first);
    stage.kill(first).await;
    stage.reopen().await;
    let Answer::Submitted { execution, repeated: true } = stage.submit_keyed("ann@x", "k", 1).await else { panic!("not repeated") };
    assert_eq!((execution.id, execution.status), (first, Status::Stopped));
    assert_eq!(stage.list(ListQuery::default()).await, [first]);
}

/// The same key for another request is a conflict that names the execution.
pub async fn the_same_key_for_another_request_is_refused(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let first = submitted(stage.submit_keyed("ann@x", "k", 1).await);
    assert_eq!(refusal(stage.submit_keyed("ann@x", "k", 2).await), Refusal::KeyReused(Made::Execution(first)));
    stage.reopen().await;
    assert_eq!(refusal(stage.submit_keyed("ann@x", "k", 2).await), Refusal::KeyReused(Made::Execution(first)));
    assert_eq!(stage.list(ListQuery::default()).await, [first]);
}

/// A link that is asked for again with its key is the one that was made then, also after a reopen: nothing is written, and the time is kept.
pub async fn a_key_for_a_link_keeps_when_that_was_made(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let id = submitted(stage.submit_keyed("ann@x", "run", 1).await);
    let key = |fingerprint| Some(SubmitKey { user: "ann@x".into(), key: "link".into(), fingerprint: [fingerprint; 32] });
    let (made, until) = (Made::Link(id, stage.now), stage.now.plus_ms(60_000));
    assert!(matches!(stage.play(Command::NoteLink(id, until, key(2))).await, Answer::Changed(_)));
    let version = stage.get(id).await.version;
    stage.pass_ms(5_000);
    for _ in 0..2 {
        assert!(matches!(stage.play(Command::NoteLink(id, until, key(2))).await, Answer::Changed(_)));
        assert_eq!(refusal(stage.play(Command::NoteLink(id, until, key(3))).await), Refusal::KeyReused(made.clone()));
        assert_eq!(stage.store().made_by("ann@x", "link").await.expect("a read"), Some((made.clone(), [2; 32])));
        assert_eq!(stage.get(id).await.version, version);
        stage.reopen().await;
    }
}

/// What a key made can be looked up, by its user alone, also after a reopen, and looking does not use it up.
pub async fn what_a_key_made_can_be_looked_up(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    assert_eq!(stage.store().made_by("ann@x", "k").await.expect("a read"), None);
    let first = submitted(stage.submit_keyed("ann@x", "k", 1).await);
    stage.pass_ms(3 * 86_400_000);
    let later = submitted(stage.submit_keyed("ann@x", "later", 2).await);
    for _ in 0..2 {
        let made = async |key: &str| stage.store().made_by("ann@x", key).await.expect("a read");
        assert_eq!(made("k").await, Some((Made::Execution(first), [1; 32])));
        assert_eq!(made("later").await, Some((Made::Execution(later), [2; 32])));
        assert_eq!(stage.store().made_by("bob@x", "k").await.expect("a read"), None);
        stage.reopen().await;
    }
}

/// Keys of different users never meet, however they are spelled.
pub async fn keys_of_different_users_never_meet(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let pairs = [("ann@x", "k"), ("bob@x", "k"), ("ann@x", "K"), ("ann@xk", ""), ("ann@x", "k ")];
    for (user, key) in pairs {
        submitted(stage.submit_keyed(user, key, 1).await);
    }
    assert_eq!(stage.list(ListQuery::default()).await.len(), pairs.len());
}

/// A thousand submits with one key at the same time make one execution, and all are answered with it.
pub async fn a_thousand_parallel_submits_with_one_key_make_one_execution(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut sent = Vec::new();
    for _ in 0..1_000 {
        let mut submit = stage.new_submit(|_| ());
        submit.key = Some(SubmitKey { user: "ann@x".into(), key: "deploy".into(), fingerprint: [1; 32] });
        let (store, step) = (stage.store(), stage.step());
        sent.push(tokio::spawn(async move { store.submit(step, submit).await.map(|(execution, _)| execution.id) }));
    }
    let mut answers = std::collections::BTreeSet::new();
    for answer in sent {
        answers.insert(answer.await.expect("no panic").expect("an answer"));
    }
    assert_eq!(answers.len(), 1);
    stage.reopen().await;
    assert_eq!(stage.list(ListQuery::default()).await, answers.into_iter().collect::<Vec<_>>());
}

/// A refused submit leaves no execution, no event and no key behind.
pub async fn a_refused_submit_leaves_nothing(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let holder = stage.running(locked).await;
    let events = stage.events(EventQuery::default()).await;
    let mut submit = stage.new_submit(locked);
    submit.key = Some(SubmitKey { user: "ann@x".into(), key: "k".into(), fingerprint: [1; 32] });
    assert!(matches!(refusal(stage.play(Command::Submit(submit.clone())).await), Refusal::LockHeld(_)));
    assert_eq!(stage.store().get(submit.id).await.expect("a read"), None);
    assert_eq!(stage.events(EventQuery::default()).await, events);
    stage.end(holder, crate::stage::exit(0)).await;
    assert_eq!(submitted(stage.play(Command::Submit(submit.clone())).await), submit.id, "its key was not used up");
}

/// With a free slot, submit, lease and begin are one step.
pub async fn submit_lease_and_begin_can_be_one_step(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut submit = stage.new_submit(|_| ());
    let lease = LeaseId::from_bytes(id_bytes(stage.now, 1 << 40));
    submit.lease_to = Some(LeaseTo { lease, worker: worker_of(1), ttl_ms: 30_000 });
    let id = submitted(stage.play(Command::Submit(submit)).await);
    let stored = stage.get(id).await;
    assert_eq!((stored.status, stored.attempt, stored.started_at), (Status::Running, 1, Some(stage.now)));
    assert_eq!(stored.lease.as_ref().map(|lease| (lease.id, lease.begun)), Some((lease, true)));
    assert!(stage.lease(1).await.is_empty());
    assert_eq!(stage.store().open_leases().await.expect("leases").len(), 1);
}

/// Whoever waits for a lock is not leased, not even by the step that submits it.
pub async fn a_submit_that_waits_for_a_lock_takes_no_free_slot(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    stage.running(in_line).await;
    let mut submit = stage.new_submit(in_line);
    submit.lease_to = Some(LeaseTo { lease: LeaseId::from_bytes([1; 16]), worker: worker_of(1), ttl_ms: 30_000 });
    let id = submitted(stage.play(Command::Submit(submit)).await);
    let stored = stage.get(id).await;
    assert_eq!((stored.status, stored.lease.is_none()), (Status::Pending, true));
    assert!(matches!(stored.lock, LockClaim::Waiting { .. }));
}
