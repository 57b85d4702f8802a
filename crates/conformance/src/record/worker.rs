//! What is promised about accounts of workers: one key each, and no right after it ended, also in a step that was under way.

use runvoy_model::change::{Change, NewWorker};
use runvoy_model::command::{Answer, Command, LeaseRequest, Refusal, Worker};
use runvoy_model::id::{LeaseId, WorkerAccountId, WorkerId};
use runvoy_model::record::{Body, Kind, Record, hash_name};
use runvoy_model::role::Role;
use runvoy_model::spec::Needs;
use runvoy_model::step::{Actor, Authority, Step};
use runvoy_model::worker::WorkerKey;
use runvoy_ports::store::StoreError;

use super::office::{Office, admin, prefix};
use crate::harness::Records;
use crate::stage::{answered, name, refusal};

fn secret(number: u8) -> WorkerKey {
    WorkerKey::Secret { hash: [number; 32], prefix: prefix(number) }
}

fn create(text: &str, number: u8) -> Change {
    let (id, queues) = (WorkerAccountId::from_bytes([number; 16]), vec![name("gpu")]);
    Change::CreateWorker(Box::new(NewWorker {
        name: name(text),
        id,
        role: Role::Worker,
        may_submit: false,
        queues,
        key: secret(number),
        description: None,
    }))
}

async fn works(office: &Office<'_>, number: u8) -> bool {
    let owner = office.read(Kind::Key, &hash_name(&[number; 32])).await.and_then(|record| record.body);
    let Some(Body::Key(owner)) = owner else { return false };
    let account = office.read(Kind::Worker, owner.strip_prefix("worker:").expect("a worker's")).await;
    account.as_ref().and_then(Record::worker).is_some_and(|account| account.has_key(&[number; 32]))
}

/// An account has the key it was given last, and its earlier keys never work again.
pub async fn an_account_of_workers_has_one_key(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let made = office.changed(create("one", 10)).await;
    assert_eq!(office.read(Kind::Worker, "one").await, Some(made));
    office.changed(Change::RotateWorker(name("one"), Box::new(secret(11)))).await;
    office.reopen().await;
    assert_eq!((works(&office, 10).await, works(&office, 11).await), (false, true));
    office.changed(Change::RevokeWorker(name("one"))).await;
    assert_eq!((works(&office, 10).await, works(&office, 11).await), (false, false));
    office.changed(create("one", 12)).await;
    office.reopen().await;
    assert_eq!((works(&office, 10).await, works(&office, 11).await, works(&office, 12).await), (false, false, true));
    assert_eq!(office.names(Kind::Worker).await, ["one"]);
    assert_eq!(office.events_about(Kind::Worker, "one").await.len(), 4);
    let record = office.read(Kind::Worker, "one").await.expect("an account");
    office.verify_chain(&record).await;
}

/// Of many accounts that are made with one key at the same time, one is.
pub async fn of_many_accounts_with_one_key_one_is_made(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let mut sent = Vec::new();
    for number in 0..12 {
        let (store, step) = (office.store(), office.step());
        let Change::CreateWorker(mut new) = create(&format!("w{number}"), 20) else { panic!("an account") };
        new.id = WorkerAccountId::from_bytes([number; 16]);
        sent.push(tokio::spawn(async move { store.change(step, Change::CreateWorker(new), None).await }));
    }
    let mut made = 0;
    for answer in sent {
        match answer.await.expect("no panic") {
            Ok(_) => made += 1,
            Err(StoreError::Refused(refusal)) => assert_eq!(refusal, Refusal::Taken(Kind::Key, prefix(20))),
            Err(error) => panic!("the store failed: {error:?}"),
        }
    }
    assert_eq!((made, office.names(Kind::Worker).await.len()), (1, 1));
}

/// A worker whose key ended before its step leases nothing, and a user's right is none of a worker's.
pub async fn a_worker_that_was_revoked_since_it_was_admitted_leases_nothing(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("root@x", 1))).await;
    office.changed(create("one", 10)).await;
    let authority = Authority { email: "worker:one".into(), key_hash: Some([10; 32]), role: Role::Worker, may_submit: false };
    let worker = WorkerId::from_bytes([3; 16]);
    let mut step = || Step { actor: Actor::Worker(worker), authority: Some(authority.clone()), ..office.step() };
    let (before, change, after) = (step(), step(), step());
    let lease = |number: u8| {
        let worker = Worker {
            id: worker,
            host: "a".into(),
            runner: "process".into(),
            in_process: false,
            serves: vec![Needs::Process],
            labels: Default::default(),
        };
        let leases = vec![LeaseId::from_bytes([number; 16])];
        Command::Lease(LeaseRequest { worker, queues: vec![name("default")], leases, ttl_ms: 30_000, begin: false, lost_after_ms: None })
    };
    assert_eq!(answered(office.store().apply(before, lease(1)).await), Answer::Leased(Vec::new()));
    assert_eq!(refusal(office.apply(&change, create("two", 11), None).await), Refusal::NotAllowed(Role::Worker));
    office.changed(Change::RevokeWorker(name("one"))).await;
    assert_eq!(refusal(answered(office.store().apply(after, lease(2)).await)), Refusal::Revoked);
}
