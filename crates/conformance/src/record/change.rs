//! What a change promises: all of it or nothing, durably, once.

use std::collections::BTreeSet;

use runvoy_model::change::{Change, Made};
use runvoy_model::command::{Answer, Command, Refusal, Submit};
use runvoy_model::id::ExecutionId;
use runvoy_model::record::{Body, Kind, ONLY};
use runvoy_model::role::Role;
use runvoy_ports::store::EventQuery;

use super::office::{Office, admin, group, image, keyed, playbook, record_of, rule, secret, with_key};
use crate::dump::records;
use crate::harness::Records;
use crate::stage::{answered, id_bytes, name, refusal, spec};

/// What was answered is what is read, by name and in the list, also after a reopen: every kind, every field.
pub async fn a_change_is_read_back_as_it_was_answered(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let mut made = Vec::new();
    for change in [
        Change::CreateFirstAdmin(admin("root@x", 1)),
        with_key("bob@x", Role::Viewer, 2),
        group("ops", &["root@x", "bob@x"]),
        rule("no-rm"),
        Change::RegisterImage(image("alpine:3.20", true)),
        secret("db"),
        playbook("deploy", "printf '%s' \"é\u{1f980}\""),
    ] {
        made.push(office.changed(change).await);
    }
    for _ in 0..2 {
        for record in &made {
            assert_eq!(office.read(record.kind, &record.name).await.as_ref(), Some(record));
            assert!(office.store().records(record.kind).await.expect("records").contains(record));
        }
        assert_eq!(office.read(Kind::Admins, ONLY).await.and_then(|record| record.body), Some(Body::Admins(vec!["root@x".into()])));
        office.reopen().await;
    }
    assert_eq!(office.read(Kind::Secret, "DB").await, None, "names are what they are, to the letter");
    assert_eq!(office.read(Kind::Group, "db").await, None);
}

/// What was removed is not read and not listed; used again, the name goes on where its chain ended.
pub async fn a_removed_record_is_not_there_and_its_chain_goes_on(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(secret("db")).await;
    office.changed(secret("other")).await;
    let gone = office.changed(Change::DeleteSecret(name("db"))).await;
    assert_eq!((&gone.body, gone.version, gone.chain.count), (&None, 2, 2));
    for _ in 0..2 {
        assert_eq!(office.read(Kind::Secret, "db").await, None);
        assert_eq!(office.names(Kind::Secret).await, ["other"]);
        assert_eq!(office.refused(Change::DeleteSecret(name("db"))).await, Refusal::Missing(Kind::Secret, "db".into()));
        assert_eq!(office.events_about(Kind::Secret, "db").await.len(), 2, "what happened is still known");
        office.reopen().await;
    }
    let again = office.changed(secret("db")).await;
    assert_eq!((again.version, again.chain.count), (3, 3));
    assert_eq!(office.read(Kind::Secret, "db").await, Some(again.clone()));
    office.verify_chain(&again).await;
}

/// Lists are of one kind, by name, byte by byte.
pub async fn records_are_listed_by_name_and_kind(harness: Records<'_>) {
    let mut office = Office::new(harness);
    for text in ["b", "a10", "a-1", "c", "a2", "B"] {
        office.changed(secret(text)).await;
        office.changed(group(text, &[])).await;
    }
    office.changed(Change::RemoveGroup(name("c"))).await;
    assert_eq!(office.names(Kind::Secret).await, ["B", "a-1", "a10", "a2", "b", "c"]);
    assert_eq!(office.names(Kind::Group).await, ["B", "a-1", "a10", "a2", "b"]);
    assert!(office.names(Kind::Rule).await.is_empty());
}

/// A refused change leaves no record, no event and no key behind.
pub async fn a_refused_change_leaves_nothing(harness: Records<'_>) {
    let mut office = Office::new(harness);
    office.changed(Change::CreateFirstAdmin(admin("root@x", 1))).await;
    office.changed(secret("db")).await;
    let (before, events) = (records(&*office.store()).await, office.store().events(every()).await.expect("events"));
    for change in [
        secret("db"),
        with_key("eve@x", Role::Admin, 1),
        Change::RevokeUser("root@x".into()),
        Change::RemoveRule(name("none")),
        Change::CreateFirstAdmin(admin("eve@x", 2)),
    ] {
        refusal(office.play(change, keyed("ann@x", "k", 1)).await);
    }
    assert_eq!(records(&*office.store()).await, before);
    assert_eq!(office.store().events(every()).await.expect("events"), events);
    assert_eq!(record_of(office.play(secret("new"), keyed("ann@x", "k", 2)).await).name, "new", "the key was not used up");
}

/// A step whose answer was lost is repeated: it is answered with what is there, and nothing is done twice.
pub async fn a_repeated_change_is_answered_as_before(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let (step, other) = (office.step(), office.step());
    let first = record_of(office.apply(&step, secret("db"), None).await);
    let pushed = record_of(office.apply(&other, playbook("deploy", "true"), None).await);
    for _ in 0..2 {
        assert_eq!(
            office.apply(&step, secret("db"), None).await,
            Answer::Record { record: Box::new(first.clone()), repeated: true },
            "and not that the name is taken"
        );
        assert_eq!(record_of(office.apply(&other, playbook("deploy", "true"), None).await), pushed, "one push, one version");
        assert_eq!(office.events_about(Kind::Secret, "db").await.len(), 1);
        office.reopen().await;
    }
    assert_eq!(office.names(Kind::PlaybookVersion).await.len(), 1);
}

/// A hundred changes with one key at the same time make one record, and all are answered with it.
pub async fn a_hundred_parallel_changes_with_one_key_make_one_record(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let mut sent = Vec::new();
    for _ in 0..100 {
        let (store, step) = (office.store(), office.step());
        sent.push(tokio::spawn(async move { store.change(step, playbook("deploy", "true"), keyed("ann@x", "k", 1)).await }));
    }
    let mut versions = BTreeSet::new();
    for answer in sent {
        versions.insert(answer.await.expect("no panic").expect("an answer").0.version);
    }
    assert_eq!(versions, [1].into());
    office.reopen().await;
    assert!(matches!(office.play(playbook("deploy", "true"), keyed("ann@x", "k", 1)).await, Answer::Record { repeated: true, .. }));
    assert_eq!(office.names(Kind::PlaybookVersion).await, ["deploy@1"]);
}

/// A key is one user's, for one request: another body, or another kind of request, is refused with what the key made.
pub async fn one_key_makes_one_thing_whatever_it_is(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let id = ExecutionId::from_bytes(id_bytes(office.now, 1 << 40));
    let submit = |key| Command::Submit(Submit { id, spec: spec(), created_by: "ann@x".into(), key, lease_to: None });
    let step = office.step();
    answered(office.store().apply(step, submit(keyed("ann@x", "run", 1))).await);
    record_of(office.play(secret("db"), keyed("ann@x", "make", 1)).await);
    let (run, made) = (Refusal::KeyReused(Made::Execution(id)), Refusal::KeyReused(Made::Record(Kind::Secret, "db".into())));
    for _ in 0..2 {
        assert_eq!(refusal(office.play(secret("db"), keyed("ann@x", "make", 2)).await), made);
        assert_eq!(refusal(office.play(secret("other"), keyed("ann@x", "run", 1)).await), run);
        let step = office.step();
        assert_eq!(refusal(answered(office.store().apply(step, submit(keyed("ann@x", "make", 1))).await)), made);
        office.reopen().await;
    }
    assert_eq!(record_of(office.play(secret("other"), keyed("bob@x", "make", 2)).await).name, "other", "keys of users never meet");
}

/// The pointer to the default image never outlives it.
pub async fn the_default_image_goes_with_its_image(harness: Records<'_>) {
    let mut office = Office::new(harness);
    let first = office.changed(Change::RegisterImage(image("alpine:3.20", true))).await;
    let second = office.changed(Change::RegisterImage(image("debian:12", true))).await;
    office.reopen().await;
    office.changed(Change::UnregisterImage(first.name)).await;
    let pointer = office.read(Kind::DefaultImage, ONLY).await.and_then(|record| record.body);
    assert_eq!(pointer, Some(Body::DefaultImage(second.name.clone())));
    office.changed(Change::UnregisterImage(second.name)).await;
    assert_eq!(office.read(Kind::DefaultImage, ONLY).await, None);
}

fn every() -> EventQuery {
    EventQuery { limit: 100_000, ..EventQuery::default() }
}
