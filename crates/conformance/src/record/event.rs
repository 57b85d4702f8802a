//! What the events about records promise: they are found by what they are about, in one chain each, and are never forgotten.

use runvoy_model::change::{Change, Checkpoint, Denied};
use runvoy_model::event::EventType;
use runvoy_model::record::{Kind, ONLY};
use runvoy_model::role::Role;
use runvoy_model::time::UnixMs;
use runvoy_ports::store::{EventQuery, Retention};

use super::office::{Office, admin, group, key, playbook, prefix, rule, secret, with_key};
use crate::dump::records;
use crate::harness::Records;
use crate::stage::name;

/// A little of everything, much of it under one name.
async fn mixed(office: &mut Office<'_>) {
    for change in [
        Change::CreateFirstAdmin(admin("root@x", 1)),
        with_key("bob@x", Role::Developer, 2),
        secret("one"),
        group("one", &["bob@x"]),
        rule("one"),
        playbook("one", "true"),
        Change::AddKey("bob@x".into(), key(3)),
        Change::RevokeKey("bob@x".into(), prefix(2)),
        Change::NoteDenied(Denied { email: "bob@x".into(), code: "FORBIDDEN".into(), why: "no".into(), ..Denied::default() }),
        Change::Checkpoint(Checkpoint { up_to: 9, leaves: 9, root: [7; 32], peaks: vec!["07".into()] }),
        Change::DeleteSecret(name("one")),
        secret("one"),
        playbook("one", "false"),
    ] {
        office.changed(change).await;
    }
}

/// A name means nothing without its kind: the events of a group are not those of the secret with the same name.
pub async fn events_of_a_record_are_found_by_what_they_are_about(harness: Records<'_>) {
    let mut office = Office::new(harness);
    mixed(&mut office).await;
    for _ in 0..2 {
        for (kind, name, expected) in [
            (Kind::User, "root@x", 1),
            (Kind::User, "bob@x", 4),
            (Kind::Secret, "one", 3),
            (Kind::Group, "one", 1),
            (Kind::Rule, "one", 1),
            (Kind::Playbook, "one", 2),
            (Kind::Ledger, ONLY, 1),
            (Kind::Image, "one", 0),
            (Kind::Secret, "never", 0),
        ] {
            let events = office.events_about(kind, name).await;
            assert_eq!(events.len(), expected, "{kind:?} {name}");
            assert!(events.iter().all(|event| Some(event.entity.kind) == kind.entity() && event.entity.id == name));
        }
        office.reopen().await;
    }
    let denied = &office.events_about(Kind::User, "bob@x").await[3];
    assert_eq!((denied.kind, denied.properties["result"].as_str()), (EventType::Audit, Some("denied: FORBIDDEN")));
    let audits = EventQuery { kind: Some(EventType::AuditCheckpoint), limit: 10, ..EventQuery::default() };
    assert_eq!(office.store().events(audits).await.expect("events").len(), 1);
}

/// Every record's events are the chain that it names.
pub async fn every_chain_of_a_record_verifies(harness: Records<'_>) {
    let mut office = Office::new(harness);
    mixed(&mut office).await;
    for _ in 0..2 {
        let all = records(&*office.store()).await;
        assert_eq!(all.iter().filter(|record| record.kind.entity().is_some()).count(), 7);
        for record in &all {
            if record.kind.entity().is_some() {
                office.verify_chain(record).await;
            }
        }
        office.reopen().await;
    }
}

/// Time passes over receipts and keys, and takes no record and no event of one.
pub async fn pruning_takes_no_record_and_none_of_its_events(harness: Records<'_>) {
    let mut office = Office::new(harness);
    mixed(&mut office).await;
    let every = || EventQuery { limit: 1_000, ..EventQuery::default() };
    let (before, events) = (records(&*office.store()).await, office.store().events(every()).await.expect("events"));
    let late = UnixMs(office.now.0 + 400 * 86_400_000);
    let retention = Retention { heartbeats_before: late, receipts_before: late, max_rows: 10_000 };
    while office.store().prune(retention).await.expect("pruning") > 0 {}
    assert_eq!(records(&*office.store()).await, before);
    assert_eq!(office.store().events(every()).await.expect("events"), events);
    every_chain(&office).await;
}

async fn every_chain(office: &Office<'_>) {
    for record in records(&*office.store()).await.iter().filter(|record| record.kind.entity().is_some()) {
        office.verify_chain(record).await;
    }
}
