//! Named examples of how accounts of workers change, and of what a worker's key may do.

use super::cast::{founded, hash, key, prefix, with_key};
use super::refusal;
use super::world::{World, name, spec};
use crate::change::{Change, Denied, NewWorker};
use crate::command::{Answer, Command, LeaseRequest, Refusal, Submit, Worker};
use crate::credential::PublicKey;
use crate::id::{ExecutionId, LeaseId, WorkerAccountId, WorkerId};
use crate::record::{Body, Kind, hash_name};
use crate::role::Role;
use crate::spec::Needs;
use crate::step::{Actor, Authority, Step};
use crate::worker::WorkerKey;

fn secret(number: u8) -> WorkerKey {
    WorkerKey::Secret { hash: hash(number), prefix: prefix(number) }
}

fn create(text: &str, key: WorkerKey) -> Change {
    let queues = vec![name("gpu"), name("default"), name("gpu")];
    Change::CreateWorker(Box::new(NewWorker {
        name: name(text),
        id: WorkerAccountId::from_bytes([9; 16]),
        role: Role::Worker,
        may_submit: false,
        queues,
        key,
        description: None,
    }))
}

/// An account of whoever may more than a worker.
fn register(text: &str, role: Role, key: WorkerKey) -> Change {
    Change::CreateWorker(Box::new(NewWorker {
        name: name(text),
        id: WorkerAccountId::from_bytes([9; 16]),
        role,
        may_submit: false,
        queues: Vec::new(),
        key,
        description: None,
    }))
}

fn refused(world: &mut World, change: Change) -> Refusal {
    let step = world.step();
    refusal(world.apply(&step, &Command::Change(change, None)))
}

#[test]
fn a_drained_worker_stays_drained_by_who_asked_first_until_it_is_resumed() {
    let mut world = founded();
    let change = |world: &mut World, change: Change| {
        let step = world.step();
        let events = world.events.len();
        match world.apply(&step, &Command::Change(change, None)) {
            Answer::Record { record, .. } => (record.drain().cloned(), world.events.len() - events),
            other => panic!("no record: {other:?}"),
        }
    };
    let (first, told) = change(&mut world, Change::DrainWorker("host".into()));
    assert_eq!((first.as_ref().map(|drain| drain.at), told), (Some(world.now), 1));
    world.now = world.now.plus_ms(1_000);
    assert_eq!(change(&mut world, Change::DrainWorker("host".into())), (first, 0), "a repeat changes nothing");
    assert_eq!(change(&mut world, Change::ResumeWorker("host".into())), (None, 1));
    assert_eq!(change(&mut world, Change::ResumeWorker("host".into())), (None, 0));
}

fn step_of(world: &mut World, number: u8) -> Step {
    step_as(world, number, Role::Worker)
}

fn step_as(world: &mut World, number: u8, role: Role) -> Step {
    let authority = Authority { email: "worker:one".into(), key_hash: Some(hash(number)), role, may_submit: false };
    Step { actor: Actor::Worker(WorkerId::from_bytes([3; 16])), authority: Some(authority), ..world.step() }
}

fn lease(world: &mut World) -> Command {
    Command::Lease(LeaseRequest {
        worker: Worker {
            id: WorkerId::from_bytes([3; 16]),
            host: "a".into(),
            runner: "process".into(),
            in_process: false,
            serves: vec![Needs::Process],
            labels: Default::default(),
        },
        queues: vec![name("default")],
        leases: vec![LeaseId::from_bytes(world.fresh())],
        ttl_ms: 30_000,
        begin: false,
        lost_after_ms: None,
    })
}

#[test]
fn an_account_is_made_with_its_key_and_its_queues_in_order() {
    let mut world = founded();
    let record = world.changed(create("one", secret(20)));
    let account = record.worker().expect("an account");
    assert_eq!(account.queues, [name("default"), name("gpu")]);
    assert!(account.has_key(&hash(20)));
    let owner = world.live(Kind::Key, &hash_name(&hash(20))).and_then(|record| record.body.clone());
    assert_eq!(owner, Some(Body::Key("worker:one".into())));
    let event = &world.events_about(Kind::Worker, "one")[0];
    assert_eq!(event.properties["change"]["key"]["prefix"], prefix(20).as_str());
    assert_eq!(refused(&mut world, create("one", secret(21))), Refusal::Taken(Kind::Worker, "one".into()));
}

#[test]
fn a_key_is_one_owners_and_stays_so() {
    let mut world = founded();
    world.changed(create("one", secret(20)));
    assert_eq!(refused(&mut world, create("two", secret(20))), Refusal::Taken(Kind::Key, prefix(20)));
    assert_eq!(refused(&mut world, create("two", secret(1))), Refusal::Taken(Kind::Key, prefix(1)), "that of a user");
    assert_eq!(refused(&mut world, with_key("eve@x", Role::Viewer, key(20))), Refusal::Taken(Kind::Key, prefix(20)));
    world.changed(Change::RevokeWorker(name("one")));
    assert_eq!(refused(&mut world, create("two", secret(20))), Refusal::Taken(Kind::Key, prefix(20)), "also after it ended");
}

#[test]
fn another_key_ends_the_one_before() {
    let mut world = founded();
    world.changed(create("one", secret(20)));
    world.now = world.now.plus_ms(5);
    let spki = PublicKey::new(&sample_spki()).expect("a key");
    let record = world.changed(Change::RotateWorker(name("one"), Box::new(WorkerKey::Public(spki.clone()))));
    let account = record.worker().expect("an account");
    assert!(account.has_key(spki.fingerprint()) && !account.has_key(&hash(20)));
    assert_eq!(account.keyed_at, world.now);
    let event = &world.events_about(Kind::Worker, "one")[1];
    assert_eq!(event.properties["change"]["insteadOf"], prefix(20).as_str());
    assert_eq!(refused(&mut world, Change::RotateWorker(name("two"), Box::new(secret(22)))), Refusal::Missing(Kind::Worker, "two".into()));
    let again = Change::RotateWorker(name("one"), Box::new(WorkerKey::Public(spki)));
    assert!(matches!(refused(&mut world, again), Refusal::Taken(Kind::Key, _)));
}

#[test]
fn a_revoked_name_can_be_used_again_with_another_key() {
    let mut world = founded();
    world.changed(create("one", secret(20)));
    world.changed(Change::RevokeWorker(name("one")));
    assert_eq!(refused(&mut world, Change::RevokeWorker(name("one"))), Refusal::Missing(Kind::Worker, "one".into()));
    assert_eq!(refused(&mut world, Change::RotateWorker(name("one"), Box::new(secret(21)))), Refusal::Missing(Kind::Worker, "one".into()));
    let record = world.changed(create("one", secret(22)));
    let account = record.worker().expect("an account");
    assert!(account.has_key(&hash(22)) && !account.has_key(&hash(20)));
    assert_eq!(world.events_about(Kind::Worker, "one").len(), 3, "one chain");
}

#[test]
fn a_worker_leases_while_its_key_works_and_does_nothing_else() {
    let mut world = founded();
    world.changed(create("one", secret(20)));
    let (step, ask) = (step_of(&mut world, 20), lease(&mut world));
    assert!(matches!(world.apply(&step, &ask), Answer::Leased(_)));
    let submit =
        Submit { id: ExecutionId::from_bytes(world.fresh()), spec: spec(), created_by: "worker:one".into(), key: None, lease_to: None };
    for command in [Command::Submit(submit), Command::Change(create("two", secret(30)), None), Command::ReleaseLock(name("prod"))] {
        let step = step_of(&mut world, 20);
        assert_eq!(refusal(world.apply(&step, &command)), Refusal::NotAllowed(Role::Worker), "{command:?}");
    }
    let other = step_of(&mut world, 21);
    let ask = lease(&mut world);
    assert_eq!(refusal(world.apply(&other, &ask)), Refusal::Revoked, "a key it never had");
    world.changed(Change::RevokeWorker(name("one")));
    let (step, ask) = (step_of(&mut world, 20), lease(&mut world));
    assert_eq!(refusal(world.apply(&step, &ask)), Refusal::Revoked);
}

#[test]
fn an_account_does_what_its_stored_role_may_and_nothing_else() {
    let mut world = founded();
    world.changed(register("one", Role::Developer, secret(20)));
    assert_eq!(world.events_about(Kind::Worker, "one")[0].properties["change"]["role"], "developer");
    let submit =
        Submit { id: ExecutionId::from_bytes(world.fresh()), spec: spec(), created_by: "worker:one".into(), key: None, lease_to: None };
    let submit = Command::Submit(submit);
    let claimed = step_as(&mut world, 20, Role::Operator);
    assert_eq!(refusal(world.apply(&claimed, &submit)), Refusal::RoleChanged(Role::Developer), "never what it came in with");
    let step = step_as(&mut world, 20, Role::Developer);
    assert!(matches!(world.apply(&step, &submit), Answer::Submitted { .. }));
    let (step, ask) = (step_as(&mut world, 20, Role::Developer), lease(&mut world));
    assert_eq!(refusal(world.apply(&step, &ask)), Refusal::NotAllowed(Role::Developer));
}

#[test]
fn a_worker_that_may_submit_does_so_while_its_key_works_and_the_right_is_the_account_s() {
    let mut world = founded();
    let Change::CreateWorker(new) = create("one", secret(20)) else { panic!("an account") };
    world.changed(Change::CreateWorker(Box::new(NewWorker { may_submit: true, ..*new })));
    assert_eq!(world.events_about(Kind::Worker, "one")[0].properties["change"]["maySubmit"], true);
    let step_with = |world: &mut World, may_submit| {
        let step = step_of(world, 20);
        Step { authority: step.authority.clone().map(|authority| Authority { may_submit, ..authority }), ..step }
    };
    let submit = |world: &mut World| {
        let id = ExecutionId::from_bytes(world.fresh());
        Command::Submit(Submit { id, spec: spec(), created_by: "worker:one".into(), key: None, lease_to: None })
    };
    let (step, asked) = (step_with(&mut world, true), submit(&mut world));
    assert!(matches!(world.apply(&step, &asked), Answer::Submitted { .. }));
    let (step, ask) = (step_with(&mut world, true), lease(&mut world));
    assert!(matches!(world.apply(&step, &ask), Answer::Leased(_)));
    let (step, asked) = (step_with(&mut world, false), submit(&mut world));
    assert_eq!(refusal(world.apply(&step, &asked)), Refusal::RoleChanged(Role::Worker), "it was admitted as another");
    world.changed(Change::RevokeWorker(name("one")));
    let (step, asked) = (step_with(&mut world, true), submit(&mut world));
    assert_eq!(refusal(world.apply(&step, &asked)), Refusal::Revoked, "between the request and its step");
}

#[test]
fn what_a_worker_was_refused_is_kept_with_its_account() {
    let mut world = founded();
    world.changed(create("one", secret(20)));
    world.changed(Change::NoteDenied(Denied {
        email: "worker:one".into(),
        code: "FORBIDDEN".into(),
        why: "role worker may not do this".into(),
        ..Denied::default()
    }));
    assert_eq!(world.events_about(Kind::Worker, "one")[1].properties["result"], "denied: FORBIDDEN");
}

/// Any point will do: nothing is signed here.
fn sample_spki() -> Vec<u8> {
    let mut spki = crate::hex::unhex::<27>("3059301306072a8648ce3d020106082a8648ce3d03010703420004").expect("digits").to_vec();
    spki.extend([5; 64]);
    spki
}
