//! What a lease may take of a queue: pauses, limits and whose they are, labels of workers, and the order of the line.

use runvoy_model::change::Change;
use runvoy_model::command::{Answer, Command, Fence, LeaseTo, Submit, Worker};
use runvoy_model::execution::AGE_PER_PRIORITY_MS;
use runvoy_model::id::{ExecutionId, LeaseId};
use runvoy_model::queue::QueueUpdate;
use runvoy_model::status::Status;
use runvoy_ports::store::ListQuery;

use crate::harness::Executions;
use crate::stage::{PASSING_FAILURE, Stage, answered, exit, leased, name, worker_of};

fn terms(queue: &str) -> QueueUpdate {
    QueueUpdate { name: name(queue), paused: None, reason: None, concurrency: None, per_user: None }
}

async fn put(stage: &mut Stage<'_>, update: QueueUpdate) {
    let answer = stage.play(Command::Change(Change::PutQueue(update), None)).await;
    assert!(matches!(answer, Answer::Record { .. }), "not taken: {answer:?}");
}

async fn limit(stage: &mut Stage<'_>, concurrency: Option<u32>, per_user: Option<u32>) {
    put(stage, QueueUpdate { concurrency: Some(concurrency), per_user: Some(per_user), ..terms("default") }).await;
}

/// Submits for somebody, to a slot that is free.
async fn straight(stage: &mut Stage<'_>, user: &str) -> ExecutionId {
    let submit = stage.new_submit(|_| ());
    let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes(stage.fresh()), worker: worker_of(1), ttl_ms: 30_000 });
    let submit = Submit { created_by: user.into(), lease_to, ..submit };
    let id = submit.id;
    stage.play(Command::Submit(submit)).await;
    id
}

async fn submit_for(stage: &mut Stage<'_>, user: &str) -> ExecutionId {
    let submit = Submit { created_by: user.into(), ..stage.new_submit(|_| ()) };
    let id = submit.id;
    stage.play(Command::Submit(submit)).await;
    id
}

async fn lease_by(stage: &mut Stage<'_>, worker: Worker, queues: &[&str], want: usize) -> Vec<ExecutionId> {
    let mut request = stage.lease_request(1, want);
    (request.worker, request.queues) = (worker, queues.iter().map(|queue| name(queue)).collect());
    leased(stage.play(Command::Lease(request)).await).into_iter().map(|fence| fence.execution).collect()
}

fn with_label(key: &str, value: &str) -> Worker {
    let mut worker = worker_of(1);
    worker.labels.insert(key.into(), value.into());
    worker
}

/// A paused queue hands out nothing, also not to a slot that is free; what runs goes on; and other queues do.
pub async fn a_paused_queue_hands_out_nothing(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let running = stage.running(|_| ()).await;
    let waiting = stage.submit(|_| ()).await;
    put(&mut stage, QueueUpdate { paused: Some(true), reason: Some("é: a new driver".into()), ..terms("default") }).await;
    stage.reopen().await;
    let other = stage.submit(|spec| spec.queue = name("other")).await;
    assert_eq!(lease_by(&mut stage, worker_of(1), &["default", "other"], 3).await, [other]);
    let new = straight(&mut stage, "ann@x").await;
    assert_eq!(stage.get(new).await.status, Status::Pending);
    stage.extend(running).await;
    stage.end(running, exit(0)).await;
    assert_eq!(stage.get(running.execution).await.status, Status::Succeeded);
    put(&mut stage, QueueUpdate { paused: Some(false), ..terms("default") }).await;
    assert_eq!(lease_by(&mut stage, worker_of(1), &["default"], 3).await, [waiting, new]);
}

/// No more of a limited queue than its limit is with workers, and who comes new does not go before those who wait.
pub async fn a_limit_holds(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    limit(&mut stage, Some(2), None).await;
    let first = straight(&mut stage, "ann@x").await;
    assert_eq!(stage.get(first).await.status, Status::Running);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(stage.submit(|_| ()).await);
    }
    let fences = stage.lease(5).await;
    assert_eq!(fences.iter().map(|fence| fence.execution).collect::<Vec<_>>(), waiting[..1]);
    stage.reopen().await;
    assert!(stage.lease(5).await.is_empty());
    stage.play(Command::Begin(fences[0])).await;
    stage.end(fences[0], exit(0)).await;
    let new = straight(&mut stage, "ann@x").await;
    assert_eq!(stage.get(new).await.status, Status::Pending, "somebody waits");
    assert_eq!(lease_by(&mut stage, worker_of(2), &["default"], 5).await, waiting[1..2]);
    put(&mut stage, QueueUpdate { concurrency: Some(Some(4)), ..terms("default") }).await;
    assert_eq!(stage.lease(5).await.len(), 2, "two more places");
    stage.play(Command::Change(Change::RemoveQueue(name("default")), None)).await;
    assert_eq!(stage.get(new).await.status, Status::Starting);
}

/// Of many leases and submits at once, as many are given something as there are places.
pub async fn a_limit_holds_against_many_at_once(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    limit(&mut stage, Some(3), None).await;
    for _ in 0..8 {
        stage.submit(|_| ()).await;
    }
    for round in 0..2 {
        let mut sent = Vec::new();
        for number in 0..6 {
            let (store, step) = (stage.store(), stage.step());
            let command = if number % 3 == 2 {
                let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes(stage.fresh()), worker: worker_of(3), ttl_ms: 30_000 });
                Command::Submit(Submit { lease_to, ..stage.new_submit(|_| ()) })
            } else {
                Command::Lease(stage.lease_request(1 + number % 2, 2))
            };
            sent.push(tokio::spawn(async move { store.apply(step, command).await }));
        }
        for answer in sent {
            answered(answer.await.expect("no panic"));
        }
        let open = stage.store().open_leases().await.expect("leases");
        assert_eq!(open.len(), 3, "round {round}");
        assert!(open.iter().all(|open| open.lease.permit));
        for open in open {
            let fence = Fence { execution: open.execution, attempt: open.lease.attempt, lease: open.lease.id };
            stage.play(Command::Begin(fence)).await;
            stage.end(fence, exit(0)).await;
        }
    }
}

/// A user has no more than their share, and whoever stands behind what they must wait with does not wait with it.
pub async fn a_user_has_no_more_than_their_share(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    limit(&mut stage, Some(5), Some(2)).await;
    let mut ann = Vec::new();
    for _ in 0..20 {
        ann.push(submit_for(&mut stage, "ann@x").await);
    }
    let bob = submit_for(&mut stage, "bob@x").await;
    assert_eq!(lease_by(&mut stage, worker_of(1), &["default"], 1).await, ann[..1]);
    assert_eq!(lease_by(&mut stage, worker_of(1), &["default"], 4).await, [ann[1], bob]);
    assert!(stage.lease(4).await.is_empty());
    let new = straight(&mut stage, "ann@x").await;
    assert_eq!(stage.get(new).await.status, Status::Pending);
    let new = straight(&mut stage, "bob@x").await;
    assert_eq!(stage.get(new).await.status, Status::Running, "whoever waits may not go now");
    stage.kill(ann[0]).await;
    assert_eq!(lease_by(&mut stage, worker_of(2), &["default"], 4).await, ann[2..3]);
}

/// However an attempt ends, its place is free in the same step.
pub async fn a_place_comes_back_however_an_attempt_ends(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    limit(&mut stage, Some(1), None).await;
    for way in 0..8 {
        stage.pass_ms(600_000);
        let id = stage.submit(|spec| (spec.retries, spec.lock) = (1, (way == 7).then(|| name("db")))).await;
        let fence = stage.lease_one().await;
        assert_eq!(fence.execution, id);
        assert!(stage.lease(1).await.is_empty());
        if way < 4 {
            stage.play(Command::Begin(fence)).await;
        }
        match way {
            0 => drop(stage.end(fence, exit(0)).await),
            1 => drop(stage.end(fence, exit(PASSING_FAILURE)).await),
            2 | 4 => drop(stage.reap(fence).await),
            3 => {
                stage.kill(id).await;
                stage.play(Command::ConfirmKill(id, 0)).await;
            }
            5 => drop(stage.play(Command::GiveBack(fence)).await),
            6 => drop(stage.kill(id).await),
            _ => drop(stage.play(Command::ReleaseLock(name("db"))).await),
        }
        // Whatever goes on gives its place to nobody: it is ended here.
        stage.kill(id).await;
        let next = stage.submit(|_| ()).await;
        let fences = stage.lease(1).await;
        assert_eq!(fences.first().map(|fence| fence.execution), Some(next), "way {way}");
        stage.kill(next).await;
    }
}

/// A worker takes only what its labels allow.
pub async fn a_worker_takes_what_its_labels_allow(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let label = |stage: &mut Stage<'_>, value: &str| stage.new_submit(|spec| drop(spec.worker_labels.insert("gpu".into(), value.into())));
    let mut ids = Vec::new();
    for value in ["a100", "t4"] {
        let submit = label(&mut stage, value);
        ids.push(submit.id);
        stage.play(Command::Submit(submit)).await;
    }
    let plain = stage.submit(|_| ()).await;
    stage.reopen().await;
    assert_eq!(lease_by(&mut stage, with_label("gpu", "t4"), &["default"], 1).await, ids[1..]);
    assert_eq!(lease_by(&mut stage, worker_of(1), &["default"], 5).await, [plain]);
    assert!(lease_by(&mut stage, with_label("zone", "a100"), &["default"], 5).await.is_empty());
    let lease_to = Some(LeaseTo { lease: LeaseId::from_bytes(stage.fresh()), worker: worker_of(1), ttl_ms: 30_000 });
    let submit = Submit { lease_to, ..label(&mut stage, "a100") };
    let straight = submit.id;
    stage.play(Command::Submit(submit)).await;
    assert_eq!(stage.get(straight).await.status, Status::Pending);
    assert_eq!(lease_by(&mut stage, with_label("gpu", "a100"), &["default"], 5).await, [ids[0], straight]);
}

/// What cannot be taken keeps nobody waiting who stands behind it, however many they are.
pub async fn what_cannot_be_taken_starves_nobody(harness: Executions<'_>) {
    nobody_starves_behind(200, harness).await;
}

/// The same with so many in front, where a store takes them quickly enough.
pub async fn nobody_starves_behind(in_front: usize, harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    limit(&mut stage, None, Some(1)).await;
    let held = straight(&mut stage, "bob@x").await;
    assert_eq!(stage.get(held).await.status, Status::Running);
    let mut sent = Vec::new();
    for number in 0..in_front {
        let mut submit = stage.new_submit(|_| ());
        if number % 2 == 0 {
            submit.created_by = "bob@x".into();
        } else {
            submit.spec.worker_labels.insert("gpu".into(), "a100".into());
        }
        let (store, step) = (stage.store(), stage.step());
        sent.push(tokio::spawn(async move { store.apply(step, Command::Submit(submit)).await }));
        if sent.len() >= 50 {
            for answer in sent.drain(..) {
                answered(answer.await.expect("no panic"));
            }
        }
    }
    stage.pass_ms(1);
    let last = stage.submit(|_| ()).await;
    assert_eq!(lease_by(&mut stage, with_label("gpu", "t4"), &["default"], 1).await, [last]);
}

/// A higher priority goes first, and ten minutes of waiting make up for one.
pub async fn age_makes_up_for_priority(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let low = stage.submit(|spec| spec.priority = 5).await;
    let mut order = vec![stage.submit(|spec| spec.priority = 1).await, stage.submit(|spec| spec.priority = 4).await];
    stage.pass_ms(4 * AGE_PER_PRIORITY_MS - 1);
    order.push(stage.submit(|spec| spec.priority = 1).await);
    order.push(low);
    stage.pass_ms(2);
    order.push(stage.submit(|spec| spec.priority = 1).await);
    for id in order {
        assert_eq!(stage.lease_one().await.execution, id);
    }
}

/// A list of one queue, alone and with other filters.
pub async fn executions_are_listed_by_queue(harness: Executions<'_>) {
    let mut stage = Stage::new(harness);
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(stage.submit(|spec| spec.queue = name(if number % 2 == 0 { "gpu" } else { "default" })).await);
    }
    stage.kill(ids[2]).await;
    let query = || ListQuery { queue: Some(name("gpu")), ..ListQuery::default() };
    assert_eq!(stage.list(query()).await, [ids[4], ids[2], ids[0]]);
    assert_eq!(stage.list(ListQuery { limit: 2, ..query() }).await, [ids[4], ids[2]]);
    assert_eq!(stage.list(ListQuery { after: Some(ids[4]), limit: 1, ..query() }).await, [ids[2]]);
    assert_eq!(stage.list(ListQuery { statuses: vec![Status::Pending], ..query() }).await, [ids[4], ids[0]]);
    assert_eq!(stage.list(ListQuery { statuses: vec![Status::Stopped, Status::Failed], ..query() }).await, [ids[2]]);
    assert_eq!(stage.list(ListQuery { created_by: Some("ann@x".into()), ..query() }).await.len(), 3);
    assert_eq!(stage.list(ListQuery { created_by: Some("bob@x".into()), ..query() }).await, []);
    assert_eq!(stage.list(ListQuery { queue: Some(name("none")), ..ListQuery::default() }).await, []);
}
